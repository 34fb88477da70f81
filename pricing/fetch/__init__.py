"""Bounded session with a price source: addresses, size, time, decoding.

addresses   parsing of addresses and of dates in HTTP headers
body_cache  cache of the bodies of the last refresh, so that unchanged ones are not sent
            again
decoding    strict, bounded decoding of price feeds: gzip, zip, text, JSON, CSV
network     connection to a price feed: one deadline for everything, and no private
            addresses
session     session of a price source: bounded requests with retries, redirects and a
            cache
"""

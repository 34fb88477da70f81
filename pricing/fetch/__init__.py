"""One bounded session with a price source: addresses, size, time, decoding.

addresses   addresses and dates as HTTP writes them; what is none of these is a sentence or
            None
body_cache  bodies of the last refresh, so that what has not changed is not sent again
decoding    bytes of a price feed into JSON or CSV, within bounds and without guessing
network     the connection to a price feed: one deadline for all of it, and no private
            address behind it
session     how a price source asks its server: bounded, patient, and never twice for what
            has not changed
"""

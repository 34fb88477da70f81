"""Price data: offers, history, refreshes, quarantine and price books.

as_json            price history, ages and quarantined rows as JSON: the keys of docs/prices.md,
                   never renamed
book_command       runcast prices book: own and negotiated prices, added from a file,
                   listed, shown, removed
book_document      a price book in words and as JSON: its rows, which are valid today, which
                   match no offer
book_file          reads a price book from CSV, or from YAML with one flat table per row
charts             the charts of the Prices page: cheapest prices by cloud, and a price
                   over time
command            runcast prices history|on|freshness|runs|quarantine|release: read prices and
                   the store
filters            the filters of the Prices page in its address: show_cloud=aws,gcp
freshness          the age of each cloud's prices, as a table for the Prices page and for
                   the terminal
history_document   price history, prices of a day, refreshes and quarantined rows as blocks
                   of a document
offers             the offers of the Prices page as a table: filtered, in one unit, with
                   source and age
over_time          price history for the Prices page: one price over time, a plan on
                   another day
over_time_section  price history on the Prices page: one price, spot against on-demand,
                   a plan on a day
page               the Prices page: what each cloud charges for which GPU, since when,
                   from which source
price_age          old prices on the Plan page, in words: how old they are, what a refresh
                   asks and takes, what it changed
price_age_section  old prices on the Plan page: a banner with a refresh, its progress, and
                   what it changed
refresh_command    runcast refresh on a terminal and as JSON: one line per source, then what
                   failed and why
refresh_job        a price refresh in the background of the server, one at a time, that every
                   visitor can follow
sources            sources, past refreshes and quarantined rows as tables and sentences of
                   the Prices page
sources_section    sources on the Prices page: when each last answered, a refresh, and
                   quarantined rows
"""

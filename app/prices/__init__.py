"""Price data: offers, history, refreshes, quarantine and price books.

as_json            price history and what is held back as JSON: the keys of docs/prices.md
book_command       runcast prices book: own and negotiated prices, added from a file,
                   listed, shown, removed
book_document      a price book in words and as JSON: every row, what counts today, what is
                   about nothing
book_file          a price book as a file: CSV, or YAML with one flat table per row
charts             the charts of the Price data page: who asks least for what, and a price
                   over time
command            runcast prices history|on|runs|quarantine|release: what the store and the
                   history say
filters            what the Price data page shows, in the address: show_cloud=aws,gcp,
                   beside the scenario
history_document   price history, prices of a day, refreshes and what is held back, each
                   described once
offers             the offers of the Price data page as a table: filtered, in one unit, with
                   source and age
over_time          price history for the Price data page: one price over time, a plan on
                   another day
over_time_section  price history on the Price data page: one price, spot beside on-demand, a
                   plan on a day
page               the Price data page: who asks what for which GPU, since when, by whose
                   word
refresh_command    runcast refresh on a terminal and as JSON: one line per source, then what
                   failed and why
refresh_job        one refresh at a time, started from the Price data page followed by
                   whoever looks at it
sources            what the Price data page says of its sources, of past refreshes and of
                   what is held back
sources_section    sources on the Price data page: when each last answered, a refresh now,
                   and what is held back
"""

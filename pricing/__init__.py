"""Facts about prices: immutable snapshots of offers, their checks, and refreshes.

asking        ask every price source at the same time; a failure of one does not affect
              the others
bundle        build a snapshot from a table of observed prices: python -m pricing.bundle
              PRICES.csv
disk          folder of prices of an installation, and atomic replacement of its files
fetched       ask one price source: its offers, or the sentence that says why there are none
held_lists    whole price lists that are held back, and what a person decides about one:
              take it or leave it
history       history of a price: bundled observations, and those of this installation
history_fill  fill the price history with archived pages: <data>/prices/history.csv,
              fetched on request
integrity     checks of a list of offers before it becomes a snapshot
judgement     which rows of a refresh may be published
lease         lease of the price folder: one refresh at a time, by a lock and a rising
              number
offers        price snapshots: immutable tables of offers, each named by the hash of its
              content
price_life    how long a price is believed, and which prices are weak at any age
process_limit  limits that the kernel keeps for this process: seconds on the clock, and
              memory
publish       publish a price snapshot: an immutable file named by its content, then a
              pointer to it
refresh       refresh of prices: ask all sources, check their rows, publish one snapshot
report        report of a refresh: a line per source, and the record for the store
series        price over time: spells at one price, and gaps
source_process  each price source in a process of its own, whose seconds and memory the
              kernel limits
source_program  the program that asks price sources, a copy of it for each
source_state  state of the price sources of an installation: last attempts, answers and
              good rows
sources       sources of live prices: name, key, and limits on time and size
trend         monthly trend of the price of an accelerator, from the bundled history
whole_source  whether what a source says as a whole is believed at once
"""

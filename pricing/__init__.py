"""Facts about prices: immutable snapshots of offers, the checks they pass, their builder.

asking        ask every price source at the same time; whatever one of them does, the others
              are heard
bundle        build a snapshot from a table of observed prices: python -m pricing.bundle
              PRICES.csv
disk          where prices live on an installation, and how a file there is replaced whole
              or not at all
history       the history of a price: what is bundled, and what this installation has seen
integrity     what a list of offers must satisfy before it becomes a snapshot
judgement     what of a refresh may be published
lease         one refresh at a time: an exclusive lock that ends with its process, and a
              number that tells two refreshes apart
offers        open a price snapshot: an immutable table of offers whose name is the hash of
              its content
publish       publish a price snapshot: an immutable file named by its content, then a
              pointer to it
refresh       refresh prices: ask every source at once, judge what they say, publish one
              snapshot
report        what became of a refresh: a line per source, and the same as the store writes
              it down
series        A price over time: spells at one price, and gaps
source_state  what an installation knows of its price sources: when each was asked, when it
              last answered
sources       every source of live prices: what it is, what it needs, how long and how much
              it may take
trend         how the price of an accelerator has moved a month, from the bundled history
              alone

    asking        ask every price source at the same time; whatever one of them does, the others
                  are heard
    bundle        build a snapshot from a table of observed prices: python -m pricing.bundle
                  PRICES.csv
    disk          where prices live on an installation, and how a file there is replaced whole
                  or not at all
    history       the history of a price: what is bundled, and what this installation has seen
    integrity     what a list of offers must satisfy before it becomes a snapshot
    judgement     what of a refresh may be published
    lease         one refresh at a time: an exclusive lock that ends with its process, and a
                  number that tells two refreshes apart
    offers        open a price snapshot: an immutable table of offers whose name is the hash of
                  its content
    publish       publish a price snapshot: an immutable file named by its content, then a
                  pointer to it
    refresh       refresh prices: ask every source at once, judge what they say, publish one
                  snapshot
    report        what became of a refresh: a line per source, and the same as the store writes
                  it down
    series        a price over time: spells at one price, and gaps
    source_state  what an installation knows of its price sources: when each was asked, when it
                  last answered
    sources       every source of live prices: what it is, what it needs, how long and how much
                  it may take
    trend         how the price of an accelerator has moved a month, from the bundled history
                  alone
"""

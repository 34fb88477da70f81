"""Where the bytes and the seconds of a plan go.

charts           stacked bars of memory against the lines of what a device holds
layouts          layouts of one machine beside a plan's, with what each holds: those that
                 come next, and those that would be faster if they fitted
layouts_section  memory on the Memory & speed page: layouts beside each other, phases, and
                 what does not fit
page             the Memory & speed page: where the bytes and the seconds of a plan go
speed_charts     charts of speed: a step from the ideal to the whole, and what more GPUs
                 give
speed_section    speed on the Memory & speed page: a step from the ideal to the whole, and
                 more GPUs
speed_tables     where the seconds of a step go, from the ideal to the whole, and how a plan
                 scales: rows and columns, and the sentences about them
tables           what GPUs hold as rows and columns: what the charts draw, the tables list
                 and the CSV holds
words            what GPUs hold, in words: names of phases, notes beside bars, sentences,
                 what a hover says
"""

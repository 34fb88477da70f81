"""Where the bytes and the seconds of a plan go.

charts           stacked bars of memory, with lines for the capacity and the safe limit
layouts          memory of other layouts on a plan's machine: the next fastest, and those
                 that would be faster if they fitted
layouts_section  memory on the Memory & speed page: layouts compared, phases, and what does
                 not fit
page             the Memory & speed page: where the bytes and the seconds of a plan go
speed_charts     charts of speed: from the ideal step to the actual one, and scaling with
                 GPUs
speed_section    speed on the Memory & speed page: from the ideal step to the actual one,
                 and scaling with GPUs
speed_tables     tables of speed: the losses between the ideal step and the actual one, and
                 scaling with GPUs
tables           tables of memory: for the charts, for the page and for CSV
words            memory in words: names of phases, notes on bars, sentences, tooltips
"""

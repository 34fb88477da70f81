"""Why one layout is slower than another, and what stands in the way of a faster one.

bottleneck   bottlenecks of one layout: each part of its step, and what would shorten or
             hide it
changes      layouts that differ from a given one in one or two knobs: which fit, and what
             each takes
explain      layouts evaluated with one set of inputs, and the differences between two of
             them
knobs        knobs of a layout, and the layouts that turning one or two of them gives, as
             columns
obstacles    why a layout cannot be used: the rules it breaks with their figures, or
             missing memory
sensitivity  sensitivity of the answer to each input, and the causes of the width of its
             interval
"""

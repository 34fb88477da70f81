"""Why one layout is slower than another, and what stands in the way of a faster one.

bottleneck   what would make one layout faster: every part of its step, and what would hide
             it
changes      layouts that differ from one in one or two knobs: which fit, and what each
             would take
explain      what an explanation rests on: layouts evaluated one beside another, and what
             sets two apart
knobs        the knobs of a layout, and the layouts that one or two of them turned make, as
             columns
obstacles    why one layout cannot be used: the rules it breaks with their figures, or the
             bytes it lacks
sensitivity  how far the answer moves with each input, and which unknown its interval is
             made of
"""

"""A saved answer computed again, with what has changed since.

command    runcast recompute: the plans of a JSON file computed again from what the file
           carries
file       the way in for a plan's JSON that is computed again: a checked file as records of
           core
recompute  plans of a file computed again from what the file says, held against what it
           printed
words      what became of a file of plans that was computed again, in sentences
"""

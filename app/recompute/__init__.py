"""A saved answer computed again, with what has changed since.

command    runcast recompute: computes the plans of a JSON file again from the inputs in the
           file
file       reads and checks the JSON of a plan that is to be computed again
recompute  computes the plans of a file again and compares them with the file's numbers
words      the result of computing a file again, in sentences
"""

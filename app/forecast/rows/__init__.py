"""The rows of an answer, before any is shown as a plan.

assumptions  what is assumed of a row, as sentences
row          one machine at one GPU count with its best layout, priced
"""

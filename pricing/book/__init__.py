"""Own and negotiated prices: a file's rows, checked, and kept under a name.

cells   the cells of a price book: text as numbers, days and names, or what is wrong with it
files   price books of this installation: one file each, named by the user, read and
        replaced whole
offers  a price book laid over the list prices
rows    a price book: what somebody pays that no public list shows
"""

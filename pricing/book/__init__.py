"""Price books: own and negotiated prices, checked, and stored under a name.

cells   cells of a price book: text as numbers, days and names, or what is wrong
files   price books of this installation: one file each, under a name of the user's
offers  price book applied to the list prices
quotes  prices that the user was offered, as offers and as rows of a price book
rows    rows of a price book (prices that no public list shows), and their checks
"""

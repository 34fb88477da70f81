"""How the forecast works: the formulas and where each was published.

page    the Method page: how a forecast is made, what is and is not in it, others' figures
        checked
tables  the tables of the Method page, as rows of text, and the dates of the data behind a
        forecast
"""

"""How the forecast works: the formulas and where each was published.

page    the Method page: how a forecast is made, what it includes, and published figures
        checked
tables  the tables of the Method page, and the dates of the data behind a forecast
"""

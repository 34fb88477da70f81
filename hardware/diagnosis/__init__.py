"""What may be wrong with a run that is alerted, and what helps.

causes  one table, alert x cause: its sign, its remedy and who says so: causes.csv
"""

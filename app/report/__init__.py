"""A plan as a report: Markdown, HTML and PDF.

answer         the first sections of a report: the answer with its interval, the plan in
               facts and charts
choice         the other plans in a report: cost against time, the first ten, and the
               pinned ones
command        runcast report: a plan as Markdown, HTML and PDF
cost           the cost section of a report: every line of the bill, and other ways to buy
               the machines
files          reads the options of runcast report and writes the files of the report
origin         the basis of a report: why this plan, assumptions, accuracy of forecasts,
               sources, and how to reproduce the answer
programme      the section of a report about the stages of a programme
report         builds the report of a plan once for three writers (Markdown, HTML, PDF)
share_section  the section for sharing an answer: its link, its command line and its files
"""

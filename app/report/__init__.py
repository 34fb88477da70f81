"""A plan as a document to take away.

answer         the first sections of a report: the answer with its interval, the plan in
               facts and charts
choice         the other plans of a report: cost against time, the first ten, and the
               pinned ones
command        runcast report: a plan as Markdown, HTML and PDF
cost           what a plan costs, in a report: every line of its bill, and its machines
               bought otherwise
files          what runcast report does: options in, the files of a report out
origin         what a report rests on: why the plan, what is assumed, how accurate
               forecasts are, sources, and how to get the same answer again
report         a plan as a report for a meeting: one builder, three writers (Markdown,
               HTML, PDF)
share_section  how an answer is shared: its link, the same on the command line, and
               files of it
"""

"""Text, tables and blocks, and their writers: terminal, Markdown, HTML, PDF, CSV. Asks nothing.

as_json      values as JSON holds them: numbers that are not finite become null
blocks       what a document is made of: sections of paragraphs, lists, tables, figures and
             lines to copy
chart_files  a chart as a minimal dict, and as files: PNG, SVG, and its data as Parquet
chart_parts  what every chart is made of: text colours and colours, axes, legends,
             scales, and small marks
csv          tables as CSV, in which no cell starts a formula
echo         the one writer of lines on a terminal, whose characters command nothing
durations    durations of a table or an axis in the one unit that suits their size: 0.0001
             days are 9 s
escape       escape foreign text, and text with dollar signs, for Markdown and
             spreadsheets
format       numbers for people
glossary     the field's terms, one sentence each: what a page shows when the pointer
             rests on a label
html         a report as one HTML file: no script, no request, readable in dark mode and
             on paper
live         a screen of blocks that is drawn again in place, on a terminal
markdown     a report as Markdown (CommonMark with tables, as code hosts draw it)
on_use       packages of an extra, imported when first used: the base installation works
             without them
page         draw blocks on a Streamlit page
pdf          a report as PDF: tagged (PDF/UA-1) and archivable (PDF/A-2a), typeset by
             Typst
pictures     the charts of a report as SVG, each drawn once, because drawing is the
             slowest part
progress     the progress bar of a slow command, on a terminal's standard error to keep
             output clean
table        describe a table once: its columns, as numbers for files and as text for
             people
terminal     print blocks on a terminal: sentences, lists and tables, at most as wide as
             the window
vocabulary   names of things on every page, command and report: parts, purchases, places
"""

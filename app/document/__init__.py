"""Text, tables and blocks, and their writers: terminal, Markdown, HTML, PDF, CSV. No question.

as_json      values as JSON holds them: what is not finite is null
blocks       what a document is made of: sections of paragraphs, lists, tables, figures and
             lines to copy
chart_files  a chart as a dict as small as it can be, and as files: PNG, SVG, its data as
             Parquet
chart_parts  what every chart is made of: inks and colours, axes, legends, scales, and small
             marks
csv          tables as CSV, in which no cell starts a formula
escape       text that came from outside, or that holds dollars, made safe for Markdown and
             spreadsheets
format       numbers as a person reads them
glossary     the field's terms, a sentence each: what a page shows where somebody rests on a
             label
html         a report as one HTML file: no script, no request, readable in the dark and on
             paper
markdown     a report as Markdown (CommonMark with tables, as code hosts draw it)
page         blocks on a page of Streamlit
pdf          a report as PDF: tagged (PDF/UA-1) and archivable (PDF/A-2a), set by Typst
pictures     the charts of a report as SVG. Each is drawn once: it takes longer than all
             else in a report
progress     the bar of a command that waits: on a terminal's standard error, so that output
             stays output
table        a table described once: its columns, as numbers for files and as text for
             people
terminal     blocks on a terminal: sentences, lists and tables, at most as wide as the
             window
vocabulary   names of things as every page, command and report writes them: parts,
             purchases, places
"""

"""A plan as a report: Markdown, HTML and PDF."""

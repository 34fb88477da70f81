"""Text, tables and blocks, and their writers: terminal, Markdown, HTML, PDF, CSV. Asks nothing."""

"""The one writer of lines on a terminal, whose characters command nothing.

A name in a file, a price list or the output of a node may hold escape sequences; `print` and
`typer.echo` would pass them on. Documents go through terminal.py, which does the same.
"""

from __future__ import annotations

import sys

from hardware.outside.text import plain


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Write a text to standard output, or to standard error."""
    out = sys.stderr if err else sys.stdout
    out.write(plain(text) + ("\n" if nl else ""))
    out.flush()

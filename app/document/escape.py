"""Escape foreign text, and text with dollar signs, for Markdown and spreadsheets.

Streamlit reads labels, warnings and captions as Markdown with extensions: `$..$` is a formula,
`:red[..]` a colour, a bare address a link, `:cat:` a picture. A name in a link or a config.json
must not become any of these. A spreadsheet runs a cell that begins like a formula.
"""

from __future__ import annotations

import re
from numbers import Real
from typing import Any

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#$|~&])")
_STARTS_A_BLOCK = re.compile(r"^([-+=]|\d+(?=[.)]))")
_STARTS_A_LINK = re.compile(r"(:(?=\S)|@|www(?=\.))", re.IGNORECASE)
_WORD_JOINER = "\N{WORD JOINER}"  # no width, no line break: only interrupts Markdown's patterns

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\n")


def as_text(text: str) -> str:
    """One line that Markdown shows literally.

    >>> as_text("$5 *and* <b>")
    '\\\\$5 \\\\*and\\\\* \\\\<b\\\\>'
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    line = " ".join(text.split())
    escaped = _SPECIAL.sub(r"\\\1", line)
    escaped = _STARTS_A_BLOCK.sub(lambda m: _WORD_JOINER + m[1], escaped)
    return _STARTS_A_LINK.sub(lambda m: m[1] + _WORD_JOINER, escaped)


def safe_cell(text: str) -> str:
    """Text that a spreadsheet shows and does not run as a formula.

    A carriage return becomes a line feed: writers of CSV quote a line feed, while a bare carriage
    return would begin a row, whose first cell could be a formula.

    >>> safe_cell("=1+1"), safe_cell("H100"), safe_cell("a\\r=1+1")
    ("'=1+1", 'H100', 'a\\n=1+1')
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    bare = text.lstrip("\ufeff\u00a0 ")
    return f"'{text}" if bare.startswith(_FORMULA_STARTS) else text


def safe_value(value: Any) -> Any:
    """A value of a column of mixed types: a number stays a number, the rest becomes text that a
    spreadsheet does not run.

    >>> safe_value(-1.5), safe_value("-1.5"), safe_value(None)
    (-1.5, "'-1.5", 'None')
    """
    return value if isinstance(value, Real) else safe_cell(str(value))

"""Text that came from outside, or that holds dollars, made safe for Markdown and spreadsheets.

Streamlit reads labels, warnings and captions as Markdown with extensions: `$..$` is a formula,
`:red[..]` a colour, a bare address a link, `:cat:` a picture. A name in a link or a config.json
must be none of these. A spreadsheet runs a cell that begins like a formula.
"""

from __future__ import annotations

import re

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#$|~&])")
_STARTS_A_BLOCK = re.compile(r"^([-+=]|\d+(?=[.)]))")
_STARTS_A_LINK = re.compile(r"(:(?=\S)|@|www(?=\.))", re.IGNORECASE)
_WORD_JOINER = "\N{WORD JOINER}"  # no width, no line break: only ends what Markdown looks for

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def as_text(text: str) -> str:
    """One line that Markdown shows as it is written.

    >>> as_text("$5 *and* <b>")
    '\\\\$5 \\\\*and\\\\* \\\\<b\\\\>'
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    escaped = _SPECIAL.sub(r"\\\1", line)
    escaped = _STARTS_A_BLOCK.sub(lambda m: _WORD_JOINER + m[1], escaped)
    return _STARTS_A_LINK.sub(lambda m: m[1] + _WORD_JOINER, escaped)


def safe_cell(text: str) -> str:
    """Text that a spreadsheet shows and does not run as a formula.

    >>> safe_cell("=1+1"), safe_cell("H100")
    ("'=1+1", 'H100')
    """
    bare = text.lstrip("\ufeff\u00a0 ")
    return f"'{text}" if bare.startswith(_FORMULA_STARTS) else text

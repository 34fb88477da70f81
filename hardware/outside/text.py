"""Characters that would command a terminal or turn the direction of a text.

A terminal obeys ESC and the C1 controls (its title, its clipboard, links that hide their address);
the bidirectional controls show a text in another order than it has.
"""

from __future__ import annotations

import re

_COMMANDS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f"
)
_UNSAFE = re.compile(f"[{_COMMANDS}]")
_NOT_ONE_LINE = re.compile(f"[{_COMMANDS}\t\n]")


def plain(text: str) -> str:
    """The text with a question mark for each such character; line ends and tabs stay.

    >>> plain("node\\x1b]0;owned\\x07 1\\r\\n")
    'node?]0;owned? 1\\n'
    """
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub("?", text.replace("\r\n", "\n"))


def escaped_json(text: str) -> str:
    """JSON text with these characters as `\\u` escapes, which changes no value."""
    return _UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + (code - 0x10000 >> 10):04x}\\u{0xDC00 + (code - 0x10000 & 0x3FF):04x}"


def control_in(text: str) -> str:
    """The first such character, line ends and tabs included, as U+001B; '' if there is none."""
    if text.isprintable() and (text.isascii() or not _UNSAFE.search(text)):
        return ""
    found = _NOT_ONE_LINE.search(text)
    return f"U+{ord(found[0]):04X}" if found else ""

"""What the log must not contain: secrets of the environment, and whatever looks like one.

Two steps. First, values of environment variables (and of secrets.toml) whose names mark them as
secrets are removed wherever they occur. Then everything written like a secret is removed:
`password=...`, `Authorization: ...`, the part of an address before its @.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import unquote, urlsplit

HIDDEN = "***"
LEAST_CHARS = 6  # removing a shorter value would also remove ordinary words
_NAMES = re.compile(
    r"(?i)(?<![a-z])(passw(or)?d|passphrase|secret|token|credentials?|(api|access|private)[_-]?key|"
    r"cookie|authorization|key)s?(?![a-z])"
)
_PATTERNS = (
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]{0,30}://)[^\s/@'\"]+@"), rf"\1{HIDDEN}@"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{6,}"), rf"\1 {HIDDEN}"),
    (
        re.compile(
            r"(?i)([\w-]*(?:passw(?:or)?d|passphrase|secret|token(?!s)|credential|api[_-]?key|"
            r"access[_-]?key|private[_-]?key|cookie|authorization)[\w-]*"
            r"['\"]?\s*[:=]\s*['\"]?)(?!(?:bearer|basic) )[^\s'\",;&}]+"
        ),
        rf"\1{HIDDEN}",
    ),
)


def secrets_of(
    environ: Mapping[str, str], more: Mapping[str, object] | None = None
) -> tuple[str, ...]:
    """The secret values in an environment and a nested table, the longest first.

    >>> secrets_of({"LAMBDA_API_KEY": "abcdef123", "LANG": "C.UTF-8"})
    ('abcdef123',)
    """
    found = {v.strip() for name, v in environ.items() if _NAMES.search(name.replace("_", " "))}
    found |= {p for v in environ.values() for p in _password_of(v)} | {*_values(more or {})}
    return tuple(sorted((v for v in found if len(v) >= LEAST_CHARS), key=len, reverse=True))


def redacted(text: str, secrets: Iterable[str]) -> str:
    """The text without these values and without anything that looks like a secret.

    >>> redacted("GET https://me:pw@host/?api_key=12 with 'abcdef123'", ["abcdef123"])
    "GET https://***@host/?api_key=*** with '***'"
    """
    for value in secrets:
        text = text.replace(value, HIDDEN)
    for pattern, by in _PATTERNS:
        text = pattern.sub(by, text)
    return text


def _password_of(value: str) -> Iterator[str]:
    """The password in an address, both percent-encoded and decoded."""
    if "://" not in value or "@" not in value:
        return
    try:
        password = urlsplit(value).password
    except ValueError:
        password = None
    if password:
        yield from (password, unquote(password))


def _values(table: Mapping[str, object]) -> Iterator[str]:
    """Every text in a nested table; all texts in secrets.toml count as secrets."""
    for value in table.values():
        if isinstance(value, Mapping):
            yield from _values(value)
        elif isinstance(value, str):
            yield value.strip()

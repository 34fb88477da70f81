"""Units: inside core a quantity is a plain number in the unit that its name ends with.

    _bytes  _s  _flops (a count)  _flops_per_s  _bytes_per_s  _usd  _usd_per_hour
    no suffix: a count or a fraction in [0, 1], never a percentage

Numbers enter in the unit their source prints and are converted once, by `to_si`.
They leave in the unit a person reads, formatted once, in app/document/format.py.
"""

from __future__ import annotations

import math
import re

from core.errors import ScenarioError, shown

GIB = 2**30
HOUR_S = 3600.0
DAY_S = 24 * HOUR_S

# Decimal and binary prefixes are different units: 80 GB of HBM is not 80 GiB.
TO_SI = {
    "FLOP/s": 1.0,
    "TFLOP/s": 1e12,
    "PFLOP/s": 1e15,
    "TOP/s": 1e12,
    "POP/s": 1e15,
    "B": 1.0,
    "MB": 1e6,
    "MiB": float(2**20),
    "GB": 1e9,
    "GiB": float(GIB),
    "TB": 1e12,
    "B/s": 1.0,
    "GB/s": 1e9,
    "GiB/s": float(GIB),
    "TB/s": 1e12,
    "Mbit/s": 1e6 / 8,
    "Gbit/s": 1e9 / 8,  # to bytes/s
    "Tbit/s": 1e12 / 8,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "W": 1.0,
    "USD/h": 1.0,
    "count": 1.0,
    "fraction": 1.0,
}

_DECIMAL = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}
_BINARY = {"": 1.0, "k": 1024.0, "m": 1024.0**2}
_WRITTEN = re.compile(
    r"([+-]?(?:\d[\d_,]*\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?)\s*([a-z]?)", re.IGNORECASE
)


def to_si(value: float, unit: str) -> float:
    """Convert a printed figure to the unit used inside core.

    >>> to_si(400, "Gbit/s")
    50000000000.0
    """
    try:
        return value * TO_SI[unit]
    except KeyError:
        raise ValueError(f"unit {unit!r} is not one of {sorted(TO_SI)}") from None


def written_number(text: str, *, binary: bool = False) -> float:
    """A number as people write it: 1e12, 15T, 2,000, 1_000, 70B. Finite, or ValueError.

    `binary` is for lengths of a context, which the field counts in 1024s: 8k is 8192.

    >>> written_number("15T"), written_number("8k"), written_number("8k", binary=True)
    (15000000000000.0, 8000.0, 8192.0)
    """
    match = _WRITTEN.fullmatch(text.strip()) if len(text) <= 64 else None
    suffixes = _BINARY if binary else _DECIMAL
    if match is None or match[2].lower() not in suffixes:
        raise ValueError(f"{text[:40]!r} is not a number like 8192, 1e12, 15T or 8k")
    value = float(match[1].replace(",", "").replace("_", "")) * suffixes[match[2].lower()]
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]!r} is too large to be a number here")
    return value


def whole_number(text: str, called: str, most: int) -> int:
    """A whole number from 1 to `most`, written in digits; ScenarioError for any other text.

    >>> whole_number("64", "--workers", 4096)
    64
    """
    is_short = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    if not (is_short and 1 <= int(text) <= most):
        raise ScenarioError(f"{called} {shown(text)} is not a whole number from 1 to {most:,}.")
    return int(text)


def written_items(value: object, separator: str) -> list[object]:
    """A list as a link, a file or a form writes it, without its blank items.

    >>> written_items("a;b;", ";"), written_items(["a", ""], ";"), written_items(5, ";")
    (['a', 'b'], ['a'], [5])
    """
    parts = value.split(separator) if isinstance(value, str) else value
    parts = list(parts) if isinstance(parts, (list, tuple)) else [parts]
    return [p for p in parts if not isinstance(p, str) or p.strip()]

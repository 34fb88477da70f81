"""JSON from outside, whose size in memory is judged before it is parsed.

A byte of JSON can become thirty bytes of objects, so values and lists are counted in the text
first. Refused are a key that is given twice, NaN and infinity, numbers of thousands of digits,
nesting that no file has, and, where asked, texts that would command a terminal. The first mistake
ends it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from core.errors import RuncastError, shown
from hardware.outside import interrupt
from hardware.outside.text import control_in

THIN_BYTES = 200_000  # of a text that may be made of empty lists
LEAST_BYTES_PER_LIST = 5
LINES = frozenset({"topology"})  # keys whose text may have lines: what nvidia-smi prints

# Outside of strings a number of many digits, or of an exponent that may be infinite.
_LONG_NUMBER = re.compile(r"(?<![\w\".])-?[\d.]*(?:\d{21}|[eE]\+?\d{3})")
# A whole string, closed or not, is one token, so that brackets inside it are not counted; the
# possessive quantifiers keep the scan linear.
_TOKENS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


class OutsideError(RuncastError):
    """A text from outside is refused. `clause` goes on after its name: 'is not JSON: ...'."""

    def __init__(self, clause: str) -> None:
        super().__init__(f"The text {clause}.")
        self.clause = clause


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much a JSON text may hold."""

    num_bytes: int
    values: int
    lists: int | None = None  # lists and objects; None: as many as values
    keys: int | None = None  # of one object
    depth: int | None = None  # None: what the interpreter takes, some hundreds
    digits: int = 4_000  # of one number
    is_printable: bool = False  # whether a text that would command a terminal is refused


LINE = Bounds(num_bytes=1_000_000, values=10_000)  # of a log
STATE = Bounds(num_bytes=64_000_000, values=4_000_000)  # a file of this installation


def json_value(data: bytes | str, bounds: Bounds) -> Any:
    """The value of a JSON text within the bounds; OutsideError otherwise.

    >>> json_value('{"a": [1]}', Bounds(num_bytes=100, values=10))
    {'a': [1]}
    """
    if len(data) > bounds.num_bytes:
        raise OutsideError(f"is larger than {bounds.num_bytes / 1e6:g} MB")
    text = _decoded(data)
    if bounds.depth is not None:
        _refuse_depth(text, bounds.depth)
    _refuse_weight(text, bounds)
    is_long = _LONG_NUMBER.search(text) is not None  # otherwise no number needs a look
    try:
        found = json.loads(
            text,
            object_pairs_hook=_object(bounds.keys),
            parse_constant=_no_number,
            parse_int=_integer(bounds.digits) if is_long else None,
            parse_float=_real if is_long else None,
        )
    except RecursionError:
        raise OutsideError("is nested too deeply") from None
    except json.JSONDecodeError as e:
        raise OutsideError(
            f"is not JSON, or is cut off: {e.msg} at line {e.lineno}, column {e.colno}"
        ) from None
    if bounds.is_printable:
        _refuse_commands(found)
    return found


def _decoded(data: bytes | str) -> str:
    if isinstance(data, str):
        return data
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise OutsideError("is not UTF-8 text") from None


def _refuse_weight(text: str, bounds: Bounds) -> None:
    """Refuse more values or lists than the bounds have, and a text of hardly anything else."""
    lists = text.count("[") + text.count("{")
    if lists + text.count(",") > bounds.values:
        raise OutsideError(f"holds more than {bounds.values:,} values")
    most = len(text) // LEAST_BYTES_PER_LIST if len(text) > THIN_BYTES else len(text)
    if lists > min(most, bounds.values if bounds.lists is None else bounds.lists):
        raise OutsideError(f"holds {lists:,} lists and objects, too many for its size")


def _refuse_depth(text: str, most: int) -> None:
    depth = 0
    for token in _TOKENS.finditer(text):
        if token[0] in "[{":
            depth += 1
            if depth > most:
                raise OutsideError(f"nests more than {most} levels deep")
        elif token[0] in "]}":
            depth -= 1


def _object(most: int | None) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        interrupt.check()
        if most is not None and len(pairs) > most:
            raise OutsideError(f"has an object of {len(pairs):,} keys, more than {most:,}")
        found = dict(pairs)
        if len(found) != len(pairs):
            raise OutsideError(f"gives the key {shown(twice(key for key, _ in pairs))} twice")
        return found

    return made


def twice(names: Any) -> str:
    """The first name that is given a second time; '' if none is."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return str(name)
        seen.add(name)
    return ""


def _integer(most: int) -> Callable[[str], int]:
    def made(digits: str) -> int:
        if len(digits) > most:
            raise OutsideError(f"has a number of {len(digits):,} digits, more than {most:,}")
        return int(digits)

    return made


def _real(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_number(text)


def _no_number(text: str) -> NoReturn:
    raise OutsideError(f"has {shown(text)} where a finite number belongs")


def _refuse_commands(found: Any) -> None:
    """Refuse every key and text with a character that is not shown as it is."""
    left = [found]
    while left:
        value = left.pop()
        if isinstance(value, str):
            if control := control_in(value):
                raise OutsideError(f"has the character {control} in the text {shown(value)}")
        elif isinstance(value, list):
            left += value
        elif isinstance(value, dict):
            left += value
            left += [v for k, v in value.items() if k not in LINES]

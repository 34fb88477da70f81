"""One number of a plan as a record: its value and unit, what it rests on, and its source."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from app.document import format as fmt
from app.document.vocabulary import Kind
from core.machine.accelerator import Source
from core.numeric import as_float
from hardware.claims import Formula, formulas

NOT_RECORDED = "not recorded"
_TEXTS: dict[str, Callable[[float], str]] = {
    "USD": fmt.usd,
    "USD/h": fmt.usd_per_hour,
    "h": fmt.days,
    "s": fmt.seconds,
    "B": fmt.gib,
    "tokens/s": fmt.tokens_per_s,
    "probability": fmt.percent,
    "share": fmt.percent,
}
_RATES = {"FLOP/s": "TFLOP/s", "B/s": "GB/s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One number. `value` is in `unit` (an SI unit, a count or a fraction); None if unknown."""

    key: str  # stable, like the keys of the JSON
    label: str
    value: float | None
    unit: str
    text: str  # as it is shown
    kind: Kind
    inputs: tuple[Record, ...] = ()  # what it rests on
    source: Source | None = None  # for numbers that are not computed; None: not recorded
    topic: str = ""  # row of hardware/formulas.csv
    note: str = ""

    @property
    def computed_as(self) -> Formula | None:
        """Its row in the table of formulas: the description, the source and the module."""
        return _by_topic().get(self.topic)


def record(
    key: str,
    label: str,
    value: object,
    unit: str,
    kind: Kind = "computed",
    *,
    text: str = "",
    inputs: tuple[Record, ...] = (),
    source: Source | None = None,
    topic: str = "",
    note: str = "",
) -> Record:
    """A record; without `text`, its text is the number with its unit as the page formats it.

    `value` is a number, an array of one, or None. KeyError if no formula has the topic.
    """
    if topic and topic not in _by_topic():
        raise KeyError(topic)
    known = None if value is None or math.isnan(x := as_float(value)) else x
    return Record(
        key=key, label=label, value=known, unit=unit, kind=kind, inputs=inputs, source=source,
        topic=topic, note=note, text=text or text_of(known, unit),
    )  # fmt: skip


def text_of(value: float | None, unit: str) -> str:
    """A number with its unit, in the page's own formats.

    >>> text_of(3.5e-3, "s"), text_of(989e12, "FLOP/s"), text_of(64.0, "GPUs")
    ('3.5 ms', '989 TFLOP/s', '64 GPUs')
    """
    if value is None:
        return fmt.MISSING
    if math.isinf(value):
        return "never ends"
    if unit in _TEXTS:
        return _TEXTS[unit](value)
    if unit in _RATES:
        return f"{fmt.in_unit(value, _RATES[unit])} {_RATES[unit]}"
    big = abs(value) >= 1e6 or not float(value).is_integer()
    plain = fmt.tokens(value) if big else fmt.count(value)
    return f"{plain} {unit}".strip()


@cache
def _by_topic() -> dict[str, Formula]:
    return {f.topic: f for f in formulas()}


def undated(ref: str, printed: str = "") -> Source:
    """A source without a date."""
    return Source(ref=ref, date="", printed=printed)


def walked(records: tuple[Record, ...]) -> Iterator[Record]:
    """Every record followed by its inputs, recursively, each key once."""
    seen: set[str] = set()
    left = list(reversed(records))
    while left:
        record = left.pop()
        if record.key not in seen:
            seen.add(record.key)
            yield record
            left += reversed(record.inputs)

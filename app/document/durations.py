"""Durations of a table or an axis in the one unit that suits their size: 0.0001 days are 9 s."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from app.document.on_use import pd

IN_DAYS = " (days)"  # end of a column's head


@dataclass(frozen=True, slots=True)
class TimeUnit:
    """A unit of time, and how many of it are a day."""

    name: str
    per_day: float


DAYS = TimeUnit("days", 1.0)
_SMALLER = (TimeUnit("hours", 24.0), TimeUnit("minutes", 1440.0), TimeUnit("seconds", 86_400.0))


def unit_of(days: Iterable[float]) -> TimeUnit:
    """The largest unit of which the longest duration is at least one.

    >>> unit_of([0.2, 3.0]).name, unit_of([0.01]).name, unit_of([1e-4, math.inf]).name
    ('days', 'minutes', 'seconds')
    """
    longest = max((d for d in days if math.isfinite(d)), default=1.0)
    return next((u for u in (DAYS, *_SMALLER) if longest * u.per_day >= 1), _SMALLER[-1])


def in_unit(frame: pd.DataFrame, unit: TimeUnit) -> pd.DataFrame:
    """A table with its columns of days, such as days_p10, in a unit."""
    names = [name for name in frame.columns if str(name).startswith("days")]
    return frame.assign(**{name: frame[name] * unit.per_day for name in names})


def in_one_unit(frame: pd.DataFrame) -> pd.DataFrame:
    """A table with its columns of days in one suitable unit, which their heads name."""
    heads = [name for name in frame.columns if str(name).endswith(IN_DAYS)]
    unit = unit_of(v for name in heads for v in frame[name])
    if unit is DAYS:
        return frame
    shown = frame.assign(**{name: frame[name] * unit.per_day for name in heads})
    return shown.rename(columns={n: n.removesuffix(IN_DAYS) + f" ({unit.name})" for n in heads})


def of_days(head: str) -> str:
    """The head of a column before `in_one_unit`.

    >>> of_days("Time (minutes)"), of_days("Time (days)"), of_days("MFU")
    ('Time (days)', 'Time (days)', 'MFU')
    """
    for unit in _SMALLER:
        if head.endswith(end := f" ({unit.name})"):
            return head.removesuffix(end) + IN_DAYS
    return head

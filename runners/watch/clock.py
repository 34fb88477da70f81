"""The time of each line of a log: printed in it, else counted from its steps, else its arrival.

Times are seconds since 1970, of a clock without a time zone taken as UTC. They never go back: a
clock that is set back goes on from where it was, and one that leaps by more than a month is taken
for a clock that was wrong before.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from functools import lru_cache

LEAP = 30 * 86_400.0  # seconds; chosen: no job waits longer for a machine
_LOOKED_AT = 160  # characters of a line in which its time stands
_ISO = re.compile(
    r"(?<!\d)(20\d\d)[-/](\d\d)[-/](\d\d)[ T,]{1,2}([01]\d|2[0-3]):([0-5]\d):([0-5]\d)"
    r"(?:[.,](\d{1,9}))?(?!\d)"
)
_AMERICAN = re.compile(  # 02/11/2026 09:00:00 of accelerate and datasets
    r"(?<!\d)(\d\d)/(\d\d)/(20\d\d) ([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?!\d)"
)


def time_of(line: str) -> float | None:
    """The time that a line prints near its beginning; None if there is none.

    >>> time_of("[2026-03-01 10:01:00.5] iteration"), time_of("step: 10")
    (1772359260.5, None)
    """
    head = line[:_LOOKED_AT]
    if (m := _ISO.search(head)) is not None:
        day = _day(m[1], m[2], m[3])
        part = float(f"0.{m[7]}") if m[7] else 0.0
        return None if day is None else day + _seconds(m[4], m[5], m[6]) + part
    if (m := _AMERICAN.search(head)) is not None:
        day = _day(m[3], m[1], m[2])
        return None if day is None else day + _seconds(m[4], m[5], m[6])
    return None


@lru_cache(maxsize=8)
def _day(year: str, month: str, day: str) -> float | None:
    if not (
        1 <= int(month) <= 12 and 1 <= int(day) <= calendar.monthrange(int(year), int(month))[1]
    ):
        return None
    return float(calendar.timegm((int(year), int(month), int(day), 0, 0, 0)))


def _seconds(hour: str, minute: str, second: str) -> float:
    return int(hour) * 3600.0 + int(minute) * 60.0 + int(second)


@dataclass(slots=True)
class Clock:
    """The time of one file."""

    now: float | None = None
    prints: bool = False  # whether its lines have times
    num_back: int = 0
    num_leaps: int = 0
    _offset: float = 0.0
    _at: float | None = None  # of the last step
    _elapsed: float | None = None  # that the program counted at its last step
    _is_counted: bool = False  # from steps: a printed time may be earlier

    def line(self, printed: float | None) -> None:
        """Take the time that a line prints, if it does."""
        if printed is None:
            return
        self.prints = True
        at = printed + self._offset
        if self.now is not None:
            if at < self.now - 1.0 and not self._is_counted:
                self.num_back += 1
                self._offset += self.now - at
            elif at > self.now + LEAP:
                self.num_leaps += 1
                self._offset += self.now - at
            at = max(printed + self._offset, self.now)
        self.now = at

    def step(self, *, took_s: float, elapsed_s: float | None, arrived: float | None) -> float:
        """The time of a step: printed since the last one, else by the program's own count, its
        arrival, or the seconds that it took."""
        last, before, self._elapsed = self._at, self._elapsed, elapsed_s
        moved = self.now is not None and (last is None or self.now > last)
        if not (self.prints and moved and not self._is_counted):
            base = last if last is not None else self.now
            counted = elapsed_s is not None and before is not None and elapsed_s > before
            if base is None:
                at = arrived or 0.0
            elif counted and elapsed_s is not None and before is not None:
                at = base + elapsed_s - before
            else:
                at = base + took_s if arrived is None else arrived
            self._is_counted = took_s > 0 or self._is_counted
            self.now = at if self.now is None else max(self.now, at)
        self._at = self.now or 0.0
        return self._at

"""Figures that a tracker keeps by step, as lines that the reader of step times knows.

A step is given when the next one begins. Its seconds are what the program tracked, else the time
between this tracked step and the one before it; a step without a training loss or a time of its own
is an evaluation, and is left out.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_LOSS = re.compile(
    r"(?:^|[/_.])(?:lm[ _]loss|reduced_train_loss|(?:train|training)[/_. ]?loss|loss"
    r"|global_avg_loss)$",
    re.IGNORECASE,
)
_SECONDS = re.compile(
    r"(?:^|/)(?:iteration-time|train_step_timing in s|step_time(?:_s)?"
    r"|time_metrics/end_to_end\(s\))$"
)
_OTHERS = re.compile(r"(?:^|[/_.])(?:val|valid|validation|eval|test)(?:[/_. ]|$)", re.IGNORECASE)
END_OF_TIME = 4e9  # of a clock
LAST_STEP = 10**9


@dataclass(slots=True)
class Scalars:
    """Steps as they come."""

    _step: int | None = None
    _at_s: float = 0.0
    _loss: float | None = None
    _seconds: float | None = None
    _before: tuple[int, float] | None = field(default=None, repr=False)

    def add(self, *, at_s: float, step: int, name: str, value: float) -> Iterator[str]:
        """Take one figure; the line of the step before it, if it begins another."""
        is_loss, is_time = _LOSS.search(name), _SECONDS.search(name)
        if _OTHERS.search(name) or not 0 <= step < LAST_STEP or not 0 <= at_s < END_OF_TIME:
            return
        if not (is_loss or is_time):
            return
        if step != self._step:
            yield from self.ended()
            self._step = step
        self._at_s = at_s
        if is_loss:
            self._loss = value
        elif math.isfinite(value) and value > 0:
            self._seconds = value

    def ended(self) -> Iterator[str]:
        """The line of the step so far."""
        if self._step is None:
            return
        step, at_s, seconds, before = self._step, self._at_s, self._seconds, self._before
        if seconds is None and before is not None and step > before[0] and at_s > before[1]:
            seconds = (at_s - before[1]) / (step - before[0])
        if seconds is not None:
            moment = dt.datetime.fromtimestamp(at_s, dt.UTC)
            loss = "" if self._loss is None else f" loss: {self._loss:.7g}"
            yield (
                f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond:06d} Progress on:train "
                f"{step}it/- rate:{min(seconds, 1e8):.6f}s/it{loss}"
            )
        self._before = step, at_s
        self._step = self._loss = self._seconds = None

"""A training loss that is not finite, jumps, or does not fall.

A jump is held against the scatter of the losses before it, and must last: the loss of one batch
says little. What does not fall is a loss that has stayed within 2% of where it began, or a figure
that is printed again and again.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from statistics import median

from core.watch.level import OF_DEVIATION
from core.watch.records import Alert, AlertKind

BEFORE = 100  # losses that a jump is held against
LEAST_BEFORE = 30
HIGH_IN_A_ROW = 3
SCATTERS = 8.0  # deviations; chosen
JUMP = 0.10  # of the loss, at least
FLAT_STEPS = 500.0  # steps of training within which a loss falls; chosen
FELL = 0.02
REPEATED = 100  # times the same figure


@dataclass(slots=True)
class Losses:
    """Losses as they come."""

    _before: deque[float] = field(default_factory=lambda: deque(maxlen=BEFORE))
    _bound: float = math.inf
    _bound_age: int = 0
    _high: list[float] = field(default_factory=list)  # times of those that are high
    _first: float | None = None
    _first_at_s: float = 0.0
    _lowest: float = math.inf
    _steps: float = 0.0
    _count: int = 0
    _same: tuple[float, int, float] = (math.nan, 0, 0.0)  # figure, times, since
    _alerted: set[AlertKind] = field(default_factory=set)

    def add(self, at_s: float, loss: float, steps: float) -> Alert | None:
        """Take the loss of `steps` more steps of training; what is wrong with it, once."""
        if not math.isfinite(loss):
            return self._once("loss_not_finite", at_s, loss)
        self._alerted.discard("loss_not_finite")
        return self._spike(at_s, loss) or self._flat(at_s, loss, steps)

    def restart(self) -> None:
        """Begin again after a restart, which may have gone back far."""
        self._high.clear()
        self._before.clear()
        self._bound = math.inf

    def _once(self, kind: AlertKind, since_s: float, loss: float) -> Alert | None:
        if kind in self._alerted:
            return None
        self._alerted.add(kind)
        return Alert(kind=kind, since_s=since_s, size=loss)

    def _spike(self, at_s: float, loss: float) -> Alert | None:
        if len(self._before) < LEAST_BEFORE:
            self._before.append(loss)
            return None
        if loss <= self._usual():
            self._high.clear()
            self._alerted.discard("loss_spike")
            self._before.append(loss)
            return None
        self._high.append(at_s)
        if len(self._high) < HIGH_IN_A_ROW:
            return None
        if len(self._high) > BEFORE:  # it stays there: that is the level now
            self.restart()
            return None
        return self._once("loss_spike", self._high[0], loss)

    def _usual(self) -> float:
        """The highest loss that is no jump, computed anew every tenth time."""
        self._bound_age += 1
        if self._bound_age >= 10 or self._bound == math.inf:
            middle = median(self._before)
            scatter = OF_DEVIATION * median(abs(x - middle) for x in self._before)
            self._bound = middle + max(SCATTERS * scatter, JUMP * abs(middle))
            self._bound_age = 0
        return self._bound

    def _flat(self, at_s: float, loss: float, steps: float) -> Alert | None:
        if self._first is None:
            self._first, self._first_at_s = loss, at_s
        self._count += 1
        self._steps += steps
        self._lowest = min(self._lowest, loss)
        figure, times, since = self._same
        self._same = (figure, times + 1, since) if loss == figure else (loss, 1, at_s)
        if self._same[1] == REPEATED:
            return self._once("loss_flat", self._same[2], loss)
        fell = self._lowest < self._first - FELL * abs(self._first)
        if fell or self._steps < FLAT_STEPS or self._count < LEAST_BEFORE or self._first < 1.0:
            return None
        return self._once("loss_flat", self._first_at_s, loss)

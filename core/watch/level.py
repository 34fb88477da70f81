"""A lasting change of speed, and a speed below the forecast for ten minutes.

The newest steps are held against the first ones after the warm-up, by their medians. A change
counts if it is large enough to matter, if it is many standard errors large, and if both halves of
the newest steps show it: one slow step is none. Errors come from the median absolute deviation and
from the correlation of neighbours, so that a noisy run needs a larger change.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from statistics import median

from core.watch.belief import Seen
from core.watch.records import Alert

BASE, LEAST_BASE = 200, 30  # steps that are held against; chosen
NEWEST = 20  # steps
LEAST_CHANGE, RECOVERED = 0.05, 0.02  # of the logarithm; chosen
SIGNIFICANT = 6.0  # standard errors: a run has 1e5 steps, and one false alert is too many
LASTS_S = 600.0  # below the forecast
OF_MEDIAN = 1.2533  # error of a median over that of a mean: the root of pi / 2
OF_DEVIATION = 1.4826  # standard deviation over median absolute deviation, of a normal


@dataclass(slots=True)
class Level:
    """Speeds as they come."""

    base: list[float] = field(default_factory=list)
    newest: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=NEWEST))
    is_slow: bool = False
    _middle: float = 0.0  # of the base
    _error: float = 0.0  # standard deviation of one step of the base
    _weight: float = 1.0  # independent values of each step

    def add(self, at_s: float, tokens_per_s: float) -> Alert | None:
        """Take one more step; return a lasting change, with a size below 0 for a recovery."""
        if len(self.newest) == NEWEST and len(self.base) < BASE and not self.is_slow:
            self.base.append(self.newest[0][1])
            if len(self.base) % 10 == 0:
                self._measure()
        self.newest.append((at_s, math.log(tokens_per_s)))
        if len(self.base) < LEAST_BASE:
            return None
        return self._change()

    @property
    def now(self) -> float | None:
        """The median speed of the newest steps; None before the first."""
        return math.exp(median(x for _, x in self.newest)) if self.newest else None

    def _measure(self) -> None:
        middle = self._middle = median(self.base)
        scatter = OF_DEVIATION * median(abs(x - middle) for x in self.base)
        seen = Seen()
        for x in self.base:
            seen.add(min(max(x, middle - 4 * scatter), middle + 4 * scatter))
        self._error = max(scatter, 1e-3)
        self._weight = max(seen.effective_count / len(self.base), 0.02)

    def _change(self) -> Alert | None:
        middle = self._middle
        values = [x for _, x in self.newest]
        lower = middle - median(values)
        if not self.is_slow and lower < LEAST_CHANGE:
            return None
        errors = 1 / len(values) + 1 / len(self.base)
        error = OF_MEDIAN * self._error * math.sqrt(errors / self._weight)
        half = len(values) // 2
        share = 1 - math.exp(-lower)
        if self.is_slow:
            if lower < RECOVERED:
                self.is_slow = False
                return self._alert(self.newest[0][0], -share, lower / error)
            return None
        lasts = min(middle - median(values[:half]), middle - median(values[half:]))
        if lasts < 0.8 * LEAST_CHANGE or lower < SIGNIFICANT * error:
            return None
        self.is_slow = True
        since = next(at for at, x in self.newest if middle - x > lower / 2)
        return self._alert(since, share, lower / error)

    def _alert(self, since_s: float, share: float, significance: float) -> Alert:
        return Alert(kind="slowing", since_s=since_s, size=share, significance=significance)


@dataclass(slots=True)
class Below:
    """Whether the speed stays below a bound."""

    bound: float  # tokens/s
    _since_s: float | None = None
    _count: int = 0
    _alerted: bool = False
    _newest: deque[float] = field(default_factory=lambda: deque(maxlen=5))

    def add(self, at_s: float, tokens_per_s: float) -> float | None:
        """Since when the speed is below the bound, once it has been for ten minutes."""
        self._newest.append(tokens_per_s)
        if median(self._newest) >= self.bound:
            self._since_s, self._count, self._alerted = None, 0, False
            return None
        self._since_s = at_s if self._since_s is None else self._since_s
        self._count += 1
        if self._alerted or self._count < 5 or at_s - self._since_s < LASTS_S:
            return None
        self._alerted = True
        return self._since_s

    def restart(self) -> None:
        """Begin again, as after a restart."""
        self._since_s, self._count = None, 0
        self._newest.clear()

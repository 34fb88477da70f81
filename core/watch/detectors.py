"""What goes wrong in a run: gaps in time, changes of speed, losses, ranks.

A gap is what passed beyond the steps at their usual speed. It is a checkpoint if the log says that
one was saved, a stall if it is long, else a pause. Stalls that come again and again with about the
same length are the rhythm of the run: from the third on they are no news.

For a change of speed the newest steps are compared with the first ones after the warm-up, by their
medians. A change counts if it is large enough to matter, if it is many standard errors large, and
if both halves of the newest steps show it. Errors come from the median absolute deviation and from
the correlation of neighbours, so that a noisy run needs a larger change.

A jump of the loss is compared with the scatter of the losses before it, and must last. A loss does
not fall if it stays within 2% of where it began, or is printed again and again. That a rank is
slower than the others, or silent, only logs of several ranks show.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from statistics import median

from core.watch.outlook import SpeedSums
from core.watch.records import Alert, AlertKind, LossKind

STALL_S, STALL_INTERVALS = 120.0, 10.0  # at least, and times the usual time between logged steps
LEAST_S, LEAST_SHARE = 2.0, 0.5  # of a gap: clocks of logs have whole seconds
LONG_CHECKPOINT = 5.0  # times the usual one
RHYTHM = 3  # gaps of a length
SAME_LENGTH = 1.5
BASE, LEAST_BASE = 200, 30  # steps that are held against; chosen
NEWEST = 20  # steps
LEAST_CHANGE, RECOVERED = 0.05, 0.02  # of the logarithm; chosen
SIGNIFICANT = 6.0  # standard errors: a run has 1e5 steps, and one false alert is too many
LASTS_S = 600.0  # below the forecast
OF_MEDIAN = 1.2533  # error of a median over that of a mean: the root of pi / 2
OF_DEVIATION = 1.4826  # standard deviation over median absolute deviation, of a normal
BEFORE = 100  # losses that a jump is held against
LEAST_BEFORE = 30
HIGH_IN_A_ROW = 3
SCATTERS = 8.0  # deviations; chosen
JUMP = 0.10  # of the loss, at least
FLAT_STEPS = 500.0  # steps of training within which a loss falls; chosen
FELL = 0.02
REPEATED = 100  # times the same figure
WINDOW = 12  # steps of each rank
BEHIND = 0.04  # of its speed; chosen
SILENT = 5  # logged steps of the others


@dataclass(slots=True)
class Gaps:
    """Gaps as they come."""

    _intervals: deque[float] = field(default_factory=lambda: deque(maxlen=31))
    _checkpoints: deque[float] = field(default_factory=lambda: deque(maxlen=31))
    _stalls: deque[float] = field(default_factory=lambda: deque(maxlen=100))

    def interval(self, passed_s: float) -> None:
        """Take the time between two logged steps without a gap."""
        self._intervals.append(passed_s)

    @property
    def usual_s(self) -> float:
        """The usual time between two logged steps; 0 before the first."""
        return median(self._intervals) if self._intervals else 0.0

    @property
    def checkpoint_s(self) -> float | None:
        """The usual gap for a checkpoint; None before the first."""
        return median(self._checkpoints) if self._checkpoints else None

    @property
    def stall_s(self) -> float:
        """From where a gap is a stall."""
        return max(STALL_S, STALL_INTERVALS * self.usual_s)

    def kind(self, gap_s: float, expected_s: float, *, saved: bool) -> LossKind | None:
        """What a gap is; None if it is none."""
        if gap_s < max(LEAST_S, LEAST_SHARE * expected_s):
            return None
        if saved:
            usual = self.checkpoint_s or gap_s
            if gap_s < max(self.stall_s, LONG_CHECKPOINT * usual):
                self._checkpoints.append(gap_s)
                return "checkpoint"
            return "stall"
        return "stall" if gap_s >= self.stall_s else "pause"

    def is_news(self, gap_s: float) -> bool:
        """Whether a stall is not one of a rhythm."""
        alike = sum(gap_s / SAME_LENGTH < x < gap_s * SAME_LENGTH for x in self._stalls)
        self._stalls.append(gap_s)
        return alike < RHYTHM


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
        seen = SpeedSums()
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


@dataclass(slots=True)
class Ranks:
    """Steps of ranks as they come."""

    _speeds: dict[str, deque[tuple[float, float]]] = field(default_factory=dict)
    _at: dict[str, tuple[int, float]] = field(default_factory=dict)  # logged steps of the job, time
    _steps: int = 0  # logged steps of the job
    _alerted: set[str] = field(default_factory=set)

    def add(self, at_s: float, rank: str, tokens_per_s: float, *, is_first: bool) -> Alert | None:
        """Take the step of a rank, which may be the first to log it; a rank that stands out."""
        self._steps += is_first
        self._at[rank] = self._steps, at_s
        kept = self._speeds.setdefault(rank, deque(maxlen=WINDOW))
        kept.append((at_s, math.log(tokens_per_s)))
        if len(self._speeds) < 2:
            return None
        return self._silent() if is_first else self._slow(rank)

    def restart(self) -> None:
        """Begin again: after a restart other ranks may log."""
        self._speeds.clear()
        self._at.clear()

    def _silent(self) -> Alert | None:
        for rank, (step, at_s) in self._at.items():
            regular = len(self._speeds[rank]) == WINDOW
            if regular and self._steps - step >= SILENT and rank not in self._alerted:
                self._alerted.add(rank)
                return Alert(kind="rank_silent", since_s=at_s, subject=rank)
        return None

    def _slow(self, rank: str) -> Alert | None:
        own = self._speeds[rank]
        others = [x for r, kept in self._speeds.items() if r != rank for _, x in kept]
        if len(own) < WINDOW or len(others) < WINDOW or rank in self._alerted:
            return None
        middle = median(others)
        below = [middle - x for _, x in own]
        lower = median(below)
        scatter = max(OF_DEVIATION * median(abs(x - lower) for x in below), 2e-3)
        error = OF_MEDIAN * scatter / math.sqrt(len(own))
        if lower < BEHIND or lower < SIGNIFICANT * error or min(below) < 0:
            return None
        self._alerted.add(rank)
        return Alert(
            kind="rank_behind", since_s=own[0][0], size=1 - math.exp(-lower),
            significance=lower / error, subject=rank,
        )  # fmt: skip

"""Time between two logged steps that was not spent on training: what it was.

A gap is what passed beyond the steps at their usual speed. It is a checkpoint if the log says that
one was saved, a stall if it is long, else a pause. Pauses that come again and again with about the
same length are the rhythm of the run: from the third on they are no news.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median

from core.watch.records import LossKind

STALL_S, STALL_INTERVALS = 120.0, 10.0  # at least, and times the usual time between logged steps
LEAST_S, LEAST_SHARE = 2.0, 0.5  # of a gap: clocks of logs have whole seconds
LONG_CHECKPOINT = 5.0  # times the usual one
RHYTHM = 3  # gaps of a length
ALIKE = 1.5


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
        alike = sum(gap_s / ALIKE < x < gap_s * ALIKE for x in self._stalls)
        self._stalls.append(gap_s)
        return alike < RHYTHM

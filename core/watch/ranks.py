"""A rank that is slower than the others, or silent. Only logs of several ranks show it."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from statistics import median

from core.watch.level import OF_DEVIATION, OF_MEDIAN
from core.watch.records import Alert

WINDOW = 12  # steps of each rank
BEHIND = 0.04  # of its speed; chosen
SIGNIFICANT = 6.0
SILENT = 5  # logged steps of the others


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

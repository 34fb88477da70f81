"""A run so far: its readings one by one, and everything found in them. Its memory does not grow."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from core.watch.belief import Belief, Seen, prior, updated
from core.watch.gaps import Gaps
from core.watch.level import Below, Level
from core.watch.losses import Losses
from core.watch.outlook import Outlook, outlook
from core.watch.ranks import Ranks
from core.watch.reading import Alert, AlertKind, Event, LossKind, Planned, Reading

WARM_UP_STEPS = 10.0  # of each start; as for the steady state of a finished log
NEAR_FULL = 0.97  # of the memory of a device
RESTARTS, WITHIN_S = 3, 86_400.0  # are repeated
EVENTS = 500  # the newest are kept
RANKS = 4_096


@dataclass(slots=True, kw_only=True)
class Tracker:
    """One run held against its plan."""

    planned: Planned
    begin_s: float | None = None
    now_s: float = 0.0
    tokens: float = 0.0  # trained and not lost again
    best: float = 0.0  # the most that the run ever had
    num_starts: int = 0
    num_readings: int = 0
    last_loss: float | None = None
    peak_memory_bytes: float = 0.0
    speed: float | None = None  # of the newest steps
    lost_s: dict[LossKind, float] = field(default_factory=dict)
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=EVENTS))
    alerts: deque[Alert] = field(default_factory=lambda: deque(maxlen=EVENTS))
    num_losses: int = 0
    trained_s: float = 0.0  # at the printed speed, on tokens that were new
    _seen: Seen = field(default_factory=Seen)
    _level: Level = field(default_factory=Level)
    _below: Below | None = None
    _losses: Losses = field(default_factory=Losses)
    _ranks: Ranks = field(default_factory=Ranks)
    _gaps: Gaps = field(default_factory=Gaps)
    _last: Reading | None = None  # that the job advanced with
    _start_tokens: float = 0.0
    _readings_of_start: int = 0
    _of_rank: dict[str, tuple[int, float]] = field(default_factory=dict)  # start, tokens
    _saved: bool = False
    _stalled: bool = False
    _restarts: deque[float] = field(default_factory=lambda: deque(maxlen=RESTARTS))
    _once: set[str] = field(default_factory=set)

    def add(self, reading: Reading) -> Iterator[Alert]:
        """Take one reading; the alerts that it gives."""
        if self.begin_s is None:
            self.begin_s = reading.at_s
        self.now_s = max(self.now_s, reading.at_s)
        self.num_readings += 1
        is_first, restarted = self._place(reading)
        found: list[Alert | None] = []
        if restarted:
            found += self._restarted(reading)
        if is_first:
            found += self._advanced(reading)
        if reading.rank and self._is_warm(reading):
            found.append(self._rank(reading, is_first=is_first))
        found.append(self._memory(reading))
        yield from self._kept(found)

    def start(self, at_s: float) -> None:
        """The log says that the job starts."""
        self._begin(at_s)
        if self._readings_of_start or not self.num_starts:
            self.num_starts += 1
            self._readings_of_start = 0

    def checkpoint(self, at_s: float) -> None:
        """The log says that a checkpoint was saved."""
        self._begin(at_s)
        self._saved = True

    def fault(self, at_s: float, text: str, kind: AlertKind = "fault") -> Iterator[Alert]:
        """The log prints a fault, which many ranks may repeat."""
        self._begin(at_s)
        recent = f"{kind} {self.num_starts}"
        if recent not in self._once and len(self._once) < RANKS:
            self._once.add(recent)
            yield from self._kept(
                [Alert(kind=kind, at_s=at_s, since_s=at_s, lost_s=0.0, subject=text)]
            )

    def tick(self, now_s: float) -> Iterator[Alert]:
        """Time passes without a reading."""
        last = self._last
        if last is None or self._stalled or self.tokens >= self.planned.tokens:
            return
        gap = now_s - last.at_s - self._gaps.usual_s
        if gap >= self._gaps.stall_s:
            self._stalled = True
            yield from self._kept(
                [Alert(kind="stall", at_s=now_s, since_s=last.at_s, lost_s=gap, size=gap)]
            )

    @property
    def last_at_s(self) -> float | None:
        """The time of the newest step; None before the first."""
        return None if self._last is None else self._last.at_s

    @property
    def checkpoint_s(self) -> float | None:
        """The usual stop for a checkpoint; None: none was seen."""
        return self._gaps.checkpoint_s

    @property
    def belief(self) -> Belief:
        """The speed of the run: its forecast, and what was seen since the last lasting change."""
        p = self.planned
        return updated(prior(p10=p.p10, p50=p.p50, p90=p.p90), self._seen)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the begin."""
        return 0.0 if self.begin_s is None else self.now_s - self.begin_s

    @property
    def goodput(self) -> float | None:
        """The share of time that was spent on training that was kept; None before any."""
        lost = sum(self.lost_s.values())
        return max(1 - lost / self.elapsed_s, 0.0) if self.elapsed_s > 0 else None

    @property
    def outlook(self) -> Outlook:
        """How the run goes on."""
        since_start_up = self.elapsed_s - self.lost_s.get("start_up", 0.0)
        return outlook(
            self.planned,
            self.belief,
            tokens=self.tokens,
            elapsed_s=self.elapsed_s,
            trained_s=self.trained_s,
            lost_s=max(since_start_up - self.trained_s, 0.0),
            num_losses=self.num_losses,
        )

    def _begin(self, at_s: float) -> None:
        self.begin_s = at_s if self.begin_s is None else self.begin_s
        self.now_s = max(self.now_s, at_s)

    def _place(self, reading: Reading) -> tuple[bool, bool]:
        """Whether the reading is the first of its step, and whether it is of a new start."""
        known = self._of_rank.get(reading.rank)
        before, restarted = self.num_starts, False
        if self._last is None:
            self.num_starts = max(self.num_starts, 1)
        elif known is not None and known[0] == self.num_starts and reading.tokens < known[1]:
            self.num_starts += 1
        restarted = self._last is not None and (
            self.num_starts > before or self._readings_of_start == 0
        )
        if restarted:
            self._readings_of_start = 0
        if known is not None or len(self._of_rank) < RANKS:
            self._of_rank[reading.rank] = self.num_starts, reading.tokens
        return restarted or self._last is None or reading.tokens > self._last.tokens, restarted

    def _restarted(self, reading: Reading) -> list[Alert | None]:
        """A new start: what was lost between the last step and the first one that is new."""
        last = self._last
        if last is None:
            return []
        step = self._gaps.usual_s
        redone = max(self.best - reading.tokens + self.planned.step_tokens, 0.0)
        down = max(reading.at_s - last.at_s - step, 0.0)
        self._lose("restart", reading.at_s, down + redone / self.belief.median, redone)
        self._start_tokens = reading.tokens
        self._stalled = self._saved = False
        for part in (self._losses, self._ranks):
            part.restart()
        if self._below is not None:
            self._below.restart()
        self._restarts.append(reading.at_s)
        first = self._restarts[0]
        if len(self._restarts) < RESTARTS or reading.at_s - first > WITHIN_S:
            self._once.discard("restarts")
            return []
        if "restarts" in self._once:
            return []
        self._once.add("restarts")
        lost = self.lost_s["restart"]
        left = self._left_s()
        rate = lost / max(self.elapsed_s, 1.0)
        return [self._alert("repeated_restarts", first, lost_s=rate * left, size=float(RESTARTS))]

    def _advanced(self, reading: Reading) -> list[Alert | None]:
        """The job has trained on: its gap, its speed, its loss."""
        last, found = self._last, list[Alert | None]()
        is_new_start = self._readings_of_start == 0
        gap: LossKind | None = None
        if last is None:
            self._start_tokens = reading.tokens
            passed = reading.at_s - (self.begin_s or 0.0) - reading.tokens / reading.tokens_per_s
            if passed > 0:
                self._lose("start_up", reading.at_s, passed)
        elif not is_new_start:
            gap = self._gap(last, reading, found)
        rate = reading.tokens_per_s if gap is None else self._level.now or reading.tokens_per_s
        self.trained_s += max(reading.tokens - self.best, 0.0) / rate
        self._readings_of_start += 1
        self.tokens, self.best = reading.tokens, max(self.best, reading.tokens)
        self._last, self._saved, self._stalled = reading, False, False
        if reading.loss is not None:
            steps = (
                1.0 if last is None else (reading.tokens - last.tokens) / self.planned.step_tokens
            )
            self.last_loss = reading.loss
            wrong = self._losses.add(reading.at_s, reading.loss, max(steps, 0.0))
            if wrong is not None:
                found.append(self._alert(
                    wrong.kind, wrong.since_s, lost_s=reading.at_s - wrong.since_s, size=wrong.loss
                ))  # fmt: skip
        if self._is_warm(reading):
            found += self._speed(reading, is_clean=gap is None)
        return found

    def _gap(self, last: Reading, reading: Reading, found: list[Alert | None]) -> LossKind | None:
        """The gap before a reading, counted, and an alert if it is a stall."""
        passed = reading.at_s - last.at_s
        expected = (reading.tokens - last.tokens) / (self._level.now or reading.tokens_per_s)
        kind = self._gaps.kind(passed - expected, expected, saved=self._saved)
        if kind is None:
            self._gaps.interval(passed)
            return None
        lost = passed - expected
        self._lose(kind, reading.at_s, lost)
        if kind == "stall" and self._gaps.is_news(lost) and not self._stalled:
            found.append(self._alert("stall", last.at_s, lost_s=lost, size=lost))
        return kind

    def _speed(self, reading: Reading, *, is_clean: bool) -> list[Alert | None]:
        """The speed of a step after the warm-up."""
        at, rate = reading.at_s, reading.tokens_per_s
        found: list[Alert | None] = []
        if is_clean:
            self._seen.add(math.log(rate))
        change = self._level.add(at, rate)
        self.speed = self._level.now
        if change is not None:
            self._seen = Seen()
            for _, value in self._level.newest:
                self._seen.add(value)
            if change.share > 0:
                lost = self._left_s() * change.share
                found.append(self._alert(
                    "slowing", change.since_s, lost_s=lost, size=change.share,
                    significance=change.significance,
                ))  # fmt: skip
        if self._below is None:
            self._below = Below(self.planned.p10)
        if is_clean and (since := self._below.add(at, rate)) is not None:
            share = 1 - (self.speed or rate) / self.planned.p50
            found.append(
                self._alert("slower_than_p10", since, lost_s=self._left_s() * share, size=share)
            )
        return found

    def _rank(self, reading: Reading, *, is_first: bool) -> Alert | None:
        found = self._ranks.add(
            reading.at_s, reading.rank, reading.tokens_per_s, is_first=is_first
        )  # fmt: skip
        if found is None:
            return None
        return self._alert(
            "rank_behind" if found.share else "rank_silent", found.since_s,
            lost_s=self._left_s() * found.share, size=found.share,
            significance=found.significance, subject=found.rank,
        )  # fmt: skip

    def _memory(self, reading: Reading) -> Alert | None:
        used, whole = reading.memory_bytes, self.planned.memory_bytes
        if used is None:
            return None
        self.peak_memory_bytes = max(self.peak_memory_bytes, used)
        if whole is None or used < NEAR_FULL * whole or "memory" in self._once:
            return None
        self._once.add("memory")
        return self._alert("memory", reading.at_s, lost_s=0.0, size=used / whole)

    def _is_warm(self, reading: Reading) -> bool:
        warm = WARM_UP_STEPS * self.planned.step_tokens
        return self._readings_of_start > 1 and reading.tokens - self._start_tokens >= warm

    def _left_s(self) -> float:
        """Seconds of training that are left at the believed speed."""
        return max(self.planned.tokens - self.tokens, 0.0) / self.belief.median

    def _lose(self, kind: LossKind, at_s: float, lost_s: float, redone: float = 0.0) -> None:
        self.lost_s[kind] = self.lost_s.get(kind, 0.0) + lost_s
        if kind != "start_up":
            self.num_losses += 1
        if kind not in ("pause", "checkpoint"):
            self.events.append(Event(kind=kind, at_s=at_s, lost_s=lost_s, tokens_redone=redone))

    def _alert(
        self, kind: AlertKind, since_s: float, *, lost_s: float, size: float,
        significance: float | None = None, subject: str = "",
    ) -> Alert:  # fmt: skip
        return Alert(
            kind=kind, at_s=self.now_s, since_s=since_s, lost_s=max(lost_s, 0.0), size=size,
            significance=significance, subject=subject,
        )  # fmt: skip

    def _kept(self, found: list[Alert | None]) -> Iterator[Alert]:
        for alert in found:
            if alert is not None:
                self.alerts.append(alert)
                yield alert

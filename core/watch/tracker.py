"""A run so far: its steps one by one, and everything found in them. Its memory does not grow."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from core.watch.detectors import Below, Gaps, Level, Losses, Ranks
from core.watch.outlook import Belief, Outlook, SpeedSums, outlook, prior, updated
from core.watch.records import Alert, Event, LossKind, Planned, StepRecord

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
    events: list[Event] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)
    num_losses: int = 0
    trained_s: float = 0.0  # at the printed speed, on tokens that were new
    _seen: SpeedSums = field(default_factory=SpeedSums)
    _level: Level = field(default_factory=Level)
    _below: Below = field(init=False)
    _losses: Losses = field(default_factory=Losses)
    _ranks: Ranks = field(default_factory=Ranks)
    _gaps: Gaps = field(default_factory=Gaps)
    _last: StepRecord | None = None  # that the job advanced with
    _start_tokens: float = 0.0
    _steps_of_start: int = 0
    _of_rank: dict[str, tuple[int, float]] = field(default_factory=dict)  # start, tokens
    _fault_start: int = -1  # start in which a fault was last told
    _saved: bool = False
    _stalled: bool = False
    _restarts: deque[float] = field(default_factory=lambda: deque(maxlen=RESTARTS))
    _once: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._below = Below(self.planned.p10)

    def add(self, step: StepRecord) -> Iterator[Alert]:
        """Take one step; return the alerts that it gives."""
        self._begin(step.at_s)
        self.num_readings += 1
        is_first, restarted = self._place(step)
        if restarted:
            yield from self._restarted(step)
        if is_first:
            yield from self._advanced(step)
        if step.rank and self._is_warm(step):
            alert = self._ranks.add(step.at_s, step.rank, step.tokens_per_s, is_first=is_first)
            if alert is not None:
                yield self._alert(alert, self._left_s() * alert.size)
        yield from self._memory(step)

    def start(self, at_s: float) -> None:
        """The log says that the job starts."""
        self._begin(at_s)
        if self._steps_of_start or not self.num_starts:
            self.num_starts += 1
            self._steps_of_start = 0

    def checkpoint(self, at_s: float) -> None:
        """The log says that a checkpoint was saved."""
        self._begin(at_s)
        self._saved = True

    def fault(self, at_s: float, text: str) -> Iterator[Alert]:
        """The log prints a fault, which many ranks may repeat."""
        self._begin(at_s)
        if self._fault_start != self.num_starts:
            self._fault_start = self.num_starts
            yield self._alert(Alert(kind="fault", since_s=at_s, subject=text))

    def tick(self, now_s: float) -> Iterator[Alert]:
        """Time passes without a step."""
        last = self._last
        if last is None or self._stalled or self.tokens >= self.planned.tokens:
            return
        gap = now_s - last.at_s - self._gaps.usual_s
        if gap >= self._gaps.stall_s:
            self._stalled = True
            yield self._alert(Alert(kind="stall", since_s=last.at_s, size=gap), gap, at_s=now_s)

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
    def num_steps(self) -> float:
        """Steps of training that are done."""
        return self.tokens / self.planned.step_tokens

    @property
    def share(self) -> float:
        """The share of the run that is done."""
        return min(self.tokens / self.planned.tokens, 1.0)

    @property
    def is_done(self) -> bool:
        """Whether the last step was logged, but for a rounded one."""
        return self.tokens >= self.planned.tokens - 1.5 * self.planned.step_tokens

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

    def _place(self, step: StepRecord) -> tuple[bool, bool]:
        """Whether the step is the first of its step, and whether it is of a new start."""
        known = self._of_rank.get(step.rank)
        before, restarted = self.num_starts, False
        if self._last is None:
            self.num_starts = max(self.num_starts, 1)
        elif known is not None and known[0] == self.num_starts and step.tokens < known[1]:
            self.num_starts += 1
        restarted = self._last is not None and (
            self.num_starts > before or self._steps_of_start == 0
        )
        if restarted:
            self._steps_of_start = 0
        if known is not None or len(self._of_rank) < RANKS:
            self._of_rank[step.rank] = self.num_starts, step.tokens
        return restarted or self._last is None or step.tokens > self._last.tokens, restarted

    def _restarted(self, step: StepRecord) -> Iterator[Alert]:
        """A new start: what was lost between the last step and the first one that is new."""
        last = self._last
        if last is None:
            return
        redone = max(self.best - step.tokens + self.planned.step_tokens, 0.0)
        down = max(step.at_s - last.at_s - self._gaps.usual_s, 0.0)
        self._lose("restart", step.at_s, down + redone / self.belief.median, redone)
        self._start_tokens = step.tokens
        self._stalled = self._saved = False
        for part in (self._losses, self._ranks, self._below):
            part.restart()
        self._restarts.append(step.at_s)
        first = self._restarts[0]
        if len(self._restarts) < RESTARTS or step.at_s - first > WITHIN_S:
            self._once.discard("restarts")
        elif self._is_new("restarts"):
            rate = self.lost_s["restart"] / max(self.elapsed_s, 1.0)
            alert = Alert(kind="repeated_restarts", since_s=first, size=float(RESTARTS))
            yield self._alert(alert, rate * self._left_s())

    def _advanced(self, step: StepRecord) -> Iterator[Alert]:
        """The job has trained on: its gap, its speed, its loss."""
        last = self._last
        gap: LossKind | None = None
        if last is None:
            self._start_tokens = step.tokens
            passed = step.at_s - (self.begin_s or 0.0) - step.tokens / step.tokens_per_s
            if passed > 0:
                self._lose("start_up", step.at_s, passed)
        elif self._steps_of_start:
            passed = step.at_s - last.at_s
            expected = (step.tokens - last.tokens) / (self._level.now or step.tokens_per_s)
            lost = passed - expected
            gap = self._gaps.kind(lost, expected, saved=self._saved)
            if gap is None:
                self._gaps.interval(passed)
            else:
                self._lose(gap, step.at_s, lost)
            if gap == "stall" and self._gaps.is_news(lost) and not self._stalled:
                yield self._alert(Alert(kind="stall", since_s=last.at_s, size=lost), lost)
        rate = step.tokens_per_s if gap is None else self._level.now or step.tokens_per_s
        self.trained_s += max(step.tokens - self.best, 0.0) / rate
        self._steps_of_start += 1
        self.tokens, self.best = step.tokens, max(self.best, step.tokens)
        self._last, self._saved, self._stalled = step, False, False
        if step.loss is not None:
            passed = step.tokens - (last.tokens if last else step.tokens - self.planned.step_tokens)
            self.last_loss = step.loss
            alert = self._losses.add(
                step.at_s, step.loss, max(passed / self.planned.step_tokens, 0.0)
            )
            if alert is not None:
                yield self._alert(alert, step.at_s - alert.since_s)
        if self._is_warm(step):
            yield from self._speed(step, is_clean=gap is None)

    def _speed(self, step: StepRecord, *, is_clean: bool) -> Iterator[Alert]:
        """The speed of a step after the warm-up."""
        rate = step.tokens_per_s
        if is_clean:
            self._seen.add(math.log(rate))
        change = self._level.add(step.at_s, rate)
        self.speed = self._level.now
        if change is not None:
            self._seen = SpeedSums()
            for _, value in self._level.newest:
                self._seen.add(value)
            if change.size > 0:
                yield self._alert(change, self._left_s() * change.size)
        if is_clean and (since := self._below.add(step.at_s, rate)) is not None:
            share = 1 - (self.speed or rate) / self.planned.p50
            alert = Alert(kind="slower_than_p10", since_s=since, size=share)
            yield self._alert(alert, self._left_s() * share)

    def _memory(self, step: StepRecord) -> Iterator[Alert]:
        used, whole = step.memory_bytes or 0.0, self.planned.memory_bytes
        self.peak_memory_bytes = max(self.peak_memory_bytes, used)
        if whole is not None and used >= NEAR_FULL * whole and self._is_new("memory"):
            yield self._alert(Alert(kind="memory", since_s=step.at_s, size=used / whole))

    def _is_warm(self, step: StepRecord) -> bool:
        warm = WARM_UP_STEPS * self.planned.step_tokens
        return self._steps_of_start > 1 and step.tokens - self._start_tokens >= warm

    def _is_new(self, name: str) -> bool:
        """Whether something happens for the first time."""
        is_new = name not in self._once
        self._once.add(name)
        return is_new

    def _left_s(self) -> float:
        """Seconds of training that are left at the believed speed."""
        return max(self.planned.tokens - self.tokens, 0.0) / self.belief.median

    def _lose(self, kind: LossKind, at_s: float, lost_s: float, redone: float = 0.0) -> None:
        self.lost_s[kind] = self.lost_s.get(kind, 0.0) + lost_s
        if kind != "start_up":
            self.num_losses += 1
        if kind not in ("pause", "checkpoint"):
            self.events.append(Event(kind=kind, at_s=at_s, lost_s=lost_s, tokens_redone=redone))
            del self.events[:-EVENTS]

    def _alert(self, alert: Alert, lost_s: float = 0.0, *, at_s: float | None = None) -> Alert:
        """Complete and keep an alert."""
        now_s = self.now_s if at_s is None else at_s
        alert = replace(alert, at_s=now_s, lost_s=max(lost_s, 0.0))
        self.alerts.append(alert)
        del self.alerts[:-EVENTS]
        return alert

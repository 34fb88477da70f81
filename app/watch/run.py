"""A run so far: its logs, its tracker, its state at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from app.watch.plan import Held, mismatches
from core.watch.outlook import Outlook
from core.watch.reading import Alert, Event, Reading
from core.watch.tracker import Tracker
from runners.watch.beside import Sign
from runners.watch.job import JobLogs
from runners.watch.lines import Found

GIB = 2.0**30
STEPS_TO_JUDGE = 20  # before a speed far from the forecast is called that of another run


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A run at a time. Seconds are those of its log's clock."""

    held: Held
    begin_s: float | None  # None: no step yet
    now_s: float
    tokens: float
    num_steps: float
    num_starts: int
    speed: float | None  # tokens/s of the newest steps
    goodput: float | None
    loss: float | None
    peak_memory_bytes: float
    lost_s: dict[str, float]
    checkpoint_s: float | None  # that a checkpoint stops training, the usual one
    outlook: Outlook
    alerts: tuple[Alert, ...]
    events: tuple[Event, ...]
    is_done: bool  # the last step was logged
    mismatches: tuple[str, ...]
    notes: tuple[str, ...]
    signs: tuple[Sign, ...] = ()  # of files beside the log

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return 0.0 if self.begin_s is None else self.now_s - self.begin_s

    @property
    def share(self) -> float:
        """The share of the run that is done."""
        return min(self.tokens / self.held.planned.tokens, 1.0)

    @property
    def forecast_end_s(self) -> float:
        """Seconds from the start, as forecast: training at the P50, and what is lost."""
        planned = self.held.planned
        return planned.training_s * (1 + planned.lost_share)


class Watched:
    """One run held against its plan: what its logs add, and its state."""

    def __init__(self, held: Held, logs: JobLogs, signs: tuple[Sign, ...] = ()) -> None:
        self.held, self.logs, self.signs = held, logs, signs
        self.tracker = Tracker(planned=held.planned)

    def taken(self, found: Iterable[Found]) -> Iterator[tuple[float, list[Alert]]]:
        """Take what the logs gave: the time of each finding, and its alerts."""
        for one in found:
            yield one.at_s, list(self._taken(one))

    @property
    def is_done(self) -> bool:
        """Whether the last step was logged, but for a rounded one."""
        planned = self.held.planned
        return self.tracker.tokens >= planned.tokens - 1.5 * planned.step_tokens

    def state(self) -> State:
        """The run as it is."""
        t = self.tracker
        logs = self.logs.logs
        speed = t.speed if t.num_readings >= STEPS_TO_JUDGE else None
        return State(
            held=self.held,
            begin_s=t.begin_s,
            now_s=t.now_s,
            tokens=t.tokens,
            num_steps=t.tokens / self.held.planned.step_tokens,
            num_starts=t.num_starts,
            speed=t.speed,
            goodput=t.goodput,
            loss=t.last_loss,
            peak_memory_bytes=t.peak_memory_bytes,
            lost_s={str(kind): lost for kind, lost in t.lost_s.items()},
            checkpoint_s=t.checkpoint_s,
            outlook=t.outlook,
            alerts=tuple(t.alerts),
            events=tuple(t.events),
            is_done=self.is_done,
            mismatches=tuple(mismatches(self.held, logs, speed)),
            notes=(*self.held.notes, *self.logs.sentences),
            signs=self.signs,
        )

    def _taken(self, one: Found) -> Iterator[Alert]:
        t = self.tracker
        if one.step is not None:
            gib = one.step.memory_gib
            yield from t.add(
                Reading(
                    at_s=one.at_s,
                    tokens=one.tokens,
                    tokens_per_s=one.tokens_per_s,
                    rank=one.step.rank,
                    loss=one.loss,
                    memory_bytes=None if gib is None else gib * GIB,
                )
            )
        elif one.sign is not None and one.sign.kind == "start":
            t.start(one.at_s)
        elif one.sign is not None and one.sign.kind == "checkpoint":
            t.checkpoint(one.at_s)
        elif one.sign is not None:
            yield from t.fault(one.at_s, one.sign.text)

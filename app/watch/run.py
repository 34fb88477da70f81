"""A run so far: its logs against its plan, over time, and what it teaches the next plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.document import format as fmt
from app.imports.forecast import anchored
from app.watch.plan import WatchedPlan, mismatches
from core.errors import RuncastError
from core.failures.failures import GPUS_PER_COUNTED_NODE
from core.scenario import Scenario
from core.units import DAY_S, HOUR_S
from core.watch.records import Alert, StepRecord
from core.watch.tracker import Tracker
from hardware.outside import packed
from hardware.outside.json_text import OutsideError
from runners.imports.text import Text, text_of
from runners.watch.beside import Sign, signs_in
from runners.watch.job import JobLogs
from runners.watch.signs import LineSign

STEPS_TO_JUDGE = 20  # before a speed far from the forecast is called that of another run
LEAST_STEPS = 20  # before the speed of a run counts as measured
MOST_POINTS = 120
MOST_FILES = 16
MAX_BYTES = 16_000_000  # of all files of one upload, unpacked


@dataclass(slots=True, kw_only=True)
class WatchedRun(Tracker):
    """A run at a time. Seconds are those of its log's clock."""

    plan: WatchedPlan
    logs: JobLogs
    signs: tuple[Sign, ...] = ()  # of files beside the log

    def take(self, entries: Iterable[StepRecord | LineSign]) -> Iterator[tuple[float, list[Alert]]]:
        """Take what the logs gave: the time of each entry, and its alerts."""
        for entry in entries:
            alerts: list[Alert] = []
            if isinstance(entry, StepRecord):
                alerts = list(self.add(entry))
            elif entry.kind == "start":
                self.start(entry.at_s)
            elif entry.kind == "checkpoint":
                self.checkpoint(entry.at_s)
            else:
                alerts = list(self.fault(entry.at_s, entry.text))
            yield entry.at_s, alerts

    @property
    def mismatches(self) -> list[str]:
        """What says that the log is of another run than the plan."""
        speed = self.speed if self.num_readings >= STEPS_TO_JUDGE else None
        return mismatches(self.plan, self.logs.logs, speed)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is odd about the files, and what is assumed."""
        return (*self.plan.notes, *self.logs.sentences)


Point = dict[str, float]  # hours since the start, speed, quantiles of the end (h) and the dollars


def over_time(
    plan: WatchedPlan, files: Sequence[tuple[str, bytes]]
) -> tuple[WatchedRun, list[Point]]:
    """Read the files of one job, each a name and a content, and hold them against the plan."""
    texts, signs = _texts(files, plan.network_gb_per_s)
    logs = JobLogs.of_texts(texts, plan.facts)
    state = WatchedRun(planned=plan.planned, plan=plan, logs=logs, signs=signs)
    points: list[Point] = []
    every = 1
    for count, _ in enumerate(state.take(logs.found(is_last=True)), 1):
        if count % every == 0 and (point := _point(state)) is not None:
            points.append(point)
            if len(points) > MOST_POINTS:
                points, every = points[1::2], 2 * every
    last = _point(state)
    return state, [*points, *([last] if last else [])]


def _texts(
    files: Sequence[tuple[str, bytes]], network_gb_per_s: float | None
) -> tuple[list[Text], tuple[Sign, ...]]:
    """The logs among the files, which may be packed, and the signs of those that are no log;
    together no larger than the bound."""
    texts: list[Text] = []
    signs: list[Sign] = []
    left = MAX_BYTES
    try:
        if len(files) > MOST_FILES:
            raise OutsideError("are too many")
        for name, content in files:
            plain = packed.unpacked(content, left)
            left -= len(plain)
            if left < 0:
                raise OutsideError("are too large")
            own = list(signs_in(plain, name, network_gb_per_s=network_gb_per_s))
            signs += own
            if not own:
                texts.append(text_of(plain, name))
    except OutsideError:
        raise RuncastError(
            f"At most {MOST_FILES} files of {MAX_BYTES // 10**6} MB in all, unpacked, are read "
            "here: `runcast watch` follows larger ones."
        ) from None
    return texts, tuple(signs)


def _point(state: WatchedRun) -> Point | None:
    """What is known of the run at this time; None before its speed."""
    if state.speed is None:
        return None
    point = {"hours": state.elapsed_s / HOUR_S, "speed": state.speed}
    ahead = state.outlook
    for name, spread, unit in (("end", ahead.end_s, HOUR_S), ("usd", ahead.usd, 1.0)):
        if spread is not None:
            point |= {f"{name}_{q}": getattr(spread, q) / unit for q in ("p10", "p50", "p90")}
    return point


def with_speed(scenario: Scenario, state: WatchedRun) -> Scenario | None:
    """The scenario with the measured speed as its anchor; None: too few steps were logged."""
    if state.speed is None or state.num_steps < LEAST_STEPS:
        return None
    run = state.plan.run
    return anchored(
        scenario, state.speed / run.num_gpus, gpu=run.accelerator, num_gpus=run.num_gpus,
        layout=run.layout,
    )  # fmt: skip


def failure_fields(state: WatchedRun) -> dict[str, float]:
    """Fields of a scenario as this run had them; {} without a restart and a checkpoint. Each stop
    counts as one of its machines: a log does not tell failures of machines from those of software.
    """
    fields: dict[str, float] = {}
    restarts = [e for e in state.events if e.kind == "restart"]
    if restarts and state.elapsed_s > 0:
        nodes = max(state.plan.run.num_gpus / GPUS_PER_COUNTED_NODE, 1.0)
        redone = sum(e.tokens_redone for e in restarts) / state.outlook.speed.p50
        down = max(sum(e.lost_s for e in restarts) - redone, 0.0) / len(restarts)
        fields["failures_per_node_day"] = len(restarts) / (state.elapsed_s / DAY_S) / nodes
        fields |= {
            "job_failures_per_day": 0.0,
            "detection_s": 0.0,
            "wait_s": 0.0,
            "restart_s": down,
        }
    if state.checkpoint_s is not None:
        fields["checkpoint_s"] = state.checkpoint_s
    return {name: float(f"{value:.4g}") for name, value in fields.items()}


def failure_sentence(fields: dict[str, float], state: WatchedRun) -> str:
    """What the fields say."""
    parts = []
    if "restart_s" in fields:
        count = sum(e.kind == "restart" for e in state.events)
        parts.append(
            f"{count} restarts in {fmt.days(state.elapsed_s / 3600)}, each down for "
            f"{fmt.days(fields['restart_s'] / 3600)}: "
            f"{fields['failures_per_node_day']:.3g} failures per node-day"
        )
    if "checkpoint_s" in fields:
        parts.append(f"a checkpoint stops training for {fields['checkpoint_s']:.3g} s")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""

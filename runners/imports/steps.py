"""Steps of a training log, in any format, and their steady state.

Figures are kept in the unit of the tool; `steady` converts them to tokens/s per GPU with the batch,
sequence length and GPUs from the log or the user.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import ClassVar

import numpy as np

from core.units import GIB
from core.watch.records import StepRecord
from runners.imports.text import ImportFileError, whose

WARM_UP_STEPS = 10  # compilation, allocation and autotuning end within them; chosen
LEAST_STEPS = 3  # of fewer, only the first of each start is left out
FASTEST = 1e12  # tokens/s of a GPU that a log may say; chosen far above any
DRIFT = 0.05  # between the halves of a log: more is no steady state
LIMITS = {"seq_len": 2**24, "global_batch_size": 10**9, "num_gpus": 2**17}
OPTIONS = {
    "seq_len": "--seq-len", "global_batch_size": "--global-batch-size", "num_gpus": "--num-gpus",
}  # fmt: skip
MEANING = {
    "seq_len": "the tokens of a sequence", "global_batch_size": "the sequences of a step",
    "num_gpus": "the number of GPUs",
}  # fmt: skip
Facts = Mapping[str, int]  # of a run that the user gives, by their names in LIMITS


class Log:
    """A log of one format, read line by line. A subclass knows the lines of its format."""

    format: ClassVar[str]
    example: ClassVar[str] = ""  # a line of the format, for users
    unit = ""  # of the figure that the tool prints, in words
    is_mean = False  # one figure for the whole run, including its warm-up
    notes: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.steps: list[StepRecord] = []  # of a log that was read to its end
        self.facts: dict[str, int] = {}  # fields of a scenario, as printed
        self.device = ""

    def line(self, rank: str, line: str) -> StepRecord | None:
        """Take the next line; return the step that it completes, if any."""
        raise NotImplementedError

    def end(self) -> None:
        """Settle steps, unit and notes after the last line."""

    def read(self, lines: Sequence[str]) -> bool:
        """Read a log from its first line to its last; return whether it has a step."""
        steps = (self.line(*whose(line)) for line in lines)
        self.steps = [step for step in steps if step is not None]
        self.end()
        return bool(self.steps)

    def learn(self, facts: Mapping[str, int]) -> None:
        """Keep facts of the run that the log prints."""
        self.facts |= {name: count for name, count in facts.items() if count > 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """The steady state of a log."""

    format: str
    tokens_per_s_per_gpu: float  # median
    tokens_per_s_per_gpu_p10: float  # of the steps
    tokens_per_s_per_gpu_p90: float
    num_steps: int
    num_left_out: int  # of starts
    num_starts: int
    num_ranks: int
    unit: str
    known: Mapping[str, int]  # of seq_len, global_batch_size, num_gpus and degrees
    device: str
    peak_memory_gib: float | None
    is_mean: bool  # of the whole run, including warm-up
    notes: tuple[str, ...]
    loss: float | None = None  # the last of training

    @property
    def step_s(self) -> float | None:
        """Seconds of a step; None if batch, sequence length or GPUs are not known."""
        tokens = self.known.get("global_batch_size", 0) * self.known.get("seq_len", 0)
        rate = self.tokens_per_s
        return tokens / rate if tokens and rate else None

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens/s of the whole job; None if the number of GPUs is not known."""
        count = self.known.get("num_gpus")
        return None if count is None else self.tokens_per_s_per_gpu * count


def steady(log: Log, user: Facts) -> Steady:
    """The steady state: the median of the steps after each start. ImportFileError names what is
    missing."""
    known = _known(log, user)
    rates: dict[tuple[int, int], list[float]] = defaultdict(list)
    for key, step in _by_start(log.steps):
        if (rate := rate_per_gpu(step, known)) is not None:
            rates[key].append(rate)
    if not rates:
        raise ImportFileError(_lacking(log, known))
    merged = {key: median(found) for key, found in rates.items()}
    kept = merged if log.is_mean else _warmed(merged)
    values = np.array([kept[key] for key in sorted(kept)])
    batches = [s.batch for s in log.steps[-len(values) :] if s.batch is not None]
    if batches and "global_batch_size" not in user:
        known["global_batch_size"] = round(median(batches))
    memory = max((s.memory_bytes or 0.0 for s in log.steps), default=0.0)
    low, middle, high = (float(x) for x in np.quantile(values, (0.1, 0.5, 0.9)))
    return Steady(
        format=log.format,
        tokens_per_s_per_gpu=middle,
        tokens_per_s_per_gpu_p10=low,
        tokens_per_s_per_gpu_p90=high,
        num_steps=len(values),
        num_left_out=len(merged) - len(values),
        num_starts=len({start for start, _ in merged}),
        num_ranks=len({s.rank for s in log.steps}),
        unit=log.unit,
        known=known,
        device=log.device,
        peak_memory_gib=memory / GIB or None,
        is_mean=log.is_mean,
        notes=(*log.notes, *_notes(values, log)),
    )


def can_be_used(log: Log, user: Facts) -> bool:
    """Whether the log and the facts of the user give a rate."""
    known = _known(log, user, strict=False)
    return any(rate_per_gpu(step, known) is not None for step in log.steps)


def _known(log: Log, user: Facts, *, strict: bool = True) -> dict[str, int]:
    """The facts from the log and the user, which must agree."""
    for name, given in user.items():
        read = log.facts.get(name, given)
        if strict and read != given:
            raise ImportFileError(
                f"The log says {MEANING[name]} is {read:,}, where {OPTIONS[name]} gives {given:,}: "
                "it is the log of another run."
            )
    return {**log.facts, **user}


def _by_start(steps: Sequence[StepRecord]) -> list[tuple[tuple[int, int], StepRecord]]:
    """Each step with its start and its number since then: a number that goes back, or comes twice
    from one rank, is a restart. Known ranks are counted separately."""
    starts: dict[str, int] = defaultdict(int)
    last: dict[str, int] = {}
    found = []
    for step in steps:
        before = last.get(step.rank)
        number = step.number if step.number is not None else (before or 0) + 1
        if before is not None and (number < before or (number == before and step.rank)):
            starts[step.rank] += 1
        last[step.rank] = number
        found.append(((starts[step.rank], number), step))
    return found


def _warmed(merged: Mapping[tuple[int, int], float]) -> dict[tuple[int, int], float]:
    """The steps without the warm-up of each start; all steps if there are no others."""
    first: dict[int, int] = {}
    for start, number in sorted(merged):
        first.setdefault(start, number)
    kept = {k: v for k, v in merged.items() if k[1] - first[k[0]] >= WARM_UP_STEPS}
    if len(kept) < LEAST_STEPS:
        kept = {k: v for k, v in merged.items() if k[1] != first[k[0]]}
    return kept or dict(merged)


def rate_per_gpu(step: StepRecord, known: Mapping[str, int]) -> float | None:
    """Tokens/s per GPU of a step; None if facts are missing, or if it is no rate of a machine."""
    rate = _printed(step, known)
    return rate if rate is not None and 0 < rate < FASTEST else None


def _printed(step: StepRecord, known: Mapping[str, int]) -> float | None:
    """Tokens/s per GPU of a step as its log has them; None if facts are missing."""
    if step.tokens_per_s_per_gpu is not None:
        return step.tokens_per_s_per_gpu
    gpus, seq_len = known.get("num_gpus"), known.get("seq_len")
    batch = step.batch if step.batch is not None else known.get("global_batch_size")
    if gpus is None:
        return None
    if step.tokens_per_s:
        return step.tokens_per_s / gpus
    if seq_len is None:
        return None
    if step.samples_per_s is not None:
        return step.samples_per_s * seq_len / gpus
    if step.step_s is None or batch is None:
        return None
    return batch * seq_len / step.step_s / gpus


def _missing(log: Log, known: Mapping[str, int]) -> list[str]:
    """The missing fields with which a rate would follow."""
    full = {**dict.fromkeys(LIMITS, 1), **known}
    needed = []
    for name in LIMITS:
        without = {k: v for k, v in full.items() if k != name}
        if all(rate_per_gpu(step, without) is None for step in log.steps):
            needed.append(name)
    return [name for name in needed if name not in known]


def _lacking(log: Log, known: Mapping[str, int]) -> str:
    if any(_printed(step, known) is not None for step in log.steps):
        return (
            f"No rate in the log ({log.format}) is one of a machine: {FASTEST:g} tokens/s or more."
        )
    what = " and ".join(f"{OPTIONS[n]}, {MEANING[n]}" for n in _missing(log, known))
    return f"The log ({log.format}) prints {log.unit}: tokens/s per GPU needs {what}."


def _notes(values: np.ndarray, log: Log) -> list[str]:
    if log.is_mean:
        return []
    found = []
    if len(values) < LEAST_STEPS:
        found.append(f"Few logged steps count ({len(values)}): one says little of the next.")
    half = len(values) // 2
    if half >= LEAST_STEPS:
        change = float(np.median(values[half:]) / np.median(values[:half]) - 1)
        if abs(change) > DRIFT:
            found.append(
                f"The second half of the log is {abs(change):.0%} "
                f"{'faster' if change > 0 else 'slower'} than the first: no steady state."
            )
    return found

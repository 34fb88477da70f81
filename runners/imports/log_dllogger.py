"""Logs of DLLogger: lines of `DLLL {"type": "LOG", "step": 16, "data": {...}}`.

NVIDIA/dllogger dllogger/logger.py (JSONStreamBackend): a list of steps is epoch and iteration,
and an empty one is the summary of the run. NeMo writes `train_step_timing in s`; other programs
say in a line of type METADATA that a figure is in tokens/s or sequences/s, of the job.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hardware.outside.json_text import LINE, json_value
from runners.imports.steps import Log, Step
from runners.imports.text import positive, whose

NAME = "dllogger"
MARK = "DLLL {"
STEP_S, SAMPLES = "train_step_timing in s", "consumed_samples"
TOKENS_PER_S = ("tokens/s", "tok/s", "tokens/sec", "tokens per second")
SAMPLES_PER_S = ("sequences/s", "sequences/sec", "samples/s", "samples/sec")
_NO_TRAINING = re.compile(r"val|eval|infer|test|latency", re.IGNORECASE)
MOST_METRICS = 1000


def read(lines: Sequence[str]) -> Log | None:
    """The steps of a log; None if it has no line of this format."""
    units: dict[str, str] = {}
    steps: list[Step] = []
    summary: list[Step] = []
    before: tuple[int, float] | None = None  # step and samples so far
    for whole in lines:
        rank, line = whose(whole)
        found = _object(line)
        if found is None:
            continue
        if found.get("type") == "METADATA" and len(units) < MOST_METRICS:
            about = found.get("metadata")
            unit = about.get("unit") if isinstance(about, dict) else None
            units[str(found.get("metric"))] = str(unit).lower()
        data = found.get("data")
        if found.get("type") != "LOG" or not isinstance(data, dict):
            continue
        number = _number(found.get("step"))
        if (step := _step(data, units, rank, number)) is None:
            continue
        if number is None:
            summary.append(step)
            continue
        samples = positive(str(data.get(SAMPLES, "")))
        if samples is not None:
            if before is not None and number > before[0] and samples > before[1]:
                batch = (samples - before[1]) / (number - before[0])
                step = Step(number=number, rank=rank, step_s=step.step_s, batch=batch)
            before = number, samples
        steps.append(step)
    if not steps and not summary:
        return None
    first = (steps or summary)[0]
    return Log(
        format=NAME,
        steps=tuple(steps or summary[-1:]),
        unit="seconds of a step"
        if first.step_s is not None
        else "tokens/s of the job"
        if first.tokens_per_s is not None
        else "sequences/s of the job",
        is_mean=not steps,
        notes=() if steps else ("It is the mean of the whole run, with start-up.",),
    )


def _object(line: str) -> Mapping[str, Any] | None:
    """The object of one line; None if there is none or it is cut off."""
    _, mark, rest = line.partition(MARK)
    try:
        found = json_value("{" + rest, LINE) if mark else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _number(step: object) -> int | None:
    """The iteration of a step, the last number of a list; None for a summary."""
    last = step[-1] if isinstance(step, list) and step else step
    return last if isinstance(last, int) and 0 <= last < 10**9 else None


def _step(
    data: Mapping[str, object], units: Mapping[str, str], rank: str, number: int | None
) -> Step | None:
    """The first figure of a line that says how fast the training is."""
    for name, value in list(data.items())[:MOST_METRICS]:
        rate, unit = positive(str(value)), units.get(name, "")
        if rate is None or _NO_TRAINING.search(name):
            continue
        if name == STEP_S:
            return Step(number=number, rank=rank, step_s=rate)
        if unit in TOKENS_PER_S:
            return Step(number=number, rank=rank, tokens_per_s=rate)
        if unit in SAMPLES_PER_S:
            return Step(number=number, rank=rank, samples_per_s=rate)
    return None

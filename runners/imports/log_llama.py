"""Logs of LLaMA-Factory, trainer_log.jsonl: one JSON object per logged step.

src/llamafactory/train/callbacks.py (LogCallback.on_log): `current_steps`, `total_steps` and
`elapsed_time` in whole seconds, and, where tokens are counted, `total_tokens` of the job and their
mean rate since the start as `throughput`. Their quotient is the time since the start to a
millisecond, and its differences are those of the steps. Without tokens the whole seconds are left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from hardware.outside.json_text import LINE, json_value
from runners.imports.steps import Log, Step
from runners.imports.text import positive, whose

NAME = "llama-factory"
_ELAPSED = re.compile(r"(?:(\d{1,4}) days?, )?(\d{1,4}):(\d\d):(\d\d)")
_NEEDED = ("current_steps", "total_steps", "elapsed_time")


def read(lines: Sequence[str]) -> Log | None:
    """The steps of a log; None if it has no line of this format."""
    found = [row for line in lines if (row := _row(whose(line)[1])) is not None]
    counted = [r for r in found if r.get("throughput") and r.get("total_tokens")]
    steps = [
        Step(number=int(b["current_steps"]), tokens_per_s=tokens / seconds)
        for a, b in pairwise(counted)
        if (seconds := b["total_tokens"] / b["throughput"] - a["total_tokens"] / a["throughput"])
        > 0
        and (tokens := b["total_tokens"] - a["total_tokens"]) > 0
        and b["is_training"]
    ]
    if steps:
        unit = "tokens of the job so far, and their mean rate (total_tokens, throughput)"
        return Log(format=NAME, steps=tuple(steps), unit=unit)
    steps = [
        Step(number=int(b["current_steps"]), step_s=seconds / passed)
        for a, b in pairwise(found)
        if (seconds := b["elapsed_s"] - a["elapsed_s"]) > 0
        and (passed := b["current_steps"] - a["current_steps"]) > 0
        and b["is_training"]
    ]
    if not steps:
        return None
    unit, note = "whole seconds since the start (elapsed_time)", (
        "Its times are whole seconds; include_num_input_tokens_seen makes it print tokens, too."
    )  # fmt: skip
    return Log(format=NAME, steps=tuple(steps), unit=unit, notes=(note,))


def _row(line: str) -> Mapping[str, float] | None:
    """The positive figures of one line, with the seconds since the start."""
    if not (line.startswith("{") and all(f'"{name}"' in line for name in _NEEDED)):
        return None
    try:
        found = json_value(line, LINE)
    except ValueError:
        return None
    match = _ELAPSED.fullmatch(str(found["elapsed_time"]))
    if match is None:
        return None
    days, hours, minutes, seconds = (int(x or 0) for x in match.groups())
    row = {
        name: value
        for name in ("current_steps", "total_tokens", "throughput")
        if (value := positive(str(found.get(name, "")))) is not None
    }
    if "current_steps" not in row or row["current_steps"] > 1e9:
        return None
    elapsed = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return {**row, "elapsed_s": float(elapsed), "is_training": float("loss" in found)}

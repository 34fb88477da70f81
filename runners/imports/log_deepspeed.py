"""Logs of DeepSpeed: `global_step=10, RunningAvgSamplesPerSec=25.0, CurrSamplesPerSec=25.7, ...`.

deepspeed/utils/timer.py (ThroughputTimer, read at 038beb63): it counts the samples of the whole
job, because the engine gives it the global batch; CurrSamplesPerSec is for the last step only, and
its median over a log is the steady state. Older versions print `0/20, RunningAvgSamplesPerSec=...`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from runners.imports.steps import Log, Step
from runners.imports.text import positive, whose

NAME = "deepspeed"
_FIGURE = r"(\d{1,12}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?)"
_STEP = re.compile(
    r"(?:global_step=|\b\d{1,9}/)(\d{1,9}), RunningAvgSamplesPerSec=[^,]{1,40}, "
    rf"CurrSamplesPerSec={_FIGURE},"
)
_MEMORY = re.compile(r"MaxMemAllocated=(\d{1,5}(?:\.\d{1,4})?)GB")
_BATCH = re.compile(r"\btrain_batch_size \.{3,40} (\d{1,9})\b")
_WORLD = re.compile(r"\bworld_size \.{3,60} (\d{1,7})\b")


def read(lines: Sequence[str]) -> Log | None:
    """The steps of a log; None if it has no line of this format."""
    steps: list[Step] = []
    facts: dict[str, int] = {}
    for whole in lines:
        rank, line = whose(whole)
        if "CurrSamplesPerSec=" in line:
            match, memory = _STEP.search(line), _MEMORY.search(line)
            rate = None if match is None else positive(match[2])
            if match is not None and rate is not None:
                steps.append(
                    Step(
                        number=int(match[1]),
                        rank=rank,
                        samples_per_s=rate,
                        memory_gib=float(memory[1]) if memory else None,  # printed GB is GiB
                    )
                )
        elif " ..." in line:
            for name, pattern in (("global_batch_size", _BATCH), ("num_gpus", _WORLD)):
                if match := pattern.search(line):
                    facts[name] = int(match[1])
    if not steps:
        return None
    return Log(
        format=NAME,
        steps=tuple(steps),
        unit="samples/s of the job (CurrSamplesPerSec)",
        facts={name: n for name, n in facts.items() if n > 0},
    )

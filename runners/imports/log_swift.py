"""Logs of ms-swift, printed or logging.jsonl: one dictionary per logged step.

swift/trainers (the progress callback) and its Megatron trainer: `global_step/max_steps` as
'10/100', and the mean time of a step since the start as `train_speed(s/it)`, formerly its inverse
`train_speed(iter/s)`. Their product is the time since the start, whose differences are the steps'.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from runners.imports.steps import Log, Step
from runners.imports.text import positive, whose

NAME = "ms-swift"
_FIGURE = r"(\d{1,9}(?:\.\d{1,12})?(?:[eE][+-]?\d{1,3})?)"
_AT = re.compile(r"['\"]global_step/max_steps['\"]: ['\"](\d{1,9})/\d{1,9}['\"]")
_SPEED = re.compile(rf"['\"]train_speed\((s/it|iter/s)\)['\"]: ['\"]?{_FIGURE}(?=['\",}}\s])")
_MEMORY = re.compile(r"['\"]memory\(GiB\)['\"]: ['\"]?(\d{1,5}(?:\.\d{1,4})?)")


def read(lines: Sequence[str]) -> Log | None:
    """The steps of a log; None if it has no line of this format."""
    found: list[tuple[int, float, float | None]] = []  # step, seconds since the start, memory
    for whole in lines:
        _, line = whose(whole)
        at, speed, memory = _AT.search(line), _SPEED.search(line), _MEMORY.search(line)
        value = None if speed is None else positive(speed[2])
        if at is None or speed is None or value is None or not int(at[1]):
            continue
        number = int(at[1])
        elapsed = number * value if speed[1] == "s/it" else number / value
        found.append((number, elapsed, float(memory[1]) if memory else None))
    steps = [
        Step(number=n, step_s=seconds / (n - before), memory_gib=memory)
        for (before, since, _), (n, elapsed, memory) in pairwise(found)
        if n > before and (seconds := elapsed - since) > 0
    ]
    if not steps:
        return None
    return Log(format=NAME, steps=tuple(steps), unit="seconds of a step (train_speed)")

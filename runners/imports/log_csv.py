"""Metrics files of Lightning's CSVLogger, and other tables with a header and tokens per second.

lightning/pytorch/loggers/csv_logs.py and fabric/utilities/throughput.py: a column per metric, a row
per logged step, blank where a row lacks the metric. ThroughputMonitor's `device/items_per_sec`
counts what `length_fn` does: tokens; `items_per_sec` is that of the job.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from runners.imports.steps import Log, Step
from runners.imports.text import positive

NAME = "csv"
MOST_COLUMNS = 500
_RATE = re.compile(
    r"(?:^|[/_.])(?:items|tokens?)_per_sec(?:ond)?s?(?:_per_(?:gpu|device))?$|(?:^|/)tok/s$",
    re.IGNORECASE,
)
_OF_ONE = re.compile(r"device|gpu", re.IGNORECASE)
_NOT_TRAINING = re.compile(r"\b(?:val|eval|test|validate)", re.IGNORECASE)
_STEP = ("step", "global_step", "trainer/global_step", "iter")


def read(lines: Sequence[str]) -> Log | None:
    """The steps of a table; None if the first line is no header with a rate."""
    first = next((line for line in lines if line.strip()), "")
    names = [name.strip().strip('"') for name in first.split(",")]
    if not 2 <= len(names) <= MOST_COLUMNS:
        return None
    rates = [n for n in names if _RATE.search(n) and not _NOT_TRAINING.search(n)]
    if not rates or len(set(names)) < len(names):
        return None
    name = min(rates, key=lambda n: not _OF_ONE.search(n))  # those of one device need no count
    of_one = bool(_OF_ONE.search(name))
    at = next((names.index(n) for n in _STEP if n in names), None)
    steps = []
    for line in lines:
        cells = line.split(",")
        rate = positive(cells[names.index(name)]) if len(cells) == len(names) else None
        if rate is None:
            continue
        number = None if at is None else positive(cells[at])
        steps.append(
            Step(
                number=None if number is None or number > 1e9 else int(number),
                tokens_per_s_per_gpu=rate if of_one else None,
                tokens_per_s=None if of_one else rate,
            )
        )
    if not steps:
        return None
    whose = "per GPU" if of_one else "of the job"
    return Log(format=NAME, steps=tuple(steps), unit=f"tokens/s {whose} ({name[:60]})")

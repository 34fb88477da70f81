"""Logs that print a block of metrics for each step: OLMo, OLMo-core and Composer (LLM Foundry).

olmo_core/train/callbacks/console_logger.py and olmo/train.py: `[step=10/1000,epoch=1]`, then lines
of `throughput/device/TPS=12,345` (OLMo: `tokens_per_second`). composer/loggers/console_logger.py
and callbacks/speed_monitor.py: `[batch=10/4800]:`, then lines of
`Train throughput/device/tokens_per_sec: 14750.0`. Figures are of one device; `(actual avg)` and
`.avg` are means since the start and left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from runners.imports.steps import Log, Step
from runners.imports.text import positive, whose

NAME = "metric-blocks"
_STEP = re.compile(r"\[(?:step|batch)=(\d{1,9})/\d{1,9}[^\]]{0,80}\]")
_RATE = re.compile(
    r"\bthroughput/device/(?:TPS|tokens_per_sec(?:ond)?)\s{0,2}[=:]\s{0,4}(\d[\d,]{0,14}(?:\.\d{1,20})?)"
)


def read(lines: Sequence[str]) -> Log | None:
    """The steps of a log; None if it has no block with a rate."""
    steps: list[Step] = []
    at: dict[str, int] = {}  # rank -> step of its block
    for whole in lines:
        rank, line = whose(whole)
        if match := _STEP.search(line):
            at[rank] = int(match[1])
        elif rank in at and (match := _RATE.search(line)) and (rate := positive(match[1])):
            steps.append(Step(number=at[rank], rank=rank, tokens_per_s_per_gpu=rate))
    if not steps:
        return None
    return Log(format=NAME, steps=tuple(steps), unit="tokens/s per GPU (throughput/device)")

"""Settling: the first seconds of work, until clock and power of a GPU no longer move.

A cold GPU runs at its boost clock until heat or power hold it down, which takes seconds; rows that
are timed meanwhile are faster than those of training.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from runners.probes.rows import Row
from runners.probes.timing import Call

SETTLING_WINDOW_S = 1.0  # of work, which gives one rate
SETTLING_WINDOWS = 3  # the last ones, which must agree
SETTLING_WITHIN = 0.01
SETTLING_MOST_S = 30.0
# An H100 and an H200 agreed with themselves within 1% after 4 s, and were 6% slower 40 s later.
SETTLING_LEAST_S = 20.0
SETTLING_CALLS = 20  # between two waits for the device


def calls_per_s(call: Call, sync: Call, *, seconds: float) -> float:
    """The rate of a call that is queued again and again for some time."""
    begin, calls = time.perf_counter(), 0
    while True:
        for _ in range(SETTLING_CALLS):
            call()
        sync()
        calls += SETTLING_CALLS
        taken = time.perf_counter() - begin
        if taken >= seconds:
            return calls / taken


def spread_of_last(rates: Sequence[float]) -> float:
    """Highest over lowest of the last windows, less 1; infinite before there are enough."""
    last = rates[-SETTLING_WINDOWS:]
    return max(last) / min(last) - 1 if len(last) == SETTLING_WINDOWS else float("inf")


def settle(
    rate: Callable[[], float],
    *,
    least_s: float = 0.0,
    most_s: float,
    clock: Call,
    agreed: Callable[[bool], bool],
) -> Row:
    """Work until `least_s` have passed and the last windows agree, or until `most_s`, and what it
    took. `agreed` says whether every rank has come to its end: they go on together, so that none
    cools down."""
    begin, rates = clock(), [rate()]

    def is_over() -> bool:
        taken = clock() - begin
        calm = spread_of_last(rates) <= SETTLING_WITHIN and taken >= least_s
        return calm or taken >= most_s

    while not agreed(is_over()):
        rates.append(rate())
    last = rates[-SETTLING_WINDOWS:]
    return {"wall_s": clock() - begin, "rel_range": max(last) / min(last) - 1,
            "from_first": last[-1] / rates[0]}  # fmt: skip

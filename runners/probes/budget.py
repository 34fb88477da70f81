"""Time budget of a run: seconds that the dollars buy, and the hard end."""

from __future__ import annotations

import argparse
import contextlib
import math
import signal
from collections.abc import Iterator
from typing import Any

from runners.probes.plan import PlanError

USED_UP = "the budget was used up"


def allowed_s(options: argparse.Namespace, reduced: bool) -> float:
    """Seconds that may be used: the smaller of the budget and what the dollars buy."""
    for name in ("budget_s", "max_usd", "usd_per_hour"):
        value = getattr(options, name)
        if value is not None and not (math.isfinite(value) and value > 0):
            raise PlanError(f"--{name.replace('_', '-')} must be above 0, not {value!r}")
    budget = options.budget_s if options.budget_s is not None else (60.0 if reduced else 600.0)
    if options.max_usd is None:
        return float(budget)
    if options.usd_per_hour is None:
        raise PlanError("--max-usd needs --usd-per-hour, the price of all nodes together")
    return float(min(budget, options.max_usd / options.usd_per_hour * 3600))


class BudgetUsedUp(RuntimeError):  # noqa: N818 - it says what happened
    """Raised by the alarm during whatever takes too long."""


@contextlib.contextmanager
def cut_off_after(seconds: float) -> Iterator[None]:
    """Enforce the end of the budget, even during one long call such as a compilation."""

    def ring(number: int, frame: Any) -> None:
        raise BudgetUsedUp(USED_UP)

    if not math.isfinite(seconds) or not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01), 1.0)  # repeated: it may be swallowed
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

"""Failure rates and restart times of clusters: hardware/reliability.csv.

A quantity has at most one row that forecasts use, a published default or a stated assumption, and
any number of other published ones.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from core.units import TO_SI
from hardware.role_facts import RoleFact, load_role_facts, published_of, used_of

RELIABILITY_CSV = Path(__file__).with_name("reliability.csv")
QUANTITIES = (
    "failures_per_node_day", "job_failures_per_day", "detection_s", "restart_s", "wait_s",
    "node_start_s", "slow_probability", "slow_fraction", "checkpoint_bytes_per_s", "checkpoint_s",
    "upload_s", "goodput",
)  # fmt: skip
# Rates stay per day here: core/failures/failures.py converts them to seconds.
UNITS = {**TO_SI, "per node-day": 1.0, "per day": 1.0, "min": 60.0}


def load_reliability(path: Path = RELIABILITY_CSV) -> tuple[RoleFact, ...]:
    """Read the table; hardware/role_facts.py lists the errors."""
    return load_role_facts(path, quantities=QUANTITIES, units=UNITS, users="forecasts")


@cache
def reliability() -> tuple[RoleFact, ...]:
    """The shipped table, read once."""
    return load_reliability()


def used(quantity: str) -> RoleFact:
    """The row of this quantity that forecasts use."""
    return used_of(reliability(), quantity)


def published(quantity: str) -> tuple[RoleFact, ...]:
    """Every published row of this quantity."""
    return published_of(reliability(), quantity)

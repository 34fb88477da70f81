"""Failure rates and restart times of clusters: hardware/reliability.csv, failure_rates.csv.

A quantity has at most one row that forecasts use, a published default or a stated assumption, and
any number of other published ones. An accelerator has at most one rate of its own.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from core.units import TO_SI
from hardware import facts
from hardware.role_facts import RoleFact, load_role_facts, published_of, used_of

RELIABILITY_CSV = Path(__file__).with_name("reliability.csv")
RATES_CSV = Path(__file__).with_name("failure_rates.csv")
RATE = "failures_per_node_day"
QUANTITIES = (
    "failures_per_node_day", "job_failures_per_day", "detection_s", "restart_s", "wait_s",
    "join_s_per_gpu", "node_start_s", "conversion_s", "slow_probability", "slow_fraction",
    "machine_write_bytes_per_s", "machine_read_bytes_per_s", "storage_bytes_per_s", "checkpoint_s",
    "upload_s", "load_s", "goodput",
)  # fmt: skip
# Rates stay per day here: core/failures/failures.py converts them to seconds.
UNITS = {**TO_SI, "per node-day": 1.0, "per day": 1.0, "min": 60.0}


def load_reliability(path: Path = RELIABILITY_CSV) -> tuple[RoleFact, ...]:
    """Read the table; hardware/role_facts.py lists the errors."""
    return load_role_facts(path, quantities=QUANTITIES, units=UNITS, users="forecasts")


def load_failure_rates(path: Path = RATES_CSV) -> dict[str, RoleFact]:
    """The failure rate of each accelerator that has one of its own; errors as of the table."""
    known = tuple(facts.accelerators())
    found = load_role_facts(
        path, quantities=known, units=UNITS, users="forecasts", head="accelerator"
    )
    return {f.quantity: replace(f, quantity=RATE) for f in found if f.role != "published"}


@cache
def _rates() -> dict[str, RoleFact]:
    return load_failure_rates()


def failure_rate(accelerator: str) -> RoleFact:
    """Failures of eight of an accelerator and their host a day: its own figure, else that of A100
    clusters, which is then assumed."""
    if (own := _rates().get(accelerator)) is not None:
        return own
    nearest = used(RATE)
    note = f"assumed: as {nearest.scope}; no figure of {accelerator} was found"
    return replace(nearest, role="assumed", note=note)


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

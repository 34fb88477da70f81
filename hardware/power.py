"""Power of hosts, and compute of a project besides its final run: hardware/power.csv.

A quantity has one row that bills use and any number of published ones."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hardware.role_facts import RoleFact, load_role_facts, published_of, used_of

POWER_CSV = Path(__file__).with_name("power.csv")
QUANTITIES = ("host_over_gpu", "training_draw", "idle_draw", "pue", "experiment_share")
UNITS = {"fraction": 1.0}


def load_power(path: Path = POWER_CSV) -> tuple[RoleFact, ...]:
    """Read the table; hardware/role_facts.py lists the errors."""
    return load_role_facts(path, quantities=QUANTITIES, units=UNITS, users="bills")


@cache
def power() -> tuple[RoleFact, ...]:
    """The shipped table, read once."""
    return load_power()


def used(quantity: str) -> RoleFact:
    """The row of this quantity that bills use."""
    return used_of(power(), quantity)


def published(quantity: str) -> tuple[RoleFact, ...]:
    """Every published row of this quantity."""
    return published_of(power(), quantity)

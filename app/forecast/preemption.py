"""How often spot machines are preempted and for how long: as given, else from hardware/spot.csv."""

from __future__ import annotations

from app.forecast.failure_inputs import Input
from core.scenario import Scenario
from hardware.spot import used

# Fields of the scenario -> rows of the table.
FACTS = {"outage_hours": "outage_hours", "preemption_cv": "up_cv"}


def rate(scenario: Scenario) -> Input:
    """Preemptions per day of one instance while it is up."""
    given = scenario.preemptions_per_day
    if given is not None:
        return Input(name="preemptions_per_day", value=given, basis="given", source="")
    fact = used("preemptions_per_day")
    return Input(
        name="preemptions_per_day", value=fact.value or 0.0, basis=fact.role,
        source=f"{fact.source} ({fact.accelerator}, {fact.period}); {fact.note}",
    )  # fmt: skip


def common_fraction() -> Input:
    """Share of preemptions that take all instances of a job at once."""
    fact = used("common_fraction")
    return Input(
        name="common_fraction", value=fact.value or 0.0, basis=fact.role,
        source=f"{fact.source}; {fact.note}",
    )  # fmt: skip


def fact(scenario: Scenario, field: str) -> Input:
    """How long an outage lasts, or how bursty preemptions are."""
    given = getattr(scenario, field)
    if given is not None:
        return Input(name=field, value=float(given), basis="given", source="")
    found = used(FACTS[field])
    spread = f"published: {found.low:g} to {found.high:g}"
    return Input(
        name=field, value=found.value or 0.0, basis=found.role,
        source=f"{found.source}; {found.note} ({spread})",
    )  # fmt: skip

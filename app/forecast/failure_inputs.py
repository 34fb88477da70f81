"""What a job is assumed to suffer: values of the scenario, else of hardware/reliability.csv."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.errors import ScenarioError
from core.scenario import Scenario
from hardware.reliability import RATE, failure_rate, used
from hardware.role_facts import RoleFact

# Fields of the scenario -> names of these quantities in the table.
NAMES = (
    "failures_per_node_day", "job_failures_per_day", "checkpoint_s", "upload_s", "interval_s",
    "detection_s", "restart_s", "wait_s", "node_start_s", "spares", "repair_s", "min_nodes",
    "slow_probability", "weibull_shape",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One number that the answer rests on, and its source."""

    name: str
    value: float
    basis: str  # given, default (published) or assumed
    source: str


def given_numbers(scenario: Scenario) -> dict[str, float]:
    """The numbers of the group `failures` that the scenario gives. Raises ScenarioError if they
    contradict each other."""
    found = {n: float(x) for n in NAMES if (x := getattr(scenario, n)) is not None}
    if "spares" in found and "repair_s" not in found:
        raise _clash("{spares} needs {repair_s}: until a spare is there again.")
    if "spares" in found and not found.get("wait_s"):
        raise _clash("{spares} needs {wait_s}: what a job waits without one.")
    if "min_nodes" in found and not found.get("wait_s"):
        raise _clash("{min_nodes} needs {wait_s}: how long a machine is away.")
    if scenario.async_checkpoint and "checkpoint_s" in found:
        raise _clash(
            "{async_checkpoint} works out how long a checkpoint stops training: leave "
            "{checkpoint_s} out, or give {upload_s} beside it instead."
        )
    return found


def _clash(template: str) -> ScenarioError:
    """Error about fields that contradict each other, named by their labels."""
    labels = {name: f"'{field.title}'" for name, field in Scenario.model_fields.items()}
    return ScenarioError(template.format(**labels), template=template)


def known(name: str, given: Mapping[str, float], accelerator: str = "") -> Input:
    """The given value, else that of the table."""
    if name in given:
        return Input(name=name, value=given[name], basis="given", source="")
    fact = fact_of(name, accelerator)
    source = fact.note if fact.role == "assumed" else f"{fact.source}; {fact.scope}; {fact.note}"
    return Input(name=name, value=fact.value, basis=fact.role, source=source)


def fact_of(name: str, accelerator: str) -> RoleFact:
    """The row that forecasts use: the failure rate is of the accelerator."""
    return failure_rate(accelerator) if name == RATE else used(name)

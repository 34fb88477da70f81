"""Where each number of a plan comes from: one record per number, down to published inputs."""

from __future__ import annotations

from app.forecast.case import case_of
from app.provenance.of_energy import energy_records
from app.provenance.of_facts import measured_constants, network_of
from app.provenance.of_failures import failing_records
from app.provenance.of_memory import memory_records
from app.provenance.of_money import money_records
from app.provenance.of_speed import speed_records
from app.provenance.of_step import step_record
from app.provenance.record import Record, walked
from core.errors import ScenarioError, unknown_sentence
from core.scenario import Scenario
from core.search.plan import Plan


def provenance_of(
    scenario: Scenario, plan: Plan, *, with_energy: bool = False
) -> tuple[Record, ...]:
    """Every number shown for a plan, each key once, in the order of the Plan page.

    Energy and carbon are optional: they need the whole bill, which takes longer than the rest.
    """
    case = case_of(scenario, plan)
    whole = step_record(case)
    found = (
        *money_records(case, whole),
        *failing_records(case, whole),
        *speed_records(case, whole),
        *memory_records(case),
        network_of(scenario, case.machine),
        *measured_constants(scenario, case.machine),
        *(energy_records(case) if with_energy else ()),
    )
    return tuple({r.key: r for r in found}.values())


def record_named(records: tuple[Record, ...], key: str) -> Record:
    """The record or input with this key; raises ScenarioError if there is none."""
    found = next((r for r in walked(records) if r.key == key), None)
    if found is None:
        raise ScenarioError(unknown_sentence("number", key, [r.key for r in walked(records)]))
    return found

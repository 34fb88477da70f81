"""Calibrations that a scenario names, as measured rates of its machines."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from functools import lru_cache

from app import calibration_files
from app.field_table import fields_of
from app.machines import CUSTOM, Machine, accelerator_of
from core.accelerator import Accelerator
from core.calibration import applied
from core.errors import ScenarioError
from core.scenario import Scenario
from hardware import names
from hardware.efficiency import GENERIC, efficiency
from runners.fit import Fitted, fitted
from runners.result import CalibResult
from runners.validity import Judged, judged

CUSTOM_GROUP = "custom_gpu"
OLD_DAYS = 180  # software and firmware of a machine move on


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """One result with what it says of its accelerator."""

    id: str
    accelerator: str  # canonical, or `custom` where the result names none
    result: CalibResult
    judged: Judged
    fitted: Fitted

    @property
    def measured_on(self) -> dt.date:
        """The day on which it was measured."""
        return dt.date.fromisoformat(self.result.provenance.utc_end[:10])


def accelerator_named(result: CalibResult) -> str:
    """The accelerator that a result is of; one that names none is of a custom one."""
    told = result.provenance.device.sku_key
    return CUSTOM if told is None else names.canonical(told)


def judged_of(result: CalibResult, accelerator: Accelerator) -> Judged:
    """The gates of runners/validity.py with what the accelerator can do at most."""
    typed = accelerator.vendor == "custom"  # no datasheet: somebody's guess is no roof
    peaks = {
        "bf16": accelerator.bf16_flops_per_s,
        "fp16": accelerator.bf16_flops_per_s,
        "fp8": accelerator.fp8_flops_per_s,
    }
    return judged(
        result,
        peak_flops_by_dtype={} if typed else {d: p for d, p in peaks.items() if p},
        memory_bandwidth=None if typed else accelerator.memory_bytes_per_s,
    )


def learned(result: CalibResult, accelerator: Accelerator) -> Calibration:
    """A result with its constants; ScenarioError with the reason where it cannot be believed."""
    verdict = judged_of(result, accelerator)
    if not verdict.is_usable:
        raise ScenarioError(f"The calibration is refused: {verdict.refusal()}")
    return Calibration(
        id=calibration_files.id_of(result),
        accelerator=accelerator_named(result),
        result=result,
        judged=verdict,
        fitted=fitted(result, accelerator, efficiency(GENERIC)),
    )


def of_id(name: str, scenario: Scenario) -> Calibration:
    """A kept calibration of an accelerator of the table, or of the scenario's custom one."""
    if not calibration_files.has(name):
        calibration_files.load(name)  # says which there are
    typed = {f: getattr(scenario, f) for f in fields_of(CUSTOM_GROUP)}
    return _of_id(name, Scenario.model_validate(typed))


@lru_cache(maxsize=64)
def _of_id(name: str, typed: Scenario) -> Calibration:
    result = calibration_files.load(name)
    return learned(result, accelerator_of(accelerator_named(result), typed))


def chosen(scenario: Scenario) -> dict[str, Calibration]:
    """The scenario's calibrations by accelerator; ScenarioError where two are of the same one."""
    found: dict[str, Calibration] = {}
    for name in scenario.calibration:
        one = of_id(name, scenario)
        if one.accelerator in found:
            raise ScenarioError(
                f"The calibrations {found[one.accelerator].id} and {name} are both of "
                f"{one.accelerator}: choose one of them."
            )
        found[one.accelerator] = one
    return found


def as_measured(machines: tuple[Machine, ...], scenario: Scenario) -> tuple[Machine, ...]:
    """The machines with their measured rates, where the scenario names a calibration of them."""
    known = chosen(scenario)
    return tuple(
        m if (c := known.get(m.accelerator.name)) is None else replace(
            m,
            cluster=applied(m.cluster, c.fitted.factors),
            measured=frozenset(x.name for x in c.fitted.constants),
            calibration=c.id,
        )
        for m in machines
    )  # fmt: skip

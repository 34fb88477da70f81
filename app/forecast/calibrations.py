"""Calibrations that a scenario names, as measured rates of its machines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from app.forecast import calibration_files
from app.forecast.calibration_origin import AnyResult, Origin, origin_of
from app.forecast.machines import Machine, accelerator_of
from app.scenario.fields import fields_of
from core.errors import ScenarioError
from core.machine.accelerator import Accelerator
from core.machine.calibration import applied
from core.scenario import Scenario
from hardware.efficiency import GENERIC, efficiency
from runners.calibration.fit import Fitted, fitted
from runners.calibration.result import CalibResult
from runners.calibration.validity import Flag, Judged, judged
from runners.imports import constants as imported
from runners.imports.result import ImportResult

CUSTOM_GROUP = "custom_gpu"
OLD_DAYS = 180  # software and firmware of a machine move on


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """One result with what it says of its accelerator."""

    id: str
    result: AnyResult
    origin: Origin
    judged: Judged
    fitted: Fitted

    @property
    def accelerator(self) -> str:
        """Canonical, or `custom` where the result names none."""
        return self.origin.accelerator

    @property
    def measured(self) -> CalibResult | None:
        """The result of `calibrate`, which says more; None: it was imported."""
        return None if isinstance(self.result, ImportResult) else self.result

    @property
    def imported(self) -> ImportResult | None:
        """What another tool measured; None: it is a result of `calibrate`."""
        return self.result if isinstance(self.result, ImportResult) else None


def judged_of(result: CalibResult, accelerator: Accelerator) -> Judged:
    """The gates of runners/calibration/validity.py with what the accelerator can do at most."""
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


def learned(result: AnyResult, accelerator: Accelerator) -> Calibration:
    """A result with its constants; an error with the reason where it cannot be believed.

    An import has no gates but the datasheet and the factors that no machine has (FARTHEST of
    runners/calibration/fit.py): its tool printed nothing that others could look at.
    """
    if isinstance(result, ImportResult):
        found = imported.fitted(result, accelerator, efficiency(GENERIC))
        if not found.constants:
            raise ScenarioError(
                f"The import is refused: nothing in this file of {result.format} moves a forecast; "
                "all_reduce with four sizes or more does, two of them large, or matmuls."
            )
        return Calibration(
            id=calibration_files.id_of(result),
            result=result,
            origin=origin_of(result),
            judged=Judged(status="ok", flags=_import_flags(found, accelerator), drift=None),
            fitted=found,
        )
    verdict = judged_of(result, accelerator)
    if not verdict.is_usable:
        raise ScenarioError(f"The calibration is refused: {verdict.refusal()}")
    return Calibration(
        id=calibration_files.id_of(result),
        result=result,
        origin=origin_of(result),
        judged=verdict,
        fitted=fitted(result, accelerator, efficiency(GENERIC)),
    )


def _import_flags(found: Fitted, accelerator: Accelerator) -> tuple[Flag, ...]:
    said = Flag(
        "imported",
        "note",
        "Its tool recorded no clocks, no control operation and no spread: whether the machine was "
        "quiet and well is not known.",
    )
    if not imported.switch_adds(found.links, accelerator):
        return (said,)
    return said, Flag("switch_adds", "note", imported.SWITCH_ADDS)


def of_id(name: str, scenario: Scenario) -> Calibration:
    """A kept calibration of an accelerator of the table, or of the scenario's custom one."""
    if not calibration_files.has(name):
        calibration_files.load(name)  # says which there are
    typed = {f: getattr(scenario, f) for f in fields_of(CUSTOM_GROUP)}
    return _of_id(name, Scenario.model_validate(typed))


@lru_cache(maxsize=64)
def _of_id(name: str, typed: Scenario) -> Calibration:
    result = calibration_files.load(name)
    return learned(result, accelerator_of(origin_of(result).accelerator, typed))


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

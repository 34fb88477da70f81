"""Apply the calibrations that a scenario names: their measured rates replace those of its
machines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from app.forecast import calibration_files
from app.forecast.calibration_origin import AnyResult, Origin, origin_of
from app.forecast.machines import accelerator_of
from app.scenario.fields import fields_of
from core.errors import ScenarioError
from core.machine.accelerator import Accelerator
from core.machine.calibration import Calibrated, applied
from core.scenario import Scenario
from core.search.job import Machine
from hardware.efficiency import GENERIC, efficiency
from runners.calibration.fit import Constant, Fitted, fitted
from runners.calibration.result import CalibResult
from runners.calibration.validity import Flag, Judged, judged
from runners.imports import constants as imported
from runners.imports.result import ImportResult

CUSTOM_GROUP = "custom_gpu"
# Constants of the software that ran, not of the device: of other stacks they stay as assumed.
OF_SOFTWARE = frozenset({"elementwise"})
OLD_DAYS = 180  # software and firmware of a machine change


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """One result, and what its measurements say about its accelerator."""

    id: str
    result: AnyResult
    origin: Origin
    judged: Judged
    fitted: Fitted

    @property
    def accelerator(self) -> str:
        """Canonical name; `custom` if the result names none."""
        return self.origin.accelerator

    def constants_for(self, stack: str) -> tuple[Constant, ...]:
        """The constants that a forecast of a stack uses: all of them for the stack that was
        measured, and where nobody said which it was; of the device for every other."""
        if self.origin.measured_with in ("", stack):
            return self.fitted.constants
        return tuple(c for c in self.fitted.constants if c.name not in OF_SOFTWARE)

    def factors_for(self, stack: str) -> Calibrated:
        """The factors of those constants."""
        used = {c.name for c in self.constants_for(stack)}
        left: dict[str, Any] = {c.name: 1.0 for c in self.fitted.constants if c.name not in used}
        return replace(self.fitted.factors, **left)

    @property
    def measured(self) -> CalibResult | None:
        """The result if `calibrate` measured it, which holds more; None if it was imported."""
        return None if isinstance(self.result, ImportResult) else self.result

    @property
    def imported(self) -> ImportResult | None:
        """The result if another tool measured it; None if `calibrate` did."""
        return self.result if isinstance(self.result, ImportResult) else None


def judged_of(result: CalibResult, accelerator: Accelerator) -> Judged:
    """The gates of runners/calibration/validity.py, checked against the accelerator's peak
    rates."""
    typed = accelerator.vendor == "custom"  # no datasheet: a typed guess is no upper bound
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
    """A result with the constants it measured. Raises an error with the reason if it is not
    credible.

    For an import only the datasheet and implausible factors (FARTHEST of
    runners/calibration/fit.py) are checked: the tool's output has nothing else to check.
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
    note = Flag(
        "imported",
        "note",
        "Its tool recorded no clocks, no control operation and no spread: whether the machine was "
        "quiet and well is not known.",
    )
    if not imported.switch_adds(found.links, accelerator):
        return (note,)
    return note, Flag("switch_adds", "note", imported.SWITCH_ADDS)


def of_id(name: str, scenario: Scenario) -> Calibration:
    """A kept calibration of an accelerator of the table, or of the scenario's custom one."""
    if not calibration_files.has(name):
        calibration_files.load(name)  # raises with a list of the known ones
    typed = {f: getattr(scenario, f) for f in fields_of(CUSTOM_GROUP)}
    return _of_id(name, Scenario.model_validate(typed))


@lru_cache(maxsize=64)
def _of_id(name: str, typed: Scenario) -> Calibration:
    result = calibration_files.load(name)
    return learned(result, accelerator_of(origin_of(result).accelerator, typed))


def chosen(scenario: Scenario) -> dict[str, Calibration]:
    """The scenario's calibrations by accelerator. Raises ScenarioError if two are for the same
    one."""
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
    """The machines, with measured rates where the scenario names a calibration for them."""
    known = chosen(scenario)
    return tuple(
        m if (c := known.get(m.accelerator.name)) is None else replace(
            m,
            cluster=applied(m.cluster, c.factors_for(scenario.stack)),
            measured=frozenset(x.name for x in c.constants_for(scenario.stack)),
            calibration=c.id,
            calibrated_with=c.origin.measured_with,
        )
        for m in machines
    )  # fmt: skip

"""Calibrations: the results kept on this installation, and the forecasts that they change.

A result is one file, <data>/calibrations/ID.json, named by the hash of its content. A link holds
only the id, so it means the same result on every installation that has the file. The store keeps
an index for lists (app/calibration/added.py); planning needs only the files.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.forecast.machines import CUSTOM, accelerator_of
from app.scenario.fields import fields_of
from core.errors import RuncastError, ScenarioError, shown, unknown_sentence
from core.machine.accelerator import Accelerator
from core.machine.calibration import Calibrated, applied
from core.scenario import Scenario
from core.scenario.types import MONTH
from core.search.job import Machine
from hardware import facts
from hardware.efficiency import GENERIC, efficiency, stacks
from pricing.disk import prices_folder, write_atomically
from runners.calibration import fit, validity
from runners.calibration.fit import Constant, Fitted
from runners.calibration.result import CalibResult, ResultError, parse_result
from runners.calibration.validity import Judged
from runners.imports import constants as imported
from runners.imports.result import SCHEMA as IMPORTED
from runners.imports.result import ImportResult, parse_import
from runners.imports.text import ImportFileError

AnyResult = CalibResult | ImportResult

ID_CHARS = 16
MOST = 2_000
TITLE_MAX = 40  # characters of a foreign name shown in one line
OLD_DAYS = 180  # software and firmware of a machine change
CUSTOM_GROUP = "custom_gpu"
# Constants of the software that ran, not of the device: forecasts of other stacks ignore them.
OF_SOFTWARE = frozenset({"elementwise"})
ANOTHER_STACK = "another stack"
SPELLED = {"nccl": "NCCL", "rccl": "RCCL", "cuda": "CUDA", "hip": "ROCm", "rocm": "ROCm"}
NOT_JUDGED = Judged()
NOT_FITTED = Fitted()
_ID = re.compile(rf"[0-9a-f]{{{ID_CHARS}}}")
# Inside a JSON string the quotes would be escaped, so other documents cannot match this.
_IS_IMPORT = re.compile(rb'"schema"\s*:\s*"' + re.escape(IMPORTED.encode()) + b'"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """One result: its origin, measured values, verdict and fit.

    A damaged file has only `id`, `note` and `problem`. Fields that neither an imported file nor
    the user gave are empty. Lists leave the verdict and the fit out.
    """

    id: str
    problem: str = ""  # why the file cannot be read
    note: str = ""
    result: AnyResult | None = None
    imported_from: str | None = None  # nccl-tests or mamf-finder; None: runcast calibrate
    accelerator: str = ""  # canonical name; `custom` if the result names none
    device: str = ""  # as the driver names it
    host: str | None = None
    num_gpus: int | None = None
    num_nodes: int | None = None
    measured_at: str | None = None  # UTC time at the end; the day of an import
    software: Mapping[str, str | None] = field(default_factory=dict)  # versions by name
    stack: str = ""  # of the nodes, as given
    software_date: str = ""  # month of its release, as given
    judged: Judged = NOT_JUDGED
    fitted: Fitted = NOT_FITTED

    @property
    def measured(self) -> CalibResult | None:
        """The result if `calibrate` measured it."""
        return self.result if isinstance(self.result, CalibResult) else None

    @property
    def imported(self) -> ImportResult | None:
        """The result if another tool measured it."""
        return self.result if isinstance(self.result, ImportResult) else None

    @property
    def measured_on(self) -> dt.date | None:
        """The day of the measurement; None if unknown."""
        return None if self.measured_at is None else dt.date.fromisoformat(self.measured_at[:10])

    @property
    def day(self) -> str:
        """The day of the measurement as text."""
        return "date unknown" if self.measured_on is None else str(self.measured_on)

    @property
    def place(self) -> str:
        """The host, or the tool: node0; imported from nccl-tests."""
        if self.imported_from is not None:
            return f"imported from {self.imported_from}"
        return (self.host or "")[:TITLE_MAX]

    @property
    def label(self) -> str:
        """One line for lists: H100-80GB-SXM, node0, 2026-11-01 (0123abcd...)."""
        if self.result is None:
            return f"damaged ({self.id[:8]}...)"
        is_custom = self.accelerator == CUSTOM
        name = f"custom, {self.device[:TITLE_MAX]}" if is_custom else self.accelerator
        return f"{name}, {self.place[:TITLE_MAX]}, {self.day} ({self.id[:8]}...)"

    @property
    def source(self) -> str:
        """The source of the measured constants: measured (node0, 2026-11-01)."""
        if self.imported_from is not None:
            return f"imported ({self.imported_from}, {self.day})"
        return f"measured ({self.place}, {self.day})"

    @property
    def software_text(self) -> str:
        """The software on one line: torch 2.13.0, CUDA 13.0, driver 580.10."""
        return ", ".join(f"{name} {version}" for name, version in self.software.items() if version)

    def constants_for(self, stack: str) -> tuple[Constant, ...]:
        """The constants that a forecast of a stack uses: all for the stack that was measured, or
        where none is named; only those of the device for every other stack."""
        if self.stack in ("", stack):
            return self.fitted.constants
        return tuple(c for c in self.fitted.constants if c.name not in OF_SOFTWARE)

    def factors_for(self, stack: str) -> Calibrated:
        """The factors of those constants."""
        used = {c.name for c in self.constants_for(stack)}
        unused: dict[str, Any] = {c.name: 1.0 for c in self.fitted.constants if c.name not in used}
        return replace(self.fitted.factors, **unused)


def calibration_from(result: AnyResult, note: str = "") -> Calibration:
    """Read the origin of a result. Raises ScenarioError if its accelerator is unknown."""
    if isinstance(result, ImportResult):
        return Calibration(
            id=id_of(result),
            note=note,
            result=result,
            imported_from=result.format,
            accelerator=facts.accelerator(result.accelerator).name,
            device=result.device,
            num_gpus=max((c.ranks for c in result.collectives), default=1),
            num_nodes=max((c.nodes for c in result.collectives), default=1),
            measured_at=result.measured_on,
            software={SPELLED.get(k.lower(), k): v for k, v in result.software.items()},
        )
    p = result.provenance
    name = validity.accelerator_of(p.device)
    # A part that is known by name alone has no figures to correct.
    is_usable = p.device.sku_key is not None or name in facts.accelerators()
    stack, month = p.told.get("stack", ""), p.told.get("software_date", "")
    return Calibration(
        id=id_of(result),
        note=note,
        result=result,
        accelerator=name if name is not None and is_usable else CUSTOM,
        device=p.device.name,
        host=p.host,
        num_gpus=p.world_size,
        num_nodes=len(result.nodes),
        measured_at=p.utc_end,
        software={"torch": p.torch, "CUDA": p.cuda, "ROCm": p.hip, "driver": p.driver},
        stack=stack if stack in ("", *stacks()) else ANOTHER_STACK,  # foreign text is not repeated
        software_date=month if re.fullmatch(MONTH, month) else "",
    )


# --- files ---------------------------------------------------------------------------------------


def folder() -> Path:
    """The folder of the results; it may not exist."""
    return prices_folder().with_name("calibrations")


def _path(name: str) -> Path:
    return folder() / f"{name}.json"


def text_of(result: AnyResult) -> bytes:
    """The canonical text of a result; its hash is the id."""
    return result.model_dump_json(by_alias=True).encode()


def id_of(result: AnyResult) -> str:
    """The id of a result: equal numbers give equal ids on every installation."""
    return hashlib.sha256(text_of(result)).hexdigest()[:ID_CHARS]


def parse(content: bytes) -> AnyResult:
    """Parse a calib-result/1 or an import-result/1. Raises ResultError or ImportFileError."""
    return parse_import(content) if _IS_IMPORT.search(content) else parse_result(content)


def keep(result: AnyResult) -> str:
    """Write a result atomically and return its id; an existing result stays unchanged."""
    name = id_of(result)
    if not has(name) and len(ids()) >= MOST:
        raise ScenarioError(f"There are {MOST:,} calibrations already: remove one first.")
    write_atomically(_path(name), text_of(result))
    return name


def ids() -> list[str]:
    """The ids of all results on this installation."""
    return sorted(p.stem for p in folder().glob("*.json") if _ID.fullmatch(p.stem))


def has(name: str) -> bool:
    """Whether a result with this id exists; never raises, whatever the id."""
    return bool(_ID.fullmatch(name)) and _path(name).is_file()


def load(name: str) -> AnyResult:
    """Read the result with this id. Raises ScenarioError if it is unknown or damaged."""
    if not has(name):
        known = ids()
        if not known:
            raise ScenarioError(f"No calibration {shown(name)}: this server has none.")
        raise ScenarioError(unknown_sentence("calibration", name, known))
    try:
        result = parse(_path(name).read_bytes())
    except (OSError, ResultError, ImportFileError) as e:
        raise ScenarioError(f"The calibration {name} is damaged: add it again. ({e})") from None
    if id_of(result) != name:
        raise ScenarioError(f"The calibration {name} is not what was added: add it again.")
    return result


def read(name: str, note: str = "") -> Calibration:
    """Read the file with this id; if it is damaged or missing, `problem` says why."""
    try:
        status = _path(name).stat()
        return _read(name, note, status.st_mtime_ns, status.st_size)
    except (OSError, RuncastError) as e:
        problem = str(e) if isinstance(e, RuncastError) else f"It cannot be read: {e.strerror}."
        return Calibration(id=name, note=note, problem=problem)


@lru_cache(maxsize=256)
def _read(name: str, note: str, changed_ns: int, size: int) -> Calibration:
    """Read a file again only after it has changed."""
    return calibration_from(load(name), note)


def id_label(name: str) -> str:
    """The label of an id in the form; an unknown id is shown as it is."""
    return read(name).label if has(name) else name


def remove(name: str) -> None:
    """Delete a result, even a damaged one. Raises ScenarioError if the id is unknown."""
    if not has(name):
        load(name)  # raises with what is wrong with the id
    _path(name).unlink()


# --- verdict, fit and use ------------------------------------------------------------------------


def typed_of(scenario: Scenario) -> Scenario:
    """A scenario with only the figures of its custom accelerator."""
    return Scenario.model_validate({f: getattr(scenario, f) for f in fields_of(CUSTOM_GROUP)})


def judge(result: CalibResult, accelerator: Accelerator | None) -> Judged:
    """Judge a result by its accelerator's peak rates. Raises ScenarioError if it is invalid."""
    peaks: dict[str, float | None] = {}
    bandwidth = None
    # A typed guess is no upper bound, as a data sheet is.
    if accelerator is not None and accelerator.vendor != CUSTOM:
        bandwidth, bits16 = accelerator.memory_bytes_per_s, accelerator.bf16_flops_per_s
        peaks = {"bf16": bits16, "fp16": bits16, "fp8": accelerator.fp8_flops_per_s}
    verdict = validity.judged(
        result,
        peak_flops_by_dtype={dtype: peak for dtype, peak in peaks.items() if peak},
        memory_bandwidth=bandwidth,
    )
    if not verdict.is_usable:
        raise ScenarioError(f"The calibration is refused: {verdict.refusal()}")
    return verdict


def learned(result: AnyResult, accelerator: Accelerator) -> Calibration:
    """Judge a result and fit its constants. Raises an error with the reason if it is not credible.

    An import is only checked against the datasheet and for implausible factors (FARTHEST of
    runners/calibration/fit.py): the tool's output has nothing else to check.
    """
    profile = efficiency(GENERIC)
    if isinstance(result, ImportResult):
        fitted = imported.fitted(result, accelerator, profile)
        if not fitted.constants:
            raise ScenarioError(
                f"The import is refused: nothing in this file of {result.format} moves a forecast; "
                "all_reduce with four sizes or more does, two of them large, or matmuls."
            )
        verdict = Judged(imported.flags(fitted.links, accelerator))
    else:
        verdict = judge(result, accelerator)
        fitted = fit.fitted(result, accelerator, profile)
    return replace(calibration_from(result), judged=verdict, fitted=fitted)


def of_id(name: str, scenario: Scenario) -> Calibration:
    """A kept calibration of an accelerator of the table, or of the scenario's custom one."""
    if not has(name):
        load(name)  # raises with a list of the known ones
    return _of_id(name, typed_of(scenario))


@lru_cache(maxsize=64)
def _of_id(name: str, typed: Scenario) -> Calibration:
    result = load(name)
    return learned(result, accelerator_of(calibration_from(result).accelerator, typed))


def chosen(scenario: Scenario) -> dict[str, Calibration]:
    """The scenario's calibrations by accelerator. Raises ScenarioError if two are for the same
    accelerator."""
    by_accelerator: dict[str, Calibration] = {}
    for name in scenario.calibration:
        calibration = of_id(name, scenario)
        if (other := by_accelerator.get(calibration.accelerator)) is not None:
            raise ScenarioError(
                f"The calibrations {other.id} and {name} are both of {other.accelerator}: choose "
                "one of them."
            )
        by_accelerator[calibration.accelerator] = calibration
    return by_accelerator


def with_measured_rates(machines: tuple[Machine, ...], scenario: Scenario) -> tuple[Machine, ...]:
    """The machines, with measured rates where the scenario names a calibration for them."""
    known = chosen(scenario)
    return tuple(
        m if (c := known.get(m.accelerator.name)) is None else replace(
            m,
            cluster=applied(m.cluster, c.factors_for(scenario.stack)),
            measured=frozenset(x.name for x in c.constants_for(scenario.stack)),
            calibration=c.id,
            calibrated_with=c.stack,
        )
        for m in machines
    )  # fmt: skip

"""Where, when and with what a kept result was measured: by `calibrate`, or by another tool.

Only this module distinguishes the two kinds of result. An import says less: fields that neither the
file nor the user gave are None.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass

from app.forecast.machines import CUSTOM
from core.scenario.types import MONTH
from hardware import facts
from hardware.efficiency import stacks
from runners.calibration.result import CalibResult
from runners.calibration.validity import accelerator_of
from runners.imports.result import ImportResult

AnyResult = CalibResult | ImportResult  # both are stored and named in the same way

ANOTHER_STACK = "another stack"
NO_DATE = "date not said"
SPELLED = {"nccl": "NCCL", "rccl": "RCCL", "cuda": "CUDA", "hip": "ROCm", "rocm": "ROCm"}
TITLE_MAX = 40  # characters of a foreign name shown in one line


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What a result says about its measurement, in one form for every tool."""

    imported_from: str | None  # nccl-tests or mamf-finder; None: runcast calibrate
    accelerator: str  # canonical name; `custom` if the result names none
    device: str  # as the driver names it; '' if unknown
    host: str | None  # None for imports
    num_gpus: int
    num_nodes: int
    measured_at: str | None  # UTC time at its end; for imports the day
    software: Mapping[str, str | None]  # versions by name
    measured_with: str = ""  # the stack of the nodes, as given; '' if nobody said
    software_date: str = ""  # month of its release, as given

    @property
    def measured_on(self) -> dt.date | None:
        """The day of the measurement."""
        return None if self.measured_at is None else dt.date.fromisoformat(self.measured_at[:10])

    @property
    def day(self) -> str:
        """The day of the measurement as text."""
        return NO_DATE if self.measured_on is None else str(self.measured_on)

    @property
    def where(self) -> str:
        """The host, or the tool: node0; imported from nccl-tests."""
        if self.imported_from is not None:
            return f"imported from {self.imported_from}"
        return (self.host or "")[:TITLE_MAX]

    @property
    def label(self) -> str:
        """The source given for the measured constants: measured (node0, 2026-11-01)."""
        if self.imported_from is not None:
            return f"imported ({self.imported_from}, {self.day})"
        return f"measured ({self.where}, {self.day})"

    @property
    def stack(self) -> str:
        """The software on one line: torch 2.13.0, CUDA 13.0, driver 580.10."""
        return ", ".join(f"{what} {version}" for what, version in self.software.items() if version)


def origin_of(result: AnyResult) -> Origin:
    """What a result says about its measurement. Raises ScenarioError if its accelerator is
    unknown."""
    if isinstance(result, ImportResult):
        return _of_import(result)
    p = result.provenance
    known = accelerator_of(p.device)
    # A part that is known by name alone has no figures to correct.
    usable = p.device.sku_key is not None or known in facts.accelerators()
    return Origin(
        imported_from=None,
        accelerator=known if known is not None and usable else CUSTOM,
        device=p.device.name,
        host=p.host,
        num_gpus=p.world_size,
        num_nodes=len(result.nodes),
        measured_at=p.utc_end,
        software={"torch": p.torch, "CUDA": p.cuda, "ROCm": p.hip, "driver": p.driver},
        measured_with=_stack(p.told.get("stack", "")),
        software_date=month
        if re.fullmatch(MONTH, month := p.told.get("software_date", ""))
        else "",
    )


def _stack(told: str) -> str:
    """The stack that a result names; text of a file that is no stack is not repeated."""
    return told if told in ("", *stacks()) else ANOTHER_STACK


def _of_import(result: ImportResult) -> Origin:
    return Origin(
        imported_from=result.format,
        accelerator=facts.accelerator(result.accelerator).name,
        device=result.device,
        host=None,
        num_gpus=max((c.ranks for c in result.collectives), default=1),
        num_nodes=max((c.nodes for c in result.collectives), default=1),
        measured_at=result.measured_on,
        software={SPELLED.get(k.lower(), k): v for k, v in result.software.items()},
    )

"""NCCL variables of each fabric, each with a reason: hardware/nccl_env.csv.

A variable of a fabric replaces one of `any`. A row without a value is a variable that is left
alone, with the reason for that. The note names what depends on the machine, like the names of its
adapters; the note of a guessed value begins with 'assumed'.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from core.errors import FactError, shown
from hardware.tables import check_source, rows

NCCL_ENV_CSV = Path(__file__).with_name("nccl_env.csv")
FABRICS = (
    "any", "infiniband", "infiniband_sharp", "roce", "efa", "tcpx", "tcpxo", "slingshot", "nvl72",
    "ethernet",
)  # fmt: skip
_COLUMNS = ("variable", "value", "fabric", "reason", "source", "source_date", "note")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_VALUE = re.compile(r"[A-Za-z0-9_^./, -]{0,120}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclSetting:
    """One variable, with the reason for it."""

    variable: str
    value: str  # '' leaves the variable alone
    fabric: str  # one of FABRICS
    reason: str
    source: str
    source_date: str
    note: str = ""

    @property
    def assumed(self) -> bool:
        """Whether the value is assumed and not from a source."""
        return self.note.startswith("assumed")


def load_nccl_settings(path: Path = NCCL_ENV_CSV) -> tuple[NcclSetting, ...]:
    """Read the table; a row without reason, source or a known fabric is an error."""
    found: dict[tuple[str, str], NcclSetting] = {}
    for where, row in rows(path, _COLUMNS):
        name = row["variable"]
        check_source(where, name, row)
        if not _VARIABLE.fullmatch(name) or not _VALUE.fullmatch(row["value"]):
            raise FactError(f"{where}: {shown(name)}={shown(row['value'])} is no variable")
        if row["fabric"] not in FABRICS:
            raise FactError(
                f"{where}: fabric {shown(row['fabric'])} is not one of {', '.join(FABRICS)}"
            )
        if not row["reason"]:
            raise FactError(f"{where}: {name} has no reason")
        if (name, row["fabric"]) in found:
            raise FactError(f"{where}: {name} is given twice for {row['fabric']}")
        found[name, row["fabric"]] = NcclSetting(**row)
    return tuple(found.values())


@cache
def nccl_settings() -> tuple[NcclSetting, ...]:
    """The shipped table, read once."""
    return load_nccl_settings()


def settings_of(fabrics: Sequence[str]) -> tuple[NcclSetting, ...]:
    """The variables that are set for a job on these fabrics, those of `any` first; a later fabric
    wins.

    >>> [s.variable for s in settings_of(("nvl72",))][-2:]
    ['NCCL_MNNVL_ENABLE', 'NCCL_CUMEM_ENABLE']
    """
    return tuple(s for s in _chosen(fabrics) if s.value)


def left_alone(fabrics: Sequence[str]) -> tuple[NcclSetting, ...]:
    """The variables that are left to NCCL for a job on these fabrics, each with its reason.

    >>> "NCCL_ALGO" in {s.variable for s in left_alone(("infiniband",))}
    True
    """
    return tuple(s for s in _chosen(fabrics) if not s.value)


def _chosen(fabrics: Sequence[str]) -> tuple[NcclSetting, ...]:
    """One row for each variable; a row that leaves a variable alone never undoes one of another
    fabric that sets it."""
    chosen: dict[str, NcclSetting] = {}
    for fabric in ("any", *fabrics):
        if fabric not in FABRICS:
            raise FactError(f"fabric {shown(fabric)} is not one of {', '.join(FABRICS)}")
        for s in nccl_settings():
            if s.fabric == fabric and (s.value or not _is_set(chosen, s.variable)):
                chosen[s.variable] = s
    return tuple(chosen.values())


def _is_set(chosen: dict[str, NcclSetting], variable: str) -> bool:
    """Whether a row before has a value for the variable."""
    return variable in chosen and bool(chosen[variable].value)

"""Likely causes of each alert of a run, the likeliest first: hardware/diagnosis/causes.csv.

The order of the rows of an alert is that in which they are looked for. A row whose note is
`assumed` is a judgement without a publication.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import get_args

from core.errors import FactError, shown
from core.watch.records import AlertKind
from hardware.tables import check_source, rows

CAUSES_CSV = Path(__file__).with_name("causes.csv")
_COLUMNS = (
    "alert", "cause", "sign", "remedy", "fields", "shown_by", "source", "source_date", "note",
)  # fmt: skip
SIGNS = (
    "", "exposed_communication", "idle_gpus", "load_without_power", "throttled", "slow_gpu",
    "slow_network",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One cause of one alert."""

    alert: str
    cause: str
    sign: str
    remedy: str
    fields: str  # of a scenario with the remedy, as in a link; '': no setting of a plan
    shown_by: str  # the sign that a file beside the log may give; '': none
    source: str
    source_date: str
    note: str = ""


def load_causes(path: Path = CAUSES_CSV) -> tuple[Cause, ...]:
    """Read the table; an unknown alert, or a row without sign, remedy or source, is an error."""
    found = []
    for where, row in rows(path, _COLUMNS):
        check_source(where, row["cause"], row)
        if row["alert"] not in get_args(AlertKind):
            raise FactError(f"{where}: {shown(row['alert'])} is no alert")
        if not (row["cause"] and row["sign"] and row["remedy"]):
            raise FactError(f"{where}: a cause, its sign or its remedy is missing")
        if row["shown_by"] not in SIGNS:
            raise FactError(f"{where}: {shown(row['shown_by'])} is no sign")
        found.append(Cause(**row))
    return tuple(found)


@cache
def _shipped() -> tuple[Cause, ...]:
    return load_causes()


def causes_of(alert: str) -> tuple[Cause, ...]:
    """The causes of an alert, the likeliest first.

    >>> causes_of("memory")[0].cause
    'fragmentation'
    """
    return tuple(c for c in _shipped() if c.alert == alert)

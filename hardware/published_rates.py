"""Published training rates that are not in measured_runs.csv.

A claim is compared with them (app/audit/published.py), and nothing else: no forecast, fit or score
reads them. Rates are as printed, rounded as printed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from core.errors import FactError
from core.layout.precision import precision
from core.model.presets import preset
from hardware.facts import accelerator
from hardware.tables import check_source, rows

RATES_CSV = Path(__file__).with_name("published_rates.csv")
COLUMNS = (
    "model", "accelerator", "precision", "num_gpus", "seq_len", "tokens_per_s_per_gpu", "source",
    "source_date",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRate:
    """One printed rate of a named model."""

    model: str  # a preset
    accelerator: str
    precision: str
    num_gpus: int
    seq_len: int
    tokens_per_s_per_gpu: float
    source: str
    source_date: str


def load_rates(path: Path = RATES_CSV) -> tuple[PublishedRate, ...]:
    """Read the table; an unknown name, a missing source or a number that is not positive is an
    error."""
    found = []
    for where, row in rows(path, COLUMNS):
        check_source(where, row["model"], row)
        numbers = {n: _positive(where, n, row[n]) for n in COLUMNS[3:6]}
        found.append(
            PublishedRate(
                model=preset(row["model"]).id,
                accelerator=accelerator(row["accelerator"]).name,
                precision=precision(row["precision"]).name,
                num_gpus=int(numbers["num_gpus"]),
                seq_len=int(numbers["seq_len"]),
                tokens_per_s_per_gpu=numbers["tokens_per_s_per_gpu"],
                source=row["source"],
                source_date=row["source_date"],
            )
        )
    return tuple(found)


def _positive(where: str, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError as e:
        raise FactError(f"{where}: {name}: {e}") from None
    if not (math.isfinite(value) and value > 0):
        raise FactError(f"{where}: {name} {text} is not a number above 0")
    return value


@cache
def published_rates() -> tuple[PublishedRate, ...]:
    """The shipped table, read once."""
    return load_rates()

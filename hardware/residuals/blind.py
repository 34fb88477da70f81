"""The record of blind forecasts: blind.csv, one published run a row, as it was forecast when nobody
here had seen it.

Folds flatter: habits and formulas are looked for with the shipped runs in view. These runs were
read and forecast first, corrected where they had been read wrongly, and shipped afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.errors import FactError
from hardware.tables import rows

BLIND_CSV = Path(__file__).with_name("blind.csv")
COLUMNS = ("examination", "date", "run_id", "log_ratio", "sigma")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindRuns:
    """Columns with one row a run."""

    examination: NDArray[np.str_]
    run_id: NDArray[np.str_]
    log_ratio: NDArray[np.float64]  # ln(measured / forecast)
    sigma: NDArray[np.float64]  # width of the forecast, as it was then

    def __len__(self) -> int:
        return len(self.run_id)


def load_blind(path: Path = BLIND_CSV) -> BlindRuns:
    """Read the table. A cell that is no number, or a run that is named twice, is an error."""
    found = [row for _, row in rows(path, COLUMNS)]
    names = [row["run_id"] for row in found]
    if len(set(names)) < len(names):
        raise FactError(f"{path.name}: a run_id stands twice")
    try:
        numbers = np.array([[float(r["log_ratio"]), float(r["sigma"])] for r in found])
    except ValueError as e:
        raise FactError(f"{path.name}: {e}") from None
    numbers = numbers.reshape(len(found), 2)
    return BlindRuns(
        examination=np.array([row["examination"] for row in found], dtype=np.str_),
        run_id=np.array(names, dtype=np.str_),
        log_ratio=numbers[:, 0],
        sigma=numbers[:, 1],
    )


@cache
def blind_runs() -> BlindRuns:
    """The shipped record, read once."""
    return load_blind()

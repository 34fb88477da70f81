"""Read and write hardware/residuals/runs.csv: the residual and the traits of each measured run.

`make fit` writes it after the fractions are fitted, so that a forecast needs no run to be forecast
again (core/evidence/residual.py).
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import numpy as np

from core.errors import FactError
from core.evidence.measured_runs import SCALES, MeasuredRuns, Traits
from hardware.tables import rows

RESIDUALS_CSV = Path(__file__).with_name("runs.csv")
WORDS = ("publication", "family", "stack", "accelerator", "number_format", "task")
COLUMNS = ("run_id", *WORDS, "experts", *SCALES, "log_ratio")


def load_residuals(path: Path = RESIDUALS_CSV) -> MeasuredRuns:
    """Read the table. A cell that is no number is an error."""
    found = list(rows(path, COLUMNS))
    texts = {name: np.array([row[name] for _, row in found], dtype=np.str_) for name in WORDS}
    try:
        numbers = np.array(
            [[float(row[name]) for name in (*SCALES, "log_ratio")] for _, row in found]
        ).reshape(len(found), len(SCALES) + 1)
    except ValueError as e:
        raise FactError(f"{path.name}: {e}") from None
    publication = texts.pop("publication")
    return MeasuredRuns(
        run_id=np.array([row["run_id"] for _, row in found], dtype=np.str_),
        traits=Traits(
            **texts,
            experts=np.array([row["experts"] == "1" for _, row in found], dtype=bool),
            numbers=numbers[:, :-1],
        ),
        publication=publication,
        log_ratio=numbers[:, -1],
        own=np.zeros(len(found), dtype=bool),
    )


@cache
def residuals() -> MeasuredRuns:
    """The shipped table, read once."""
    return load_residuals()


def write_residuals(runs: MeasuredRuns, path: Path = RESIDUALS_CSV) -> None:
    """Write the table anew, in the order given."""
    t = runs.traits
    words = (runs.publication, t.family, t.stack, t.accelerator, t.number_format, t.task)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for i, name in enumerate(runs.run_id):
            numbers = (f"{round(x, 3):.7g}" for x in (*t.numbers[i], runs.log_ratio[i]))
            writer.writerow([name, *(str(w[i]) for w in words), int(t.experts[i]), *numbers])

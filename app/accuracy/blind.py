"""Forecasts that were made before anybody here had seen the runs: how far off they were."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from app.accuracy.predict import publications
from app.accuracy.section_scores import Errors
from app.document import format as fmt
from core.evidence.accuracy import Accuracy, scored
from core.numeric import Z_90
from hardware.measured import RUNS_CSV, read_runs
from hardware.residuals.blind import blind_runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """One set of published runs that was forecast blind."""

    name: str
    publications: int
    accuracy: Accuracy

    @property
    def row(self) -> Errors:
        """As a row of a table of errors."""
        return Errors(accuracy=self.accuracy, label=self.label)

    @property
    def label(self) -> str:
        """What it is, in words."""
        return f"Forecast blind, {self.name}: {fmt.count(self.publications)} publications"


@cache
def examinations() -> tuple[Examination, ...]:
    """Every set of the record, in its order."""
    runs, inputs = blind_runs(), read_runs(RUNS_CSV).inputs
    source = dict(zip(inputs.run_id.tolist(), publications(inputs.source).tolist(), strict=True))
    found = []
    for name in dict.fromkeys(runs.examination.tolist()):
        mine = runs.examination == name
        ratio, width = runs.log_ratio[mine], Z_90 * runs.sigma[mine]
        found.append(
            Examination(
                name=str(name),
                publications=len({source[i] for i in runs.run_id[mine].tolist()}),
                accuracy=scored(
                    predicted=np.ones(len(ratio)),
                    measured=np.exp(ratio),
                    refused=np.zeros(len(ratio), dtype=bool),
                    low=np.exp(-width),
                    high=np.exp(width),
                ),
            )
        )
    return tuple(found)


def sentence() -> str:
    """What the newest set says of the figures from folds."""
    last = examinations()[-1]
    a = last.accuracy
    return (
        "Folds flatter: habits and formulas are looked for with these runs in view. The newest "
        f"{fmt.count(a.n)} runs, of {fmt.count(last.publications)} publications, were forecast "
        f"before anybody here had seen them, and half of those forecasts were off by more than "
        f"{fmt.percent(a.median_ape)}; {fmt.percent(a.within_20)} were within 20%, and "
        f"{fmt.percent(a.coverage_80)} inside P10 to P90. That is after mistakes of reading were "
        "mended and runs set aside that cannot be compared, which flatters, too: docs/accuracy.md "
        "has the first reading of all. The intervals have been wider since."
    )

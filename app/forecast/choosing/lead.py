"""What choosing a machine by its forecast does to the forecast: part of its lead is luck.

core/evidence/choice.py says why, and how much of a lead was not there when it was measured. The
time of a plan that leads the machines it was chosen from is corrected by that part, in its cost and
in its rank.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.forecast.rows.row import Row
from app.forecast.search import Found
from core.evidence.choice import chosen_correction
from core.numeric import as_float
from core.search.plan import ChosenCorrection
from hardware.cross_validation import chosen_shrink


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrections:
    """The correction of each row: a factor on its time, and what it follows from."""

    factor: NDArray[np.float64]  # 1 where there is none
    basis: Mapping[int, ChosenCorrection]


def corrections(found: Found, rows: Sequence[Row]) -> Corrections:
    """The corrections of rows that lead their alternatives and were not measured."""
    factor = np.ones(len(rows))
    shrink = chosen_shrink()
    if not shrink:
        return Corrections(factor=factor, basis={})
    shares = [_log_share(r) for r in rows]
    precisions = [found.variant_of(r.best_row).precision for r in rows]
    best: dict[str, dict[str, float]] = {}  # by precision and accelerator
    for row, share, precision in zip(rows, shares, precisions, strict=True):
        alternatives = best.setdefault(precision, {})
        name = row.machine.accelerator.name
        alternatives[name] = max(alternatives.get(name, -math.inf), share)
    basis = {}
    for number, row in enumerate(rows):
        at = row.best_row
        measured = found.variance_left[at] < found.runs.variance_left[at] - 1e-9
        if row.machine.calibration or measured:
            continue
        others = np.array(list(best[precisions[number]].values()))
        added = as_float(
            chosen_correction(log_chosen=shares[number], log_alternatives=others, shrink=shrink)
        )
        if added < 0:
            factor[number] = math.exp(-added)
            lead = math.expm1(shares[number] - float(others.mean()))
            basis[number] = ChosenCorrection(num_machines=len(others), lead=lead, shrink=shrink)
    return Corrections(factor=factor, basis=basis)


def _log_share(row: Row) -> float:
    """Log of the work of a GPU over its 16-bit peak, up to the work of a token."""
    return math.log(row.tokens_per_s / row.num_gpus / row.machine.accelerator.bf16_flops_per_s)

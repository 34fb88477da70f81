"""What choosing a machine by its forecast does to the forecast: part of its lead is luck.

core/evidence/choice.py says why, and how much of a lead was not there when it was measured. Ranking
and expected figures are without it: the regret that docs/accuracy.md states is of choices by the
forecast as it is. A plan that leads carries what is expected of it with that part taken off.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.forecast.expected import total
from app.forecast.points import total_at
from app.forecast.rows.row import Row
from app.forecast.search import Found
from core.evidence.choice import chosen_correction
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import ChosenCorrection
from hardware.cross_validation import chosen_shrink


def corrections(
    scenario: Scenario,
    found: Found,
    rows: Sequence[Row],
    points: Mapping[str, NDArray[Any]],
    listed: Sequence[int],
) -> dict[int, ChosenCorrection]:
    """Of the listed numbers of these rows: those that lead the machines they were
    chosen from, and were not measured. `points` are the columns of all rows."""
    shares = [_log_share(r) for r in rows]
    precisions = [found.variant_of(r.best_row).precision for r in rows]
    best: dict[str, dict[str, float]] = {}  # by precision and accelerator
    for row, share, precision in zip(rows, shares, precisions, strict=True):
        of = best.setdefault(precision, {})
        name = row.machine.accelerator.name
        of[name] = max(of.get(name, -math.inf), share)
    shrink = chosen_shrink()
    leads: dict[int, tuple[int, float, float]] = {}
    for n in listed:
        at_best = rows[n].best_row
        measured = found.variance_left[at_best] < found.runs.variance_left[at_best] - 1e-9
        if rows[n].machine.calibration or measured:
            continue
        others = np.array(list(best[precisions[n]].values()))
        added = as_float(
            chosen_correction(log_chosen=shares[n], log_alternatives=others, shrink=shrink)
        )
        if added < 0:
            leads[n] = (len(others), math.expm1(shares[n] - float(others.mean())), added)
    if not leads:
        return {}
    at = np.array(list(leads), dtype=np.intp)
    slower = np.exp([-added for _, _, added in leads.values()])
    columns = {name: column[at] for name, column in points.items()}
    run = columns["wall_clock_hours"]
    held = np.array([rows[n].machine.terms.usd_per_hour for n in leads], dtype=float)
    columns["other_usd"] = columns["other_usd"] + held * run * (slower - 1)
    columns["wall_clock_hours"] = run * slower
    columns |= total.totals(scenario, columns, num_steps=rows[0].num_steps)
    return {
        n: ChosenCorrection(
            num_machines=machines, lead=lead, shrink=shrink, total=total_at(scenario, columns, k)
        )
        for k, (n, (machines, lead, _)) in enumerate(leads.items())
    }


def _log_share(row: Row) -> float:
    """Log of the work of a GPU over its 16-bit peak, up to the work of a token."""
    return math.log(row.tokens_per_s / row.num_gpus / row.machine.accelerator.bf16_flops_per_s)

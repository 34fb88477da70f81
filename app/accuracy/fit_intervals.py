"""The widths of the intervals, fitted to forecasts of runs that the fit had left out."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from app.accuracy import fit_columns as fc
from app.accuracy.fit_columns import Numbers, Sample
from app.accuracy.fit_left_out import Outcome
from app.accuracy.fit_values import updated
from core.evidence.fitting import fit_widths
from core.evidence.uncertainty import Circumstances, throughput_terms, unknown
from core.numeric import Numeric
from hardware.efficiency import GENERIC, Entry
from hardware.measured import RUNS_CSV
from hardware.residuals.blind import blind_runs

# Rows of one publication err alike, so that many of them say less of the next one: the n
# configurations of a publication weigh n^(1 - this) together. Read by eye from the interval score
# of unseen rows.
ALIKE = {"throughput intervals": 0.25, "memory intervals": 0.0}
SKEWED = {"throughput intervals": "throughput skew"}  # memory errs alike to both sides
# Weight of all blind forecasts over that of all folds in the fit of widths: folds flatter, and
# blind rows hold mistakes of reading that no forecast can know.
BLIND_SHARE = 0.5


def with_widths(
    entries: list[Entry],
    outcome: Outcome,
    terms: Callable[[Circumstances], dict[str, Numeric]],
    fits: str,
    known: Circumstances,
    today: dt.date,
) -> list[Entry]:
    """The table with the interval widths that score best on held-out rows."""
    sample = outcome.sample
    n = len(sample.weight)
    unseen = replace(known, unseen_accelerator=np.ones(n))
    marks = {
        "grouped": known, "new_source": known, "unknown_stack": unknown(known),
        "new_accelerator": unseen, "newest": known,
    }  # fmt: skip
    scored = np.concatenate([np.isfinite(getattr(outcome, split)) for split in marks])
    residual = np.concatenate([sample.log_measured - getattr(outcome, split) for split in marks])
    of_row = sample.weight * publication_weight(sample, ALIKE[fits])
    weight = np.concatenate([v * of_row for v in (0.5, 1.5, 0.5, 0.5, 1.0)])
    residual, weight = residual[scored], weight[scored]
    columns = {
        name: np.concatenate(
            [terms(m)[name] * np.sqrt(outcome.left[split]) for split, m in marks.items()]
        )[scored]
        for name in terms(known)
    }
    families = np.concatenate(
        [np.full(n, "") if split == "unknown_stack" else sample.family for split in marks]
    )[scored]
    if terms is throughput_terms:
        # What near runs say of them is what those of other publications do.
        of_blind, missed = _blind(sample)
        share = of_row[of_blind]
        residual = np.concatenate([residual, missed])
        weight = np.concatenate([weight, BLIND_SHARE * share * weight.sum() / share.sum()])
        left = np.sqrt(outcome.left["new_source"][of_blind])
        columns = {
            name: np.concatenate([column, np.asarray(terms(known)[name])[of_blind] * left])
            for name, column in columns.items()
        }
        families = np.concatenate([families, sample.family[of_blind]])
    widths = [e for e in entries if e.fits == fits]
    matrix = np.zeros((len(residual), len(widths)))
    for j, e in enumerate(widths):
        with_own = [w.stack for w in widths if w.quantity == e.quantity]
        mine = ~np.isin(families, with_own) if e.stack == GENERIC else families == e.stack
        matrix[:, j] = np.where(mine, columns[e.quantity], 0.0)
    skews = [e for e in entries if e.fits == SKEWED.get(fits)]
    found, skew = fit_widths(
        residual, matrix, weight,
        low=np.array([e.low for e in widths]), high=np.array([e.high for e in widths]),
        most_skew=max((e.high for e in skews), default=0.0),
    )  # fmt: skip
    basis = f"fitted: 80% of {len(residual)} unseen forecasts of hardware/measured_runs.csv inside"
    date = today.isoformat()
    return updated(
        entries,
        [
            replace(e, value=float(v), basis=basis, date=date)
            for e, v in (*zip(widths, found, strict=True), *((e, skew) for e in skews))
        ],
    )


def _blind(sample: Sample) -> tuple[NDArray[np.intp], Numbers]:
    """The rows of the sample that were forecast blind, and ln(measured / forecast) of then."""
    runs = blind_runs()
    place = {name: n for n, name in enumerate(fc.runs_in(RUNS_CSV).inputs.run_id[sample.rows])}
    found = [(place[name], n) for n, name in enumerate(runs.run_id) if name in place]
    at, which = (np.array(column, dtype=np.intp) for column in zip(*found, strict=True))
    return at, runs.log_ratio[which]


def publication_weight(sample: Sample, alike: float) -> Numbers:
    """Weight of each row by how many configurations its publication has."""
    _, which = np.unique(sample.publication, return_inverse=True)
    return np.asarray(np.bincount(which, sample.weight)[which] ** -alike, dtype=np.float64)

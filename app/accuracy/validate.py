"""`runcast validate`: forecast published runs, then compare with their measurements.

Forecasts cannot depend on measurements: `predict` gets only `RunInputs`, which holds nothing
measured, and its results are compared with `RunMeasurements` afterwards. Rows are forecast
whether or not they can be scored, so no measurement decides which rows are answered.

Every figure comes with that of the baseline of core/evidence/baseline.py on the same rows
(scores.py).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.accuracy.predict import NUMBERS, Predictions, own_runs, predict
from app.accuracy.rows import Offence, offences, word_notes
from app.accuracy.scores import (
    labels_of,
    memory_scores,
    oom_scores,
    pairs_scores,
    throughput_scores,
)
from app.accuracy.section_scores import PairSection, Section, Texts
from app.scenario.version import version
from core.errors import ScenarioError, unknown_sentence
from core.evidence.accuracy import OomAccuracy
from core.evidence.measured_runs import MeasuredRuns
from core.machine.accelerator import Accelerator
from core.model.presets import PRESETS, preset
from hardware import facts
from hardware.measured import Models, Pairs, Runs, read_models, read_pairs, read_runs
from hardware.measured_model import ModelFacts
from hardware.residuals.table import residuals


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Forecasts of every row of a file, aligned with `runs`, and their scores."""

    runs: Runs
    predictions: Predictions  # for every row; NaN where refused
    labels: Mapping[str, Texts]  # kind -> label of every row, for tables by part
    throughput: Section
    memory: Section
    oom: OomAccuracy
    baseline: Section
    pairs: PairSection
    model_notes: Mapping[str, tuple[str, ...]]  # model key -> what was assumed about it
    file_notes: tuple[str, ...]  # notes on the file as a whole
    offences: tuple[Offence, ...]  # rows that cannot be used, or only in part
    runcast_version: str
    date: str

    @property
    def num_refused(self) -> int:
        """Number of rows without a forecast."""
        return int((~self.predictions.ok).sum())

    @property
    def num_used(self) -> int:
        """Number of rows without any problem."""
        return len(self.runs) - len(self.offences)

    def reasons(self, *, has_forecast: bool) -> list[tuple[str, list[Offence]]]:
        """Each reason for not scoring a forecast, or for making none, with its rows, most frequent
        first."""
        rows: dict[str, list[Offence]] = {}
        for offence in self.offences:
            if offence.has_forecast == has_forecast:
                rows.setdefault(offence.reason, []).append(offence)
        return sorted(rows.items(), key=lambda item: -len(item[1]))


def validate(
    runs_path: Path,
    models_path: Path,
    pairs_path: Path | None = None,
    today: dt.date | None = None,
    *,
    own_path: Path | None = None,
) -> Report:
    """Read, forecast and score a file of runs; the measurements in the file `own_path` may be used.
    Raises `RunsError` if a file is unusable."""
    pairs = None if pairs_path is None else read_pairs(pairs_path)
    own = None if own_path is None else read_runs(own_path)
    return report_of(read_runs(runs_path), read_models(models_path), pairs, today, own=own)


def report_of(
    runs: Runs,
    models: Models,
    pairs: Pairs | None = None,
    today: dt.date | None = None,
    *,
    own: Runs | None = None,
) -> Report:
    """Forecast and score runs that are already read. Forecasts use what the shipped runs and the
    `own` ones measured, but nothing that `runs` measured."""
    known, reason = _models_of(runs, models)
    measured = residuals()
    notes: tuple[str, ...] = ()
    if own is not None:
        mine, notes = own_runs(own, *_models_of(own, models))
        measured = measured if mine is None else measured.joined(mine)
    predictions = _forecast(runs, known, reason, measured)
    machines = _machines(runs)
    labels = labels_of(runs, known, machines)
    throughput, baseline = throughput_scores(runs, predictions, known, machines, labels)
    memory = memory_scores(runs, predictions, machines, labels)
    used = {key: known[key].notes for key in sorted(set(runs.inputs.model_key) & set(known))}
    return Report(
        runs=runs,
        predictions=predictions,
        labels=labels,
        throughput=throughput,
        memory=memory,
        oom=oom_scores(runs, predictions),
        baseline=baseline,
        pairs=pairs_scores(pairs, runs, predictions, labels),
        model_notes={key: notes for key, notes in used.items() if notes},
        file_notes=(*runs.notes, *word_notes(runs), *notes),
        offences=tuple(offences(runs, predictions, (throughput, memory))),
        runcast_version=version() or "not installed",
        date=(today or dt.datetime.now(dt.UTC).date()).isoformat(),
    )


def _models_of(runs: Runs, models: Models) -> tuple[dict[str, ModelFacts], NDArray[np.object_]]:
    """The models named by the runs, from the file or else a preset, and each row's refusal."""
    known: dict[str, ModelFacts] = {}
    why = dict(models.refused)
    for key in map(str, np.unique(runs.inputs.model_key)):
        if key in models.facts:
            known[key] = models.facts[key]
        elif key not in why:
            try:
                known[key] = _preset(key)
            except ScenarioError:
                why[key] = unknown_sentence("model", key, {*models.facts, *PRESETS})
    refused = [why.get(str(key), "") for key in runs.inputs.model_key]
    return known, np.where(runs.reason == "", refused, runs.reason)


def _preset(name: str) -> ModelFacts:
    found = preset(name)
    model = found.transformer
    return ModelFacts(
        transformer=model,
        notes=(f"Not in the file of models: the preset {found.id}.",),
        is_moe=bool(np.asarray(model.num_experts) > 0),
    )


def _forecast(
    runs: Runs,
    known: Mapping[str, ModelFacts],
    reason: NDArray[np.object_],
    measured: MeasuredRuns,
) -> Predictions:
    """Forecast the readable rows; the result is aligned with all rows of the file."""
    readable = np.flatnonzero(reason == "")
    found = predict(runs.inputs.rows(readable), known, measured)
    finite = np.isfinite([getattr(found, name) for name in NUMBERS]).all(axis=0)
    good = readable[found.ok & finite]
    ok, why = np.full(len(runs), False), reason.copy()
    ok[good] = True
    why[readable] = found.reason
    why[readable[found.ok & ~finite]] = "The forecast is not a finite number."
    result = {name: np.full(len(runs), np.nan) for name in NUMBERS}
    for name, column in result.items():
        column[readable] = np.where(found.ok & finite, getattr(found, name), np.nan)
    nearby = None if found.nearby is None else found.nearby.placed(readable, len(runs))
    scenarios = np.full(len(runs), None, dtype=object)
    scenarios[readable] = found.scenarios
    return Predictions(**result, ok=ok, reason=why, scenarios=scenarios, nearby=nearby)


def _machines(runs: Runs) -> dict[str, Accelerator]:
    """The known accelerators among those named by the runs, keyed by the file's spelling."""
    found: dict[str, Accelerator] = {}
    for spelling in map(str, np.unique(runs.inputs.accelerator)):
        try:
            found[spelling] = facts.accelerator(spelling)
        except ScenarioError:
            continue  # the forecast refuses such a row and says why
    return found

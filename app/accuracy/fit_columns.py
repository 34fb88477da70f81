"""Measured runs as columns for a fit: inputs, measurements, and the groups for cross-validation.

Blank settings of a run (recompute, degrees) are inferred once, with the current memory model. A
fit of throughput does not change memory parameters, so the inferred settings stay valid.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.accuracy import fit_kernels
from app.accuracy.predict import publications
from app.accuracy.row_columns import Columns, ReadRun, columns, read_or_why
from app.accuracy.scores import configurations
from core.errors import RunsError
from core.evidence.accuracy import repeat_weights
from core.evidence.fitting import Model, Priors
from core.machine.efficiency import NAMES, Efficiency
from core.time.software import decimal_year
from core.units import GIB
from hardware import names
from hardware.efficiency import GENERIC, Entry, profiles, stack_of, stacks
from hardware.habits.built_on import built_on
from hardware.measured import MODELS_CSV, RUNS_CSV, Runs, read_models, read_runs
from hardware.measured_model import ModelFacts

Numbers = NDArray[np.float64]
Labels = NDArray[np.str_]
UNBOUNDED = 1e9
NEWEST_MONTHS = 6
ROWS_AT_ONCE = 65_536  # trials * runs per evaluation, to limit the memory used


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The runs of one fit, as columns with one row per run."""

    columns: Columns
    log_measured: Numbers
    weight: Numbers  # repeats of one configuration count once
    family: Labels  # the stack's family in hardware/stacks.csv; '' for none
    source: Labels
    publication: Labels  # the repository or paper: a source without its version and section
    group: Labels  # source, model, accelerator
    configuration: Labels  # equal for repeats of one run
    stack: Labels
    accelerator: Labels
    newest: NDArray[np.bool_]  # published in the last six months that any run is of
    rows: NDArray[np.intp]  # row numbers in the file of runs


# What somebody who cannot name the stack cannot be expected to name, either.
OF_THE_STACK = (
    "framework", "moe_dispatcher", "moe_overlap", "token_drop", "loss_kernel", "attention_kernel",
    "grad_overlap", "param_overlap", "tp_overlap", "param_dtype", "grad_dtype", "recompute_detail",
    "elementwise_kernel",
)  # fmt: skip


def _hidden(values: NDArray[Any], known: NDArray[np.bool_]) -> NDArray[Any]:
    """A column of the rows, blank where the row is not known."""
    blank = np.nan if np.issubdtype(values.dtype, np.floating) else ""
    return np.where(known, values, np.array(blank, dtype=values.dtype))


@lru_cache(maxsize=1)
def runs_in(path: Path) -> Runs:
    """The runs of a shipped file, which a fit asks for some hundred times."""
    return read_runs(path)


@lru_cache(maxsize=1)
def _models_in(path: Path) -> Mapping[str, ModelFacts]:
    return read_models(path).facts


@lru_cache(maxsize=1)
def _read_of(path: Path) -> tuple[ReadRun | str, ...]:
    """The rows of that file as they are written."""
    inputs, models = runs_in(path).inputs, _models_in(MODELS_CSV)
    return tuple(read_or_why(inputs, i, models) for i in range(len(inputs)))


def samples(
    table: Mapping[str, Efficiency], unnamed: NDArray[np.intp] | None = None
) -> tuple[Sample, Sample]:
    """Throughput and memory rows of hardware/measured_runs.csv that may be scored.

    The rows with the numbers `unnamed` are forecast as if they named neither their stack nor what
    follows from it.
    """
    runs = runs_in(RUNS_CSV)
    inputs, models, known = runs.inputs, _models_in(MODELS_CSV), list(_read_of(RUNS_CSV))
    if unnamed is not None:
        named = ~np.isin(np.arange(len(runs)), unnamed)
        hidden = {name: _hidden(getattr(inputs, name), named) for name in OF_THE_STACK}
        inputs = replace(inputs, **hidden)
        for i in unnamed.tolist():
            known[i] = read_or_why(inputs, i, models)
    found, kept, _ = columns(inputs, models, table, known=known)
    if found is None:
        raise RunsError(f"{RUNS_CSV.name} has no run that can be forecast.")
    throughput, memory = _scored(runs)
    return _sample(runs, found, kept, throughput), _sample(runs, found, kept, memory)


def memory_sample(table: Mapping[str, Efficiency]) -> Sample:
    """The memory rows of `samples`, without looking at the others."""
    runs = runs_in(RUNS_CSV)
    memory = _scored(runs)[1]
    found, kept, _ = columns(
        runs.inputs,
        _models_in(MODELS_CSV),
        table,
        known=_read_of(RUNS_CSV),
        only=np.flatnonzero(np.isfinite(memory)).tolist(),
    )
    if found is None:
        raise RunsError(f"{RUNS_CSV.name} has no run whose memory can be forecast.")
    return _sample(runs, found, kept, memory)


def _scored(runs: Runs) -> tuple[Numbers, Numbers]:
    """Throughput and bytes of every row; NaN where they may not be scored."""
    measured = runs.measured
    throughput = measured.throughput_ok & (measured.tokens_per_s_per_gpu > 0)
    memory = measured.memory_ok & (measured.peak_memory_gib > 0)
    return (
        np.where(throughput, measured.tokens_per_s_per_gpu, np.nan),
        np.where(memory, measured.peak_memory_gib * GIB, np.nan),
    )


def _sample(
    runs: Runs,
    found: Columns,
    kept: NDArray[np.intp],
    measured: Numbers,
) -> Sample:
    places = np.flatnonzero(np.isfinite(measured[kept]))
    rows = kept[places]
    inputs = runs.inputs.rows(rows)
    canonical = np.array([names.canonical(str(a)) for a in inputs.accelerator])
    configuration = configurations(inputs, canonical)
    stacks = [stack_of(str(name)) for name in inputs.framework]
    families = [s or built_on(str(n)) for s, n in zip(stacks, inputs.framework, strict=True)]
    keys = zip(inputs.source, inputs.model_key, inputs.accelerator, strict=True)
    return Sample(
        columns=found.take(places),
        log_measured=np.log(measured[rows]),
        weight=repeat_weights(configuration),
        configuration=configuration,
        family=np.array([s.family if s else "" for s in families]),
        source=np.asarray(inputs.source),
        publication=publications(inputs.source),
        group=np.array(["|".join(map(str, key)) for key in keys]),
        stack=np.array([s.name if s else "" for s in stacks]),
        accelerator=canonical,
        newest=_newest(runs.inputs.source_date)[rows],
        rows=rows,
    )


def _newest(dates: Labels) -> NDArray[np.bool_]:
    """Which of all dates are of the newest six months; a year without a month counts as July."""
    years = np.array([decimal_year(str(date)) for date in dates])
    return years > years.max() - (NEWEST_MONTHS - 0.5) / 12


def folds(keys: Labels, number: int) -> NDArray[np.int64]:
    """The fold of each row: equal for rows with equal keys, and reproducible."""
    digest = [int(hashlib.sha256(str(k).encode()).hexdigest(), 16) % number for k in keys]
    return np.array(digest, dtype=np.int64)


def priors(entries: list[Entry]) -> Priors:
    """The priors of the fitted parameters.

    A family with a blank prior is fitted as a difference from the generic value, with prior 0.
    The difference is unbounded here; `model` clips the sum to the entry's bounds.
    """
    return Priors(
        value=np.array([e.prior or 0.0 for e in entries]),
        sigma=np.array([e.prior_sigma for e in entries]),
        low=np.array([-UNBOUNDED if e.prior is None else e.low for e in entries]),
        high=np.array([UNBOUNDED if e.prior is None else e.high for e in entries]),
    )


def _level(entry: Entry) -> int:
    """How specific an entry is: 0 generic, 1 a family of stacks, 2 a single stack."""
    families = {s.family for s in stacks().values()}
    return 0 if entry.stack == GENERIC else 1 if entry.stack in families else 2


def model(
    sample: Sample,
    table: list[Entry],
    parameters: list[Entry],
    predict: Callable[[Columns], Numbers],
) -> Model:
    """A function from trial parameters to the log of `predict` for every row.

    As in a forecast, a row takes the value of its stack, else of its family, else the generic
    one. Values in the table that are not being fitted count too.
    """
    place = {(e.stack, e.quantity): j for j, e in enumerate(parameters)}
    quantities = sorted({e.quantity for e in parameters})
    alike, group = np.unique([sample.family, sample.stack], axis=1, return_inverse=True)
    group, (family, stack) = group.ravel(), alike
    groups = {e.stack: (family == e.stack) | (stack == e.stack) | (e.stack == GENERIC)
              for e in table}  # fmt: skip
    levels = {q: sorted((e for e in table if e.quantity == q), key=_level) for q in quantities}

    def some(values: Numbers) -> Numbers:
        changed = {}
        for q in quantities:
            of_group = np.zeros((len(values), len(family)))
            for entry in levels[q]:
                mine, j = groups[entry.stack], place.get((entry.stack, q))
                if j is None:
                    of_group[:, mine] = entry.value
                else:
                    base = of_group[:, mine] if entry.prior is None else 0.0
                    of_group[:, mine] = np.clip(base + values[:, j : j + 1], entry.low, entry.high)
            more = sample.columns.graph_reserve if q == "fragmentation" else 0.0
            changed[q] = of_group[:, group] + more
        eff = replace(sample.columns.efficiency, **changed)
        return np.log(predict(replace(sample.columns, efficiency=eff)))

    def of_trials(values: Numbers) -> Numbers:
        size = max(ROWS_AT_ONCE // max(len(sample.weight), 1), 1)
        return np.concatenate([some(values[i : i + size]) for i in range(0, len(values), size)])

    return of_trials


def acts_on(sample: Sample, parameters: list[Entry], others: int = 0) -> NDArray[np.bool_]:
    """The rows of a sample that each parameter may move, and of `others` after them, which have no
    stack; as parameters x rows."""
    family, stack = (
        np.concatenate([names, np.full(others, "")]) for names in (sample.family, sample.stack)
    )
    return np.array(
        [(family == e.stack) | (stack == e.stack) | (e.stack == GENERIC) for e in parameters]
    )


def kernels_model(entries: list[Entry], parameters: list[Entry]) -> Model:
    """A function from trial parameters to log predictions for kernels measured alone.

    Such kernels have no stack, so they use the generic values.
    """
    eff = profiles(entries)[GENERIC]
    generic = [j for j, e in enumerate(parameters) if e.stack == GENERIC]

    def of_trials(values: Numbers) -> Numbers:
        tried = {parameters[j].quantity: values[:, j : j + 1] for j in generic}
        return fit_kernels.log_predicted(replace(eff, **tried))

    return of_trials


def fitted_values(table: list[Entry], parameters: list[Entry], found: Numbers) -> list[float]:
    """The value of each parameter. Differences are added to the next less specific value."""
    families = {name: s.family for name, s in stacks().items()}
    place = {(e.stack, e.quantity): j for j, e in enumerate(parameters)}
    value: dict[tuple[str, str], float] = {}
    for e in sorted(table, key=_level):
        key = (e.stack, e.quantity)
        if key not in place:
            value[key] = e.value
            continue
        above = (families.get(e.stack, GENERIC), e.quantity)
        base = value.get(above, value.get((GENERIC, e.quantity), 0.0)) if e.prior is None else 0.0
        value[key] = float(np.clip(base + found[place[key]], e.low, e.high))
    return [value[e.stack, e.quantity] for e in parameters]


def strangers(sample: Sample, mine: NDArray[np.bool_], table: Mapping[str, Efficiency]) -> Sample:
    """The sample with the rows `mine` treated as runs of an unknown stack: what is theirs by the
    profile of their stack becomes generic; what the rows say themselves stays. `table`: that of
    the sample."""
    own = sample.columns.efficiency
    names = [s if s in table else f if f in table else GENERIC
             for s, f in zip(sample.stack, sample.family, strict=True)]  # fmt: skip
    eff = {}
    for n in NAMES:
        usual = np.array([getattr(table[name], n) for name in names])
        given = np.asarray(getattr(own, n))
        eff[n] = np.where(mine & (given == usual), getattr(table[GENERIC], n), given)
    return replace(
        sample,
        columns=replace(sample.columns, efficiency=Efficiency(**eff)),
        family=np.where(mine, "", sample.family),
        stack=np.where(mine, "", sample.stack),
    )

"""The published runs most similar to a forecast, and how well they were forecast.

Each process reads the runs and forecasts them once; after that, finding the neighbours of a plan
takes a few array operations (core/evidence/neighbours.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.accuracy.predict import Predictions, predict
from app.accuracy.row_words import PRECISION_NAMES
from app.document import format as fmt
from app.forecast import machines
from app.forecast.stack_limits import as_planned
from app.scenario.model import model_of
from core.evidence.neighbours import Configuration, distances, nearest_rows
from core.layout.precision import PRECISIONS
from core.model.transformer import active_params, as_columns
from core.scenario import Scenario
from core.search.plan import Layout, Plan
from hardware import facts
from hardware.efficiency import GENERIC, stack_of
from hardware.measured import MODELS_CSV, RUNS_CSV, RunInputs, Runs, read_models, read_runs

SAME_SIZE = 0.02  # relative difference of parameters within which two models are the same
SHARDING_WORDS = {  # of the table of runs
    "ddp": "none", **dict.fromkeys(("zero3", "zeropp", "fsdp1", "fsdp2"), "zero3/fsdp"),
}  # fmt: skip
QUANTISED = "qlora"
ADAPTERS = ("lora", QUANTISED)
DEGREES = {
    "tp": "tensor parallel",
    "pp": "pipeline parallel",
    "cp": "context parallel",
    "ep": "expert parallel",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """One published run compared with a plan. Tokens/s are per GPU."""

    run_id: str
    source: str
    source_date: str
    model: str
    accelerator: str
    num_gpus: int
    framework: str
    distance: float
    same: tuple[str, ...]  # what the run and the plan share
    differences: tuple[str, ...]  # how the run differs, the most important first
    measured: float
    forecast: float  # P50, made without using the measurement
    forecast_p10: float
    forecast_p90: float

    @property
    def error(self) -> float:
        """Forecast over measured, minus 1: 0.1 is 10% too fast."""
        return self.forecast / self.measured - 1


@dataclass(frozen=True, slots=True)
class _Table:
    """Runs with a usable throughput, as columns for comparison."""

    runs: Runs
    forecast: Predictions
    rows: NDArray[np.intp]  # of `runs`
    columns: Configuration  # of `rows`
    group: NDArray[np.str_]  # runs with equal information have the same group


def _recipe(written: str) -> str:
    name = PRECISION_NAMES.get(written, written).replace("-", "_")
    return name if name in PRECISIONS else "bf16"


def _stack(framework: str) -> str:
    known = stack_of(framework)
    return framework if known is None else known.name


@lru_cache(maxsize=1)
def _table() -> _Table:
    runs, models = read_runs(RUNS_CSV), read_models(MODELS_CSV).facts
    forecast = predict(runs.inputs, models)
    tokens = runs.measured.tokens_per_s_per_gpu
    usable = runs.measured.throughput_ok & forecast.ok & np.isfinite(tokens) & (runs.reason == "")
    rows = np.flatnonzero(usable)
    some = runs.inputs.rows(rows)
    model = as_columns([models[str(key)].transformer for key in some.model_key])
    chips = {a: facts.accelerator(a) for a in map(str, np.unique(some.accelerator))}
    recipes = [_recipe(str(p)) for p in some.precision]
    columns = Configuration(
        accelerator=np.array([chips[str(a)].name for a in some.accelerator]),
        peak=np.array([chips[str(a)].bf16_flops_per_s for a in some.accelerator]),
        params=np.asarray(active_params(model)),
        architecture=np.asarray(model.num_experts) > 0,
        task=np.isin(some.task, ADAPTERS),
        quantised=some.task == QUANTISED,
        bits=np.array([PRECISIONS[r].matmul_bits for r in recipes], dtype=float),
        precision=np.array(recipes),
        num_gpus=some.num_gpus,
        seq_len=some.seq_len,
        tp=some.tp,
        pp=some.pp,
        cp=some.cp,
        ep=some.ep,
        framework=np.array([_stack(str(f)) for f in some.framework]),
    )
    known = (some.model_key, some.task, columns.accelerator, some.num_gpus, some.seq_len,
            columns.precision, columns.framework)  # fmt: skip
    group = np.array(["\n".join(map(str, cells)) for cells in zip(*known, strict=True)])
    return _Table(runs, forecast, rows, columns, group)


def _of_plan(scenario: Scenario, plan: Plan) -> Configuration:
    scenario = as_planned(scenario, plan)
    model = model_of(scenario).transformer
    chip = machines.accelerator_of(plan.offer.accelerator, scenario)
    layout = plan.layout
    return Configuration(
        accelerator=chip.name,
        peak=chip.bf16_flops_per_s,
        params=float(np.asarray(active_params(model))),
        architecture=bool(np.asarray(model.num_experts) > 0),
        task=scenario.task in ADAPTERS,
        quantised=scenario.task == QUANTISED,
        bits=float(PRECISIONS[scenario.precision].matmul_bits),
        precision=scenario.precision,
        num_gpus=float(plan.num_gpus),
        seq_len=float(scenario.seq_len),
        tp=float(layout.tp),
        pp=float(layout.pp),
        cp=float(layout.cp),
        ep=float(layout.ep),
        framework="" if plan.stack == GENERIC else plan.stack,
    )


def nearest(scenario: Scenario, plan: Plan, top: int = 3) -> tuple[Neighbour, ...]:
    """The published runs most similar to a plan, the nearest first, one run per group."""
    table, ours = _table(), _of_plan(scenario, plan)
    terms = distances(ours, table.columns)
    dates = table.runs.inputs.source_date[table.rows]
    found = nearest_rows(terms, top=top, group=table.group, newer=dates)
    return tuple(_neighbour(scenario, plan.layout, table, ours, terms, int(n)) for n in found)


def _neighbour(
    scenario: Scenario,
    layout: Layout,
    table: _Table,
    ours: Configuration,
    terms: dict[str, NDArray[np.float64]],
    n: int,
) -> Neighbour:
    row = int(table.rows[n])
    inputs, forecast = table.runs.inputs, table.forecast
    model = str(inputs.model_key[row])
    same, differences = _in_words(scenario, layout, table, ours, terms, n, model)
    return Neighbour(
        run_id=str(inputs.run_id[row]),
        source=str(inputs.source[row]),
        source_date=str(inputs.source_date[row]),
        model=model,
        accelerator=str(table.columns.accelerator[n]),
        num_gpus=int(inputs.num_gpus[row]),
        framework=str(inputs.framework[row]),
        distance=float(sum(t[n] for t in terms.values())),
        same=same,
        differences=differences,
        measured=float(table.runs.measured.tokens_per_s_per_gpu[row]),
        forecast=float(forecast.tokens_per_s_per_gpu_p50[row]),
        forecast_p10=float(forecast.tokens_per_s_per_gpu_p10[row]),
        forecast_p90=float(forecast.tokens_per_s_per_gpu_p90[row]),
    )


def _in_words(
    scenario: Scenario,
    layout: Layout,
    table: _Table,
    ours: Configuration,
    terms: dict[str, NDArray[np.float64]],
    n: int,
    model: str,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a run shares with the plan, and how it differs, in words."""

    def theirs(name: str) -> Any:
        return getattr(table.columns, name)[n]

    ratio = float(theirs("params")) / float(np.asarray(ours.params))
    one_model = model == scenario.model or (
        abs(ratio - 1) <= SAME_SIZE and not terms["architecture"][n]
    )
    same, different = [], []
    for is_same, name, text in (
        (not terms["accelerator"][n], "GPU", f"{theirs('accelerator')} instead of "
         f"{ours.accelerator}"),
        (one_model, "model", _model_words(model, ratio)),
        (not terms["architecture"][n], "", "mixture of experts" if theirs("architecture")
         else "dense"),
        (not terms["task"][n], "", "adapters only" if theirs("task") else "all weights trained"),
        (not terms["quantised"][n] or bool(terms["task"][n]), "",
         "QLoRA" if theirs("quantised") else "LoRA without quantised weights"),
        (not terms["precision"][n], "precision",
         f"{theirs('precision')} instead of {ours.precision}"),
        (not terms["num_gpus"][n], "GPU count",
         _times(theirs("num_gpus"), ours.num_gpus, "more GPUs", "fewer GPUs")),
        (not terms["seq_len"][n], "sequence length",
         _times(theirs("seq_len"), ours.seq_len, "longer sequences", "shorter sequences")),
        *((not terms[d][n], "", _degree(theirs(d), getattr(ours, d), long))
          for d, long in DEGREES.items()),
        (not terms["framework"][n] and ours.framework != "", "stack",
         f"stack {theirs('framework')}"),
    ):  # fmt: skip
        if is_same and name:
            same.append(name)
        elif not is_same:
            different.append(text)
    run = int(table.rows[n])
    return tuple(same), (*different, *_of_the_layout(table.runs.inputs, run, layout))


def _of_the_layout(inputs: RunInputs, run: int, layout: Layout) -> Iterator[str]:
    """What of a run's micro-batch, recompute and sharding differs from a plan's or is not stated:
    no distance counts it, but it moves the speed."""
    if np.isnan(theirs := float(inputs.micro_batch[run])):
        yield "micro-batch not stated"
    elif theirs != layout.micro_batch_size:
        yield f"micro-batch {theirs:g} instead of {layout.micro_batch_size}"
    for what, column, ours in (
        ("recompute", inputs.recompute, layout.recompute),
        ("sharding", inputs.dp_sharding, layout.sharding),
    ):
        word = str(column[run])
        if word in ("", "unknown"):
            yield f"{what} not stated"
        elif word != SHARDING_WORDS.get(ours, ours):
            yield f"{what} {word} instead of {ours}"


def _model_words(model: str, ratio: float) -> str:
    size = _times(ratio, 1.0, "larger", "smaller")
    return f"{model} ({size})" if size else model


def _times(theirs: Any, ours: Any, more: str, fewer: str) -> str:
    """How the run's number compares with the plan's: '8x fewer GPUs'."""
    ratio = float(theirs) / float(ours)
    if math.isclose(ratio, 1.0, rel_tol=SAME_SIZE):
        return ""
    return f"{ratio:,.2g}x {more}" if ratio > 1 else f"{1 / ratio:,.2g}x {fewer}"


def _degree(theirs: Any, ours: Any, long: str) -> str:
    if np.isnan(theirs):
        return f"{long} not stated"
    return f"{long} {fmt.count(theirs)} instead of {fmt.count(ours)}"

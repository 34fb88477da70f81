"""Published, measured training runs: configured and measured columns, kept apart.

Three files, wide, one observation a row (the columns are listed in `RunInputs`, `_model` and
`Pairs`): runs, the models they name, and pairs of runs that differ in one knob.

The forecast gets `RunInputs` only. `RunMeasurements` holds what the source measured; no measured
column and no note is a field of `RunInputs`, so none can reach a forecast.

Files come from outside: a file that is not such a table is a `RunsError`; a row that cannot be read
is kept with the reason, and the others are still read. A blank is unknown, never zero.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.errors import RunsError, nearest, shown
from hardware.foreign_csv import MAX_BYTES, MAX_ROWS, Row, read_file, table_of
from hardware.measured_cells import (
    BOUNDS,
    MAX_TEXT,
    MEMORY,
    THROUGHPUT,
    configured,
    degrees_reason,
    flag,
    missing_reason,
    outcome,
    peak_memory,
    positive,
    text,
    throughput,
)
from hardware.measured_model import ModelFacts, read_model
from hardware.names import canonical

RUNS_CSV = Path(__file__).with_name("measured_runs.csv")
MODELS_CSV = Path(__file__).with_name("measured_models.csv")
PAIRS_CSV = Path(__file__).with_name("measured_pairs.csv")
MAX_COLUMNS = 100  # characters of a header that are checked for spelling
ALIKE = 0.8  # names this similar count as a misspelling

Texts = NDArray[np.str_]
Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInputs:
    """The configuration of each run, all that a forecast may know, as columns in file order.

    Texts are stripped, '' where blank; numbers are float64, NaN where blank or 'unknown'.
    Words of a fixed vocabulary (`WORDS`) are in lower case and otherwise as the file spells them:
    'unknown' stays 'unknown'. Degrees are 1 where there is none; features of the software are
    1 where on and 0 where off. Rows that `Runs.reason` refuses have the values that could be read.
    """

    run_id: Texts
    source: Texts  # where the run was published
    source_date: Texts  # YYYY-MM, or YYYY, or a range
    framework: Texts
    framework_version: Texts
    model_key: Texts
    task: Texts  # pretrain, sft, lora, qlora
    accelerator: Texts  # as the file spells it
    network: Texts  # free text
    dp_sharding: Texts  # none, zero1, zero2, zero3/fsdp, hsdp
    recompute: Texts  # none, selective, norm_act, mlp, full, unknown
    precision: Texts  # bf16, fp16, fp8, fp8-current, fp8-blockwise, mxfp8, nvfp4, ...
    offload: Texts  # none, optimizer, param, activation, or several joined by +
    compile: Texts  # yes, no, unknown
    software_date: Texts  # YYYY-MM of the commit or release that ran; '' where it is not known
    cuda_graphs: Texts  # none, partial (some layers or operators), full (the whole iteration)
    moe_dispatcher: Texts  # alltoall, allgather, deepep, hybridep, dropless_grouped, einsum, loop
    router_balance: Texts  # forced, natural, alike
    loss_kernel: Texts  # standard, parallel, compiled, chunked, fused_linear
    attention_kernel: Texts  # eager, sdpa, fa1 to fa4, cudnn, xformers, pallas_flash, splash, ...
    optimizer: Texts  # adamw, distributed_adamw, adamw_bf16, adamw_8bit, muon, ...
    packing: Texts  # packed, padded
    memory_measure: Texts  # what peak_mem_gib is: allocated, reserved, device
    param_dtype: Texts  # of the weights that the optimizer updates: fp32, bf16
    grad_dtype: Texts  # in which gradients are summed and reduced: fp32, bf16
    recompute_detail: Texts  # modules, or how many layers
    elementwise_kernel: Texts  # norms and rotation: eager (operator by operator), fused
    lora_targets: Texts  # matrices with adapters: qkv, attention, all
    num_gpus: Numbers
    gpus_per_node: Numbers
    nvlink_domain: Numbers
    seq_len: Numbers
    micro_batch: Numbers  # sequences per model replica and micro-batch
    global_batch: Numbers  # sequences per optimizer step
    tp: Numbers
    pp: Numbers
    vpp: Numbers  # chunks per pipeline rank
    cp: Numbers
    ep: Numbers
    etp: Numbers
    fsdp_degree: Numbers  # where it is not the whole data-parallel degree
    moe_overlap: Numbers  # 1: the experts' all-to-all runs beside computation
    token_drop: Numbers  # capacity factor of experts that take a fixed number of tokens; 0: none
    grad_overlap: Numbers  # 1: gradients are reduced during backward
    param_overlap: Numbers  # 1: weights are gathered during forward
    tp_overlap: Numbers  # 1: tensor-parallel traffic runs beside its matmuls
    lora_rank: Numbers  # of the adapters
    avg_tokens: Numbers  # mean tokens of an example: of a padded sequence, what is data

    def __len__(self) -> int:
        return len(self.run_id)

    def rows(self, chosen: NDArray[Any]) -> Self:
        """The chosen rows, by mask or by index."""
        return type(self)(**{f.name: getattr(self, f.name)[chosen] for f in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMeasurements:
    """What the source measured, for scoring only. NaN where blank, a placeholder or impossible."""

    tokens_per_s_per_gpu: Numbers
    peak_memory_gib: Numbers
    oom: Numbers  # 1 ran out of memory, 0 did not, NaN not stated
    throughput_ok: Flags  # whether the file allows this row to be scored for throughput
    memory_ok: Flags
    unreadable_throughput: Flags  # whether a value is given that is not a positive number
    unreadable_memory: Flags


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """One file of runs. Columns are aligned with its rows."""

    inputs: RunInputs
    measured: RunMeasurements
    reason: NDArray[np.object_]  # why the row cannot be forecast; '' where it can
    line: NDArray[np.int64]  # of the file
    unscored: NDArray[np.object_]  # why a measurement cannot be scored; '' where it can
    notes: tuple[str, ...]  # about the file as a whole

    def __len__(self) -> int:
        return len(self.inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """One file of models: those that could be read, and the reasons for the others."""

    facts: Mapping[str, ModelFacts]
    refused: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Runs b and a that differ in one knob; `ratio` is throughput of b over a, NaN if not
    stated."""

    knob: Texts
    run_a: Texts
    run_b: Texts
    ratio: Numbers
    memory_ratio: Numbers

    def __len__(self) -> int:
        return len(self.knob)


TEXT_COLUMNS = tuple(f.name for f in fields(RunInputs) if f.name not in BOUNDS)
MEASURED_COLUMNS = (THROUGHPUT, MEMORY, "oom")
OTHER_COLUMNS = (
    "metric", "value", "model_tflops_per_gpu", "mfu_printed", "notes", "throughput_ok", "memory_ok"
)  # fmt: skip
COLUMNS = (*(f.name for f in fields(RunInputs)), *MEASURED_COLUMNS, *OTHER_COLUMNS)


def read_runs(path: Path) -> Runs:
    """Every row of a file of runs, in file order, each with its reason if it cannot be used."""
    return runs_of(read_file(path), name=str(path))


def runs_of(
    content: bytes, *, name: str, max_bytes: int = MAX_BYTES, max_rows: int = MAX_ROWS
) -> Runs:
    """The runs of a content in memory, such as an upload, each with its reason."""
    table = table_of(content, name=name, needs=("run_id",), max_bytes=max_bytes, max_rows=max_rows)
    texts: dict[str, list[str]] = {name: [] for name in TEXT_COLUMNS}
    numbers: dict[str, list[float]] = {name: [] for name in BOUNDS}
    reasons: list[str] = []
    first_line: dict[str, int] = {}
    for row in table.rows:
        why = row.width_reason
        for column in TEXT_COLUMNS:
            cell, problem = text(column, row.cells.get(column, ""))
            texts[column].append(cell)
            why = why or problem
        for column in BOUNDS:
            value, problem = configured(column, row.cells.get(column, ""))
            numbers[column].append(value)
            why = why or problem
        why = why or missing_reason(row, table.header)
        why = why or degrees_reason({column: numbers[column][-1] for column in BOUNDS})
        run_id = texts["run_id"][-1]
        if run_id in first_line:
            why = why or f"run_id {shown(run_id)} is already the run of line {first_line[run_id]}."
        first_line.setdefault(run_id, row.line)
        reasons.append(why)
    columns: dict[str, NDArray[Any]] = {k: np.array(v, dtype=np.str_) for k, v in texts.items()}
    columns |= {k: np.array(v, dtype=np.float64) for k, v in numbers.items()}
    measured, unscored = _measurements(table.rows, numbers)
    return Runs(
        inputs=RunInputs(**columns),
        measured=measured,
        reason=np.array(reasons, dtype=object),
        line=np.array([row.line for row in table.rows], dtype=np.int64),
        unscored=np.array(unscored, dtype=object),
        notes=_notes(table.header),
    )


def _notes(header: tuple[str, ...]) -> tuple[str, ...]:
    """Notes on the header: columns that are not read, and nothing to score."""
    notes = []
    absent = [name for name in COLUMNS if name not in header]
    others = []
    for name in header[:MAX_COLUMNS]:
        if not name or name in COLUMNS:
            continue
        guess = nearest(name, absent)
        if guess and SequenceMatcher(None, name, guess).ratio() >= ALIKE:
            notes.append(f"The column {shown(name)} is not read; did you mean {guess!r}?")
        else:
            others.append(shown(name))
    if others:
        plural = "s" if len(others) > 1 else ""
        verb = "are" if plural else "is"
        notes.append(
            f"The column{plural} {', '.join(others)} {verb} not read; "
            "`runcast validate --columns` lists those that are."
        )
    if not {*MEASURED_COLUMNS, "value"} & set(header):
        notes.append(
            f"The file has none of the columns {', '.join(MEASURED_COLUMNS)}: there is nothing to "
            "score."
        )
    return tuple(notes)


def read_models(path: Path) -> Models:
    """Every model of a file, by model_key."""
    return models_of(read_file(path), name=str(path))


def models_of(
    content: bytes, *, name: str, max_bytes: int = MAX_BYTES, max_rows: int = MAX_ROWS
) -> Models:
    """The models of a content in memory, such as an upload, by model_key."""
    table = table_of(
        content, name=name, needs=("model_key",), max_bytes=max_bytes, max_rows=max_rows
    )
    facts: dict[str, ModelFacts] = {}
    refused: dict[str, str] = {}
    for row in table.rows:
        key = row.cell("model_key")
        if not key or key in facts or key in refused:
            continue  # of repeated names the first one counts
        try:
            if row.width_reason:
                raise RunsError(row.width_reason)
            facts[key] = read_model({column: row.cell(column) for column in row.cells})
        except RunsError as e:
            refused[key[:MAX_TEXT]] = f"Model {shown(key)} ({Path(name).name}:{row.line}): {e}"
    return Models(facts=facts, refused=refused)


def read_pairs(path: Path) -> Pairs:
    """Every pair of a file; a ratio that is not a positive number is NaN."""
    table = table_of(read_file(path), name=str(path), needs=("knob", "run_a", "run_b"))

    def texts(name: str) -> Texts:
        return np.array([row.cell(name)[:MAX_TEXT] for row in table.rows], dtype=np.str_)

    def ratios(name: str) -> Numbers:
        return np.array([positive(row.cell(name)) for row in table.rows], dtype=np.float64)

    return Pairs(
        knob=texts("knob"),
        run_a=texts("run_a"),
        run_b=texts("run_b"),
        ratio=ratios("ratio"),
        memory_ratio=ratios("mem_ratio"),
    )


def _measurements(
    rows: Sequence[Row], numbers: Mapping[str, list[float]]
) -> tuple[RunMeasurements, list[str]]:
    """The measurements, and for each row why some of them cannot be scored."""

    def flags(name: str) -> Numbers:
        return np.array([flag(row.cell(name)) for row in rows], dtype=np.float64)

    configurations = [{name: numbers[name][i] for name in BOUNDS} for i in range(len(rows))]
    tokens = [throughput(row, own) for row, own in zip(rows, configurations, strict=True)]
    memory = [peak_memory(row) for row in rows]
    oom = [outcome(row) for row in rows]
    scores_tokens, scores_memory = flags("throughput_ok") == 1, flags("memory_ok") == 1
    # Where no row is marked as usable, all of them count.
    if not (scores_tokens.any() or scores_memory.any()):
        scores_tokens = scores_memory = np.full(len(rows), True)
    measured = RunMeasurements(
        tokens_per_s_per_gpu=np.array([value for value, _ in tokens], dtype=np.float64),
        peak_memory_gib=np.array([value for value, _ in memory], dtype=np.float64),
        oom=np.array([value for value, _ in oom], dtype=np.float64),
        throughput_ok=scores_tokens,
        memory_ok=scores_memory,
        unreadable_throughput=np.array([why != "" for _, why in tokens]),
        unreadable_memory=np.array([why != "" for _, why in memory]),
    )
    unscored = []
    for i in range(len(rows)):
        reasons = (
            tokens[i][1] if scores_tokens[i] else "",
            memory[i][1] if scores_memory[i] else "",
            oom[i][1],
        )
        unscored.append(" ".join(filter(None, reasons)))
    return measured, unscored


@cache
def measured_accelerators(path: Path = RUNS_CSV) -> frozenset[str]:
    """Canonical names of the accelerators whose throughput the shipped runs measured."""
    with path.open(newline="", encoding="utf-8") as file:
        found = {r["accelerator"] for r in csv.DictReader(file) if r["throughput_ok"] == "1"}
    return frozenset(map(canonical, found))

"""Cells of a file of measured runs: each a value, or the reason why it has none.

Configured cells (what was run) and measured cells (the results) are read separately: a wrong
configuration refuses the row, a wrong measurement only keeps it from being scored.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from core.errors import nearest, shown
from hardware.foreign_csv import Row

MAX_TEXT = 300  # characters of one configuration cell
UNKNOWN = ("", "unknown")
WORDS = (
    "task", "dp_sharding", "recompute", "precision", "offload", "compile", "cuda_graphs",
    "moe_dispatcher", "router_balance", "loss_kernel", "attention_kernel", "optimizer", "packing",
    "memory_measure", "param_dtype", "grad_dtype", "elementwise_kernel", "lora_targets",
)  # fmt: skip
REQUIRED = ("run_id", "model_key", "accelerator", "num_gpus", "seq_len")
# Column: (lowest, highest, whole). A number beyond them is a typing error.
BOUNDS: dict[str, tuple[float, float, bool]] = {
    "num_gpus": (1, 2**20, True),
    "gpus_per_node": (1, 4096, True),
    "nvlink_domain": (1, 2**17, True),
    "seq_len": (1, 2**24, False),  # a mean length where sequences are not packed
    "micro_batch": (1e-3, 2**16, False),
    "global_batch": (1e-3, 2**26, False),
    **dict.fromkeys(("tp", "pp", "cp", "ep", "etp", "fsdp_degree"), (1, 2**17, True)),
    "vpp": (1, 2048, True),
    **dict.fromkeys(("moe_overlap", "grad_overlap", "param_overlap", "tp_overlap"), (0, 1, True)),
    "token_drop": (0, 64, False),
    "avg_tokens": (1, 2**24, False),
    "lora_rank": (1, 4096, True),
}
# Groups of ranks that share one model: the GPUs are a whole number of such groups.
GROUPS = (("tp", "pp", "cp"), ("pp", "ep", "etp"))

THROUGHPUT, MEMORY = "tokens_per_s_per_gpu", "peak_mem_gib"
# Units that `metric` may give for `value`. The first ones convert to tokens/s per GPU; the others
# do not, because sources count FLOPs in different ways or mean whole trainings.
OF_TOKENS = ("tokens/s/gpu", "tokens/s")
CONVERTED = (*OF_TOKENS, "step_s", "sequences/s", "samples/s")
PADDED, PACKED = "padded", "packed"
OTHER_METRICS = ("tflop/s/gpu", "mfu", "hfu", "oom", "peak_mem_gb", "gpu-hours",
                 "total_runtime_min")  # fmt: skip


def text(name: str, cell: str) -> tuple[str, str]:
    """A configuration text, and why it cannot be used, if so."""
    stripped = cell.strip()
    if len(stripped) > MAX_TEXT:
        why = f"{name} has {len(stripped)} characters; {MAX_TEXT} are allowed."
        return stripped[:MAX_TEXT], why
    if not stripped.isprintable():
        printable = "".join(c for c in stripped if c.isprintable())
        return printable, f"{name} {shown(stripped)} is not text."
    return (stripped.lower() if name in WORDS else stripped), ""


def configured(name: str, cell: str) -> tuple[float, str]:
    """A configured number (NaN if blank), and why it cannot be used, if so."""
    if cell.strip().lower() in UNKNOWN:
        return math.nan, ""
    value = finite(cell)
    if value is None:
        return math.nan, f"{name}={shown(cell)} is not a finite number."
    low, high, whole = BOUNDS[name]
    if not low <= value <= high:
        return math.nan, f"{name}={shown(cell)} is not between {low:,g} and {high:,.0f}."
    if whole and not value.is_integer():
        return math.nan, f"{name}={shown(cell)} is not a whole number."
    return value, ""


def finite(cell: str) -> float | None:
    """A cell as a finite number, else None."""
    try:
        value = float(cell) if len(cell) <= 64 and "_" not in cell else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def positive(cell: str) -> float:
    """A measured number; NaN for a blank, a placeholder or anything that is not positive."""
    value = finite(cell)
    return value if value is not None and value > 0 else math.nan


def flag(cell: str) -> float:
    """1, 0, or NaN for anything else."""
    value = finite(cell)
    return value if value in (0.0, 1.0) else math.nan


def missing_reason(row: Row, header: Collection[str]) -> str:
    """A sentence with the missing cells that a forecast needs."""
    absent = [name for name in REQUIRED if name not in header]
    if absent:
        guesses = {name: nearest(name, list(header)[:100]) for name in absent}
        named = (f"{n} (did you mean its column {shown(g)}?)" if g else n
                 for n, g in guesses.items())  # fmt: skip
        return f"The file has no column {' and no column '.join(named)}."
    blank = [name for name in REQUIRED if row.cell(name).lower() in UNKNOWN]
    return f"{' and '.join(blank)} must be given and cannot be inferred." if blank else ""


def degrees_reason(numbers: Mapping[str, float]) -> str:
    """Why the degrees of parallelism do not match the number of GPUs; a blank degree is not
    known."""
    gpus = numbers["num_gpus"]
    for names in GROUPS:
        group = math.prod(1.0 if math.isnan(numbers[n]) else numbers[n] for n in names)
        product = f"{' x '.join(names)} = {group:.0f}"
        if group > gpus:
            return f"{product} GPUs, but the run has {gpus:.0f}."
        if gpus % group:
            return f"{product} does not divide the {gpus:.0f} GPUs of the run."
    return ""


def throughput(row: Row, numbers: Mapping[str, float]) -> tuple[float, str]:
    """Measured tokens/s per GPU (NaN if not given), and why it cannot be scored, if so.

    `tokens_per_s_per_gpu` counts where it is given; else `value` in the unit of `metric`. A padded
    run is scored by the positions that it computes: where the source prints tokens, and the row
    says how many of a sequence are data, tokens are taken to be these. A source that prints steps
    or sequences is normalised by `seq_len`, padding included.
    """
    given, metric, value = row.cell(THROUGHPUT), row.cell("metric"), row.cell("value")
    if given:
        counted, why = _measured(THROUGHPUT, given)
        return counted * _positions_per_token(row, metric.lower(), numbers), why
    if not metric or not value or metric.lower() in OTHER_METRICS:
        return math.nan, ""
    if metric.lower() not in CONVERTED:
        units = ", ".join(CONVERTED)
        return math.nan, f"metric={shown(metric)} is no unit of throughput; known are {units}."
    printed, why = _measured("value", value)
    per_gpu = _per_gpu(metric.lower(), printed, numbers)
    if why or math.isfinite(per_gpu):
        return per_gpu * _positions_per_token(row, metric.lower(), numbers), why
    return math.nan, f"metric={shown(metric)} needs global_batch to become tokens/s per GPU."


def peak_memory(row: Row) -> tuple[float, str]:
    """Measured GiB of the fullest GPU (NaN if not given), and why it cannot be scored, if so."""
    given = row.cell(MEMORY)
    return _measured(MEMORY, given) if given else (math.nan, "")


def outcome(row: Row) -> tuple[float, str]:
    """1 if the run was out of memory, 0 if not, NaN if not stated; and what is wrong with the
    cell."""
    given, value = row.cell("oom"), flag(row.cell("oom"))
    wrong = given.lower() not in UNKNOWN and math.isnan(value)
    return value, f"oom={shown(given)} is neither 0 nor 1." if wrong else ""


def _measured(name: str, cell: str) -> tuple[float, str]:
    value = finite(cell)
    if value is None:
        return math.nan, f"{name}={shown(cell)} is not a finite number."
    if value <= 0:
        return math.nan, f"{name}={shown(cell)} is not above zero."
    return value, ""


def _positions_per_token(row: Row, metric: str, numbers: Mapping[str, float]) -> float:
    """Positions of a sequence for each token that a source counts; 1 where all are counted."""
    data = numbers.get("avg_tokens", math.nan)
    counts_data = row.cell("packing").lower() == PADDED and metric in ("", *OF_TOKENS)
    return numbers["seq_len"] / data if counts_data and data <= numbers["seq_len"] else 1.0


def _per_gpu(metric: str, value: float, numbers: Mapping[str, float]) -> float:
    """Tokens/s per GPU from a printed value and its unit."""
    tokens_a_sequence, gpus = numbers["seq_len"], numbers["num_gpus"]
    return {
        "tokens/s/gpu": value,
        "tokens/s": value / gpus,
        "step_s": numbers["global_batch"] * tokens_a_sequence / value / gpus,
        "sequences/s": value * tokens_a_sequence / gpus,
        "samples/s": value * tokens_a_sequence / gpus,
    }[metric]

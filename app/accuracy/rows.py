"""Problems with the rows of a file of measured runs, each with its line number."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.accuracy.predict import Predictions
from app.accuracy.row_words import (
    BALANCES,
    BEST,
    DISPATCHERS,
    DTYPES,
    ELEMENTWISE,
    FLASH2,
    GRAPHS,
    LOSSES,
    MEASURES,
    OPTIMIZER_NAMES,
    PACKINGS,
    PRECISION_NAMES,
    SHARDING_NAMES,
    UNFUSED,
    is_understood,
)
from app.accuracy.section_scores import Section
from app.document import format as fmt
from core.errors import shown
from core.layout.layouts import RECOMPUTE
from core.layout.precision import PRECISIONS
from hardware.habits.adapters import TARGETS
from hardware.measured import Runs
from hardware.measured_cells import UNKNOWN

HABIT = "the habit of the stack is assumed"
TASKS = ("pretrain", "sft", "lora", "qlora")
# Column: (words that a forecast knows, what it assumes for any other word).
VOCABULARY: dict[str, tuple[Collection[str], str]] = {
    "task": (TASKS, "pre-training is assumed"),
    "precision": (
        {*PRECISION_NAMES, *PRECISIONS, *(p.replace("_", "-") for p in PRECISIONS)},
        "bf16 is assumed",
    ),
    "dp_sharding": (SHARDING_NAMES, HABIT),
    "recompute": (RECOMPUTE, "the habit of the stack or the least that fits is assumed"),
    "cuda_graphs": (GRAPHS, "none are assumed"),
    "moe_dispatcher": (DISPATCHERS, HABIT),
    "router_balance": (BALANCES, HABIT),
    "loss_kernel": (LOSSES, HABIT),
    "attention_kernel": ((*UNFUSED, *FLASH2, *BEST), HABIT),
    "optimizer": (OPTIMIZER_NAMES, "AdamW is assumed"),
    "packing": (PACKINGS, "full sequences are assumed"),
    "memory_measure": (MEASURES, HABIT),
    "param_dtype": (DTYPES, HABIT),
    "grad_dtype": (DTYPES, HABIT),
    "elementwise_kernel": (ELEMENTWISE, HABIT),
    "lora_targets": (TARGETS, "all matrices are assumed"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Offence:
    """A row that cannot be used, or only in part, and why."""

    line: int
    run_id: str
    reason: str
    has_forecast: bool  # False: the row is refused; True: something measured is not scored


def offences(runs: Runs, predictions: Predictions, sections: Sequence[Section]) -> list[Offence]:
    """The rows that are refused or have a measurement that cannot be scored, in file order."""
    found = []
    for i, (line, run_id) in enumerate(zip(runs.line, runs.inputs.run_id, strict=True)):
        ok = bool(predictions.ok[i])
        parts = (str(runs.unscored[i]), *(str(s.implausible[i]) for s in sections))
        reason = " ".join(filter(None, parts)) if ok else str(predictions.reason[i])
        if reason:
            found.append(
                Offence(line=int(line), run_id=str(run_id), reason=reason, has_forecast=ok)
            )
    return found


def word_notes(runs: Runs) -> list[str]:
    """Notes on unknown words in the file: each with its first line and what is assumed instead."""
    notes = []
    readable = np.array([reason == "" for reason in runs.reason], dtype=np.bool_)
    for column, (known, assumed) in VOCABULARY.items():
        words: NDArray[np.str_] = getattr(runs.inputs, column)
        for word in sorted({*words[readable].tolist()}.difference(known, UNKNOWN)):
            lines = runs.line[readable & (words == word)]
            first = f"line {lines[0]}" if len(lines) == 1 else f"{len(lines)} rows from {lines[0]}"
            notes.append(f"{column}={shown(word)} ({first}) is not a known word: {assumed}.")
    details = runs.inputs.recompute_detail
    for text in sorted({*details[readable].tolist()}):
        if not is_understood(text):
            lines = runs.line[readable & (details == text)]
            notes.append(
                f"recompute_detail={shown(text)} (line {lines[0]}) is not understood: the mode in "
                "recompute is taken for every layer."
            )
    return notes


def where(rows: Sequence[Offence]) -> str:
    """The lines of some rows in short form: line 7 (run a); 12 rows, lines 2-9, 11, 14-16."""
    if len(rows) == 1:
        run = f" (run {rows[0].run_id})" if rows[0].run_id else ""
        return f"line {rows[0].line}{run}"
    spans: list[list[int]] = []
    for line in sorted(row.line for row in rows):
        if spans and line == spans[-1][1] + 1:
            spans[-1][1] = line
        else:
            spans.append([line, line])
    texts = (str(a) if a == b else f"{a}-{b}" for a, b in spans)
    return f"{fmt.count(len(rows))} rows, lines {', '.join(texts)}"

"""The columns of a file of measured runs: which are read, and what each may hold."""

from __future__ import annotations

from app.accuracy.rows import VOCABULARY
from app.document.table import Table, plain
from hardware.measured import COLUMNS, MEASURED_COLUMNS, OTHER_COLUMNS
from hardware.measured_cells import BOUNDS, CONVERTED, REQUIRED

HOLDS = {"metric": CONVERTED, "oom": ("0", "1"), "throughput_ok": ("0", "1"),
         "memory_ok": ("0", "1")}  # fmt: skip
KEPT = ("run_id", "source", "framework_version")
NOT_READ = ("model_tflops_per_gpu", "mfu_printed", "notes")  # known, and never used


def columns_table() -> Table[tuple[str, ...]]:
    """One row a column: what it is for, what it may hold, and what a blank means."""
    rows = []
    for name in COLUMNS:
        if name in NOT_READ:
            continue
        measured = name in MEASURED_COLUMNS or name in OTHER_COLUMNS
        use = "input of the forecast"
        blank = "inferred"
        if name in KEPT:
            use, blank = "changes no forecast", ""
        elif measured:
            use, blank = "scores the forecast", "not scored"
        if name in REQUIRED:
            blank = "refuses the row"
        rows.append((name, use, _allowed(name), blank))
    heads = ("column", "use", "may hold", "blank")
    return plain("Columns of a file of runs that are read", heads, rows)


def _allowed(name: str) -> str:
    """The numbers or words that a column may hold."""
    if name in BOUNDS:
        low, high, whole = BOUNDS[name]
        kind = "whole number" if whole else "number"
        return f"{kind}, {low:,g} to {high:,.0f}"
    if name in VOCABULARY:
        return ", ".join(dict.fromkeys(word for word in VOCABULARY[name][0] if word))
    return ", ".join(HOLDS.get(name, ("text",)))

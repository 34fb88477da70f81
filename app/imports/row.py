"""A compared run as a row of the user's own measured runs (docs/measured-runs.md)."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from pathlib import Path

from app.document.escape import safe_cell
from app.forecast.machines import CUSTOM
from app.imports.compare import Comparison
from core.errors import ScenarioError, shown
from core.scenario.types import AUTO
from hardware.foreign_csv import read_file, table_of
from pricing.disk import write_atomically

NEEDED = ("run_id", "model_key", "accelerator", "num_gpus", "seq_len", "tokens_per_s_per_gpu")
SHARDING = {"fsdp1": "fsdp", "zeropp": "zero3"}  # the table's names
FRAMEWORKS = {"torchtitan": "torchtitan", "megatron": "megatron-lm", "deepspeed": "deepspeed"}
SHARDED = ("fsdp1", "fsdp2", "hsdp")
ID_CHARS = 12
_DATE = re.compile(r"\b20[2-9]\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])\b")


def row_of(found: Comparison) -> dict[str, str]:
    """The cells of the run by column, in the order of a new file. Raises ScenarioError if the table
    has no name for the model."""
    asked, run, layout = found.scenario, found.run, found.run.layout
    if asked.model == CUSTOM or run.accelerator == CUSTOM:
        raise ScenarioError(
            "A measured run names its model and accelerator; this one has its own dimensions. "
            "Write them into a file of models (docs/measured-runs.md)."
        )
    moved = {"optimizer": layout.offload_optimizer, "param": layout.offload_params}
    offload = "+".join(what for what, where in moved.items() if where != "none")
    memory = found.measured.peak_memory_gib
    cells: dict[str, object] = {
        "run_id": f"log-{found.text.sha256[:ID_CHARS]}",
        "framework": FRAMEWORKS.get(found.measured.format, "")
        if asked.stack in (AUTO, "generic")
        else asked.stack,
        "model_key": asked.model,
        "task": asked.task,
        "accelerator": run.accelerator,
        "num_gpus": run.num_gpus,
        "gpus_per_node": run.gpus_per_node,
        "seq_len": asked.seq_len,
        "micro_batch": layout.micro_batch_size,
        "global_batch": asked.global_batch_size,
        "tp": layout.tp,
        "pp": layout.pp,
        "vpp": layout.virtual_stages,
        "cp": layout.cp,
        "ep": layout.ep,
        "etp": layout.etp,
        "dp_sharding": SHARDING.get(layout.sharding, layout.sharding),
        "fsdp_degree": layout.dp_shard if layout.sharding in SHARDED else "",
        "recompute": layout.recompute if layout.recompute != "offload" else "",
        "precision": asked.precision.replace("_", "-"),
        "compile": "yes" if asked.compile else "no",
        "offload": "nvme" if "nvme" in moved.values() else offload or "none",
        "tokens_per_s_per_gpu": f"{found.measured.tokens_per_s_per_gpu:.6g}",
        "peak_mem_gib": "" if memory is None else f"{memory:.4g}",
        "source": f"own log, sha256 {found.text.sha256[:ID_CHARS]}",
        "source_date": asked.software_date or _month(found),
    }
    return {name: str(cell) for name, cell in cells.items()}


def _month(found: Comparison) -> str:
    """The month of the run, from the first date in the log; '' if it has none."""
    dates = (_DATE.search(line) for line in found.text.lines)
    return next((d[0][:7] for d in dates if d), "")


def line_of(cells: Iterable[str]) -> str:
    """One line of CSV, in which no cell starts a formula."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerow(map(safe_cell, cells))
    return text.getvalue()


def append(path: Path, row: dict[str, str]) -> str:
    """Add the row to a file of measured runs, creating it if needed; return a sentence on what was
    done. Raises ScenarioError or RunsError if it is not a file of measured runs."""
    name = shown(str(path))
    if not path.exists():
        write_atomically(path, (line_of(row) + line_of(row.values())).encode())
        return f"Made {name} with the run {row['run_id']}."
    content = read_file(path)
    table = table_of(content, name=str(path), needs=NEEDED)
    if any(one.cell("run_id") == row["run_id"] for one in table.rows):
        raise ScenarioError(f"{name} has the run {row['run_id']} already: it is of the same log.")
    lacks = [name for name, cell in row.items() if cell and name not in table.header]
    cells = (row.get(name, "") for name in table.header)
    whole = content if content.endswith(b"\n") else content + b"\n"
    write_atomically(path, whole + line_of(cells).encode())
    left = f" Without {', '.join(lacks)}, which it has no columns for." if lacks else ""
    return f"Added the run {row['run_id']} to {name}.{left}"

"""Uploaded runs: read with size limits, forecast, and scored like the shipped runs."""

from __future__ import annotations

import pandas as pd

from app.accuracy.validate import Report, report_of
from app.document.csv import csv_bytes
from hardware.measured import MODELS_CSV, Models, models_of, read_models, runs_of
from hardware.measured_cells import MEMORY, THROUGHPUT

MAX_BYTES = 2_000_000
MAX_ROWS = 5_000
COLUMNS = (
    "run_id", "framework", "model_key", "task", "accelerator", "num_gpus", "seq_len",
    "micro_batch", "global_batch", "tp", "pp", "cp", "ep", "dp_sharding", "recompute",
    "precision", THROUGHPUT, MEMORY, "oom",
)  # fmt: skip
EXAMPLE = (
    ("llama-8b-on-one-node", "torchtitan", "llama3.1-8b", "pretrain", "H100-80GB-SXM", 8, 8192,
     1, 16, 1, 1, 1, 1, "fsdp", "selective", "bf16", 5800, 58.5, 0),
    ("llama-70b-on-32-nodes", "megatron-lm", "llama3.1-70b", "pretrain", "H100-80GB-SXM", 256,
     8192, 1, 128, 4, 8, 1, 1, "zero1", "none", "fp8", 900, "", ""),
)  # fmt: skip


def report_of_upload(runs: bytes, models: bytes | None, *, name: str) -> Report:
    """The validation of an uploaded file of runs. Raises `RunsError`.

    Models are looked up in the uploaded file of models, else among the shipped runs' models,
    else among the presets.
    """
    read = runs_of(runs, name=name, max_bytes=MAX_BYTES, max_rows=MAX_ROWS)
    known = read_models(MODELS_CSV)
    if models is not None:
        own = models_of(models, name="the file of models", max_bytes=MAX_BYTES, max_rows=MAX_ROWS)
        facts = {**known.facts, **own.facts}
        kept = {key: model for key, model in facts.items() if key not in own.refused}
        known = Models(facts=kept, refused=own.refused)
    return report_of(read, known)


def example_csv() -> bytes:
    """An example file of runs: the most commonly known columns, and two rows."""
    return csv_bytes(pd.DataFrame(EXAMPLE, columns=COLUMNS, dtype=object))

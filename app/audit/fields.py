"""The fields of a claim: label on the page, value and help, in the order of the command line."""

from __future__ import annotations

from typing import NamedTuple


class ClaimField(NamedTuple):
    """How one field is called and explained."""

    label: str
    metavar: str
    help: str


FIELDS = {
    "model": ClaimField("Model", "ID", "A preset; experts count as active"),
    "tokens": ClaimField("Training tokens", "N", "Tokens trained on: 1e12, 15T, 500B"),
    "gpu": ClaimField("Accelerator", "NAME", "The accelerator, one kind"),
    "num_gpus": ClaimField("Number of GPUs", "N", "How many; or GPU-hours and days, which give it"),
    "days": ClaimField("Days", "D", "How long it took: 25"),
    "gpu_hours": ClaimField("GPU-hours", "H", "Instead of days, or checked against them"),
    "tokens_per_s": ClaimField(
        "Tokens per second", "R", "Of the whole run; instead of days, or checked"
    ),
    "mfu": ClaimField("MFU", "F", "0.45, 45% or 45-50%; instead of days, or checked"),
    "usd": ClaimField("Dollars", "U", "Of the whole run: 460k"),
    "usd_per_gpu_hour": ClaimField("USD per GPU-hour", "U", "Price of one GPU, not of a node"),
    "precision": ClaimField(
        "Precision", "P", "bf16, fp8, nvfp4, ...; empty: all of the accelerator"
    ),
    "task": ClaimField("Task", "T", "pretrain, sft, lora or qlora; empty: all weights are trained"),
    "seq_len": ClaimField(
        "Sequence length", "N", "8k is 8192; empty: that of published runs of the model"
    ),
    "global_batch_size": ClaimField("Global batch size", "N", "Sequences a step, for the forecast"),
    "params": ClaimField(
        "Parameters counted", "N", "Active ones, where a claim counts its own: 70B"
    ),
    "memory_gb": ClaimField("Memory of a GPU (GB)", "GB", "The claimed memory of one GPU"),
}
NAMES = (*FIELDS, "config")
LABELS = {name: field.label for name, field in FIELDS.items()} | {"config": "Model"}
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in NAMES}

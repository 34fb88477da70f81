"""How much each ingredient of the model helps: cross-validation with that ingredient off."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from app.accuracy.fit import refit
from app.accuracy.fit_report import figures, percent
from app.document.table import Table, plain
from core.errors import unknown_name
from hardware.efficiency import GENERIC, Entry

# Label, and the values that switch the ingredient off. None drops the values of stack families.
INGREDIENTS: tuple[tuple[str, dict[str, float] | None], ...] = (
    ("nothing", {}),
    ("stacks differ", None),
    ("attention slower on short sequences", {"attention_half_tokens": 0.0}),
    ("old attention kernels on new devices", {"flash2": 1.0}),
    ("traffic of skinny matmuls", {"matmul_unhidden": 0.0}),
    ("elementwise operators bound by issue, too", {"onchip": 0.0}),
    ("head dimensions that matrix units cannot take", {"unaligned_slowdown": 1.0}),
    ("memory-bound operators", {"elementwise": 0.3, "permutation": 0.5}),
    ("experts slower than dense matmuls", {"grouped_matmul": 1.0}),
    ("host overhead", {"host_s": 0.0, "expert_host_s": 0.0, "adapter_host_s": 0.0}),
    ("fixed time of a step", {"step_s": 0.0}),
    ("recompute costs time", {"selective_recompute": 0.05, "full_recompute": 0.3}),
    ("software gets faster", {"software_per_year": 0.0}),
    ("latency of hops", {"hop": 0.1}),
    ("pieces hide tensor-parallel traffic", {"tp_exposed": 1.0}),
    ("chunks hide pipeline traffic", {"pp_exposed": 1.0}),
    ("backward hides gradients", {"dp_exposed": 1.0}),
    ("exposed FSDP traffic", {"fsdp_exposed": 0.0}),
    ("overlap slows computation", {"overlap_slowdown": 0.0}),
)
FIGURES = [(split, measure) for split in ("grouped", "new_source")
           for measure in ("median", "mean", "p90", "moe_median")]  # fmt: skip


def pinned(entries: list[Entry], values: dict[str, float]) -> list[Entry]:
    """The table with some quantities fixed for every stack, so that they are not fitted."""
    known = {e.quantity for e in entries}
    if unknown := [name for name in values if name not in known]:
        raise unknown_name("quantity", unknown[0], known)
    return [
        replace(e, value=values[e.quantity], prior=values[e.quantity], prior_sigma=0.0, fits="")
        if e.quantity in values
        else e
        for e in entries
    ]


def ablation(entries: list[Entry], today: dt.date) -> Table[tuple[str, ...]]:
    """The errors on held-out runs without each ingredient."""
    alike = [e for e in entries if e.stack == GENERIC or e.fits != "throughput"]
    rows = []
    for label, values in INGREDIENTS:
        tried = alike if values is None else pinned(entries, values)
        found = {(s, name): m.value for s, name, m in figures(refit(tried, today), today)}
        rows.append((label, *(percent(found[name]) for name in FIGURES)))
    names = (f"{split} {measure}" for split, measure in FIGURES)
    return plain("Errors without each ingredient", ("without", *names), rows, numeric=range(1, 9))

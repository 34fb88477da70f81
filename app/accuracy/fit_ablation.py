"""How much each ingredient of the model helps: cross-validation with that ingredient off."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from app.accuracy.fit import refit
from app.accuracy.fit_report import figures
from core.errors import ScenarioError, unknown_name
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
MEASURES = ("median", "mean", "p90", "within_20", "moe_median")


def pinned(entries: list[Entry], values: dict[str, float]) -> list[Entry]:
    """The table with some quantities fixed for every stack, so that they are not fitted."""
    known = {e.quantity for e in entries}
    for name in values:
        if name not in known:
            raise unknown_name("quantity", name, known)
    for e in entries:
        if e.quantity in values and not e.low <= values[e.quantity] <= e.high:
            raise ScenarioError(
                f"{e.quantity}={values[e.quantity]:g} is not from {e.low:g} to {e.high:g}."
            )
    return [
        replace(e, value=values[e.quantity], prior=values[e.quantity], prior_sigma=0.0, fits="")
        if e.quantity in values
        else e
        for e in entries
    ]


def alike(entries: list[Entry]) -> list[Entry]:
    """The table without the throughput values that are specific to a family of stacks."""
    return [e for e in entries if e.stack == GENERIC or e.fits != "throughput"]


def ablation(entries: list[Entry], today: dt.date) -> Iterator[tuple[str, dict[str, float]]]:
    """For each ingredient, its label and the figures ('grouped median', ...) without it."""
    for label, values in INGREDIENTS:
        tried = alike(entries) if values is None else pinned(entries, values)
        found = {
            f"{split} {measure}": m.value
            for split, measure, m in figures(refit(tried, today), today)
            if measure in MEASURES
        }
        yield label, {k: v for k, v in found.items() if np.isfinite(v)}

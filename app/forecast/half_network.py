"""How much slower a plan is at half its network: shown where the network is assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.forecast.machines import cluster_at
from app.forecast.plans import Row
from app.forecast.search import Found
from core.machine.cluster import as_columns
from core.memory.offload import work_on
from core.time.step import step


def stretches(found: Found, rows: Sequence[Row]) -> dict[str, float]:
    """By id of the plan: the step at half the network over the step, of plans of several machines
    whose network is assumed."""
    guessed = [r for r in rows if r.num_nodes > 1 and not r.machine.network_known]
    by_question: dict[int, list[Row]] = {}
    for row in guessed:
        by_question.setdefault(int(found.best.asked[row.best_row]), []).append(row)
    slower: dict[str, float] = {}
    for n, some in by_question.items():
        question = found.questions[n]
        lay = found.best.layouts.take(np.array([r.best_row for r in some], dtype=np.intp))
        cluster = as_columns([cluster_at(r.machine, r.num_gpus) for r in some])
        half = replace(cluster, scale_out_bytes_per_s=np.asarray(cluster.scale_out_bytes_per_s) / 2)
        work, eff = work_on(question.work, lay), question.eff
        ratio = step(work, lay, half, eff).step_s / step(work, lay, cluster, eff).step_s
        slower |= {r.id: float(x) for r, x in zip(some, ratio, strict=True)}
    return slower

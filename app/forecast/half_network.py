"""How much slower a plan is at half its network: shown where the network is assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.forecast.machines import cluster_at
from app.forecast.plans import Row
from app.forecast.training import Question
from core.machine.cluster import as_columns
from core.memory.offload import work_on
from core.search.best import Best
from core.time.step import step


def stretches(question: Question, best: Best, rows: Sequence[Row]) -> dict[str, float]:
    """By id of the plan: the step at half the network over the step, of plans of several machines
    whose network is assumed."""
    guessed = [r for r in rows if r.num_nodes > 1 and not r.machine.network_known]
    if not guessed:
        return {}
    lay = best.layouts.take(np.array([r.best_row for r in guessed], dtype=np.intp))
    cluster = as_columns([cluster_at(r.machine, r.num_gpus) for r in guessed])
    half = replace(cluster, scale_out_bytes_per_s=np.asarray(cluster.scale_out_bytes_per_s) / 2)
    work = work_on(question.work, lay)
    slower = (
        step(work, lay, half, question.eff).step_s / step(work, lay, cluster, question.eff).step_s
    )
    return {r.id: float(x) for r, x in zip(guessed, slower, strict=True)}

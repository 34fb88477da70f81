"""How much slower a plan is at half its network: shown, and in its width, where the network is
assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.forecast.machines import Machine, cluster_at
from app.forecast.search import Found
from core.machine.cluster import as_columns
from core.memory.offload import work_on
from core.time.step import step


class OnMachines(Protocol):
    """What is asked of a row of an answer."""

    @property
    def id(self) -> str: ...
    @property
    def machine(self) -> Machine: ...
    @property
    def best_row(self) -> int: ...
    @property
    def num_gpus(self) -> int: ...
    @property
    def num_nodes(self) -> int: ...


def is_guessed(row: OnMachines) -> bool:
    """Whether a plan is of several machines whose network is assumed."""
    return row.num_nodes > 1 and not row.machine.network_known


def at_half(found: Found, rows: Sequence[OnMachines]) -> NDArray[np.float64]:
    """The step of each row at half its network over the step; 1 where the network is known."""
    by_question: dict[int, list[int]] = {}
    for at, row in enumerate(rows):
        if is_guessed(row):
            by_question.setdefault(int(found.best.asked[row.best_row]), []).append(at)
    slower = np.ones(len(rows))
    for n, places in by_question.items():
        some = [rows[at] for at in places]
        question = found.questions[n]
        lay = found.best.layouts.take(np.array([r.best_row for r in some], dtype=np.intp))
        cluster = as_columns([cluster_at(r.machine, r.num_gpus) for r in some])
        half = replace(cluster, scale_out_bytes_per_s=np.asarray(cluster.scale_out_bytes_per_s) / 2)
        work, eff = work_on(question.work, lay), question.eff
        slower[places] = step(work, lay, half, eff).step_s / step(work, lay, cluster, eff).step_s
    return slower

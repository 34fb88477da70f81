"""How much slower a plan is at half its network: shown, and in its width, where the network is
assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.forecast.machines import cluster_at
from app.forecast.search import Found
from core.machine.cluster import as_columns
from core.memory.offload import work_on
from core.search.job import Machine
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
    slower = np.ones(len(rows))
    guessed = np.array([at for at, row in enumerate(rows) if is_guessed(row)], dtype=np.intp)
    if not len(guessed):
        return slower
    # Machines that share a row of the search share its job: one of them stands for all.
    best_row, first, of = np.unique(
        [rows[at].best_row for at in guessed], return_index=True, return_inverse=True
    )
    lay = found.best.layouts.take(best_row)
    some = [rows[at] for at in guessed[first]]
    cluster = as_columns([cluster_at(r.machine, r.num_gpus) for r in some])
    half = replace(cluster, scale_out_bytes_per_s=np.asarray(cluster.scale_out_bytes_per_s) / 2)
    work, eff = found.works_of(best_row)
    work = work_on(work, lay)
    ratio = step(work, lay, half, eff).step_s / step(work, lay, cluster, eff).step_s
    slower[guessed] = np.asarray(ratio)[of]
    return slower

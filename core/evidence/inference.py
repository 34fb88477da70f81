"""What a published run leaves out, inferred from its memory: the least that fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from core.layout.layouts import RECOMPUTE, SEARCHED_RECOMPUTE, Layouts
from core.layout.workload import Workload
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.memory.memory import peak_bytes
from core.numeric import Numeric

OFFLOADED_SHARES = (0.125, 0.25, 0.5, 0.75)
FITS = 1.05  # of the usable memory: people fill it, and the forecast of it errs by 5% at the median


def total(parts: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """Sum of the parts, in bytes."""
    return np.sum(list(parts.values()), axis=0)


def least_recompute(
    work: Workload,
    lay: Layouts,
    cluster: Cluster,
    eff: Efficiency,
    *,
    allowed: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """Recompute (index into RECOMPUTE) of each row: the least that fits, else the most.

    `allowed` has a row for each run and a column for each kind; by default, the kinds that the
    search tries.
    """
    count = np.broadcast(*vars_of(lay)).size
    if allowed is None:
        allowed = np.tile(np.isin(RECOMPUTE, SEARCHED_RECOMPUTE), (count, 1))
    chosen = np.zeros(count)
    for kind in range(len(RECOMPUTE)):
        chosen = np.where(allowed[:, kind], float(kind), chosen)
    for kind in reversed(range(len(RECOMPUTE))):
        if not allowed[:, kind].any():
            continue
        tried = replace(lay, recompute=np.full(count, float(kind)))
        need = total(peak_bytes(work, tried, cluster, eff))
        fits = need <= FITS * np.asarray(cluster.memory_bytes)
        chosen = np.where(allowed[:, kind] & fits, float(kind), chosen)
    return chosen


def with_least_offload(work: Workload, lay: Layouts, cluster: Cluster, eff: Efficiency) -> Workload:
    """Where activations are offloaded: the least share of layers that fits. Stacks let people
    choose how many layers to offload, and more than needed only costs time on the link to the
    host."""
    wanted = np.asarray(work.offloads_activations) > 0
    chosen = np.where(wanted, 1.0, 0.0)
    for share in sorted(OFFLOADED_SHARES, reverse=True) if wanted.any() else ():
        tried = replace(work, offloads_activations=np.where(wanted, share, 0.0))
        fits = total(peak_bytes(tried, lay, cluster, eff)) <= FITS * np.asarray(
            cluster.memory_bytes
        )
        chosen = np.where(wanted & fits, share, chosen)
    return replace(work, offloads_activations=chosen)


def vars_of(lay: Layouts) -> list[Numeric]:
    """The columns of layouts that decide how many there are."""
    return [np.asarray(lay.tp), np.asarray(lay.pp), np.asarray(lay.micro_batch_size)]


def smallest_degrees(
    *, heads: int, layers: int, num_gpus: int, domain: int, tp: float, pp: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Candidate (tp, pp) columns in the order in which people scale a job up: tensor parallel
    inside the node first. A degree that is given (not NaN) is kept."""
    tps = [tp] if tp == tp else [2.0**i for i in range(int(domain).bit_length()) if 2**i <= domain]
    pps = [pp] if pp == pp else [2.0**i for i in range(8) if 2**i <= layers]
    rows = [(t, p) for p in pps for t in tps if heads % t == 0 and num_gpus % (t * p) == 0] or [
        (tp if tp == tp else 1.0, pp if pp == pp else 1.0)
    ]
    rows.sort(key=lambda r: (r[0] * r[1], r[1]))
    columns = np.array(rows)
    return columns[:, 0], columns[:, 1]

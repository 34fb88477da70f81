"""Rows of routed tokens that one rank has room for.

[X] AI-Hypercomputer/maxtext: src/maxtext/layers/moe.py, get_ragged_buffer_size: "worst case size to
    ensure no dropping", as many rows as if all tokens of the ranks that share experts chose those
    of one rank, or as many of their choices as it has experts for.
[T] AMD-AGI/Primus-Turbo, DeepEP: num_worst_tokens, so that no host asks how many came.
"""

from __future__ import annotations

import numpy as np

from core.layout.layouts import Layouts
from core.layout.workload import Workload, expert_load, group_routing
from core.machine.efficiency import Efficiency
from core.numeric import Numeric

COPIES_OF_WORST_CASE = 1.0  # the compiler plans its buffers: what is sent and sorted reuses them


def most_rows(work: Workload, *, ep: Numeric) -> Numeric:
    """Rows over the mean where buffers are of the worst case: each of `ep` ranks, and no more than
    num_experts / experts_per_token of them, sends everything to one. [X]
    """
    taken = np.maximum(work.model.experts_per_token, 1.0)
    return np.minimum(ep, np.maximum(np.divide(work.model.num_experts, taken), 1.0))


def held_rows(work: Workload, lay: Layouts, eff: Efficiency) -> tuple[Numeric, Numeric]:
    """Rows that experts of one rank keep over the mean, and how many copies of each it keeps beside
    what the experts make of it."""
    ranks, repeats = group_routing(work, tp=lay.tp, etp=lay.etp)
    rows = expert_load(work, ep=lay.ep) * repeats
    copies = eff.routed_copies * ranks / repeats
    worst = np.asarray(work.holds_worst_case) & (np.asarray(work.capacity_factor) <= 0)
    worst = worst & (np.asarray(lay.ep) > 1)
    return (
        np.where(worst, most_rows(work, ep=lay.ep), rows),
        np.where(worst, COPIES_OF_WORST_CASE, copies),
    )

"""Rows of routed tokens that one rank has room for."""

from __future__ import annotations

import numpy as np

from core.layout.layouts import Layouts
from core.layout.workload import Workload, buffered_load, expert_load, group_routing
from core.machine.efficiency import Efficiency
from core.numeric import Numeric


def held_rows(work: Workload, lay: Layouts, eff: Efficiency) -> tuple[Numeric, Numeric]:
    """Rows that experts of one rank keep over the mean, and how many copies of each it keeps beside
    what the experts make of it. Of these copies only what the grouped matmuls read takes the room
    of a buffer of fixed size."""
    ranks, repeats = group_routing(work, tp=lay.tp, etp=lay.etp)
    load = buffered_load(work, ep=lay.ep)
    room = load / expert_load(work, ep=lay.ep)
    copies = np.asarray(eff.routed_copies) * ranks / repeats
    return load * repeats, (copies - 1 + room) / room

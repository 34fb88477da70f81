"""Slowdown of a collective and matmuls that run at the same time."""

from __future__ import annotations

import statistics
from typing import Any

import torch

from runners.probes.collectives import (
    Collective,
    bus_factor,
    meeting,
    own_groups,
    sampled_together,
    shared_names,
)
from runners.probes.device import MIB
from runners.probes.probe import Probe
from runners.probes.rows import BYTE_CONVENTIONS, FLOP_CONVENTIONS
from runners.probes.timing import summary


def measure_overlap(p: Probe) -> None:
    """Matmuls alone, an all_reduce alone, and both at once."""
    if p.ranks.world < 2:
        p.skip("overlap", "a single process has no others to communicate with")
        return
    groups = own_groups(p)
    for name in shared_names(p, groups):
        with p.attempt(f"overlap {name}"):
            _overlap(p, name, groups[name])
        p.device.release()


def _overlap(p: Probe, name: str, group: tuple[list[int], Any, int]) -> None:
    """Measure as many matmuls as take the time of the all_reduce, then both at once."""
    members, handle, at_once = group
    largest = min(int(p.plan["collective_max_bytes"]), MIB if p.reduced else 64 * MIB)
    collective = Collective(p, "all_reduce", members, handle, largest)
    meet = meeting(p, handle)
    seconds = p.row_s / 2
    alone = statistics.median(sampled_together(p, collective, meet, seconds))
    width = 256 if p.reduced else 4096
    a, b = p.tensor(width, width), p.tensor(width, width)
    out = torch.empty_like(a)
    one = statistics.median(sampled_together(p, lambda: torch.matmul(a, b, out=out), meet, seconds))
    calls = p.ranks.decided(max(1, min(1000, round(alone / one))))

    def compute() -> None:
        for _ in range(calls):
            torch.matmul(a, b, out=out)

    def both() -> None:
        work = collective(async_op=True)
        compute()
        work.wait()

    computing = statistics.median(sampled_together(p, compute, meet, seconds))
    times = sampled_together(p, both, meet, seconds)
    p.shared.append({
        "probe": p.group, "label": "all_reduce and matmul", "dtype": p.main, "mode": "fwd",
        "bytes": float(collective.size_bytes), "flops": calls * 2.0 * width**3,
        "flop_convention": FLOP_CONVENTIONS["matmul"],
        "byte_convention": BYTE_CONVENTIONS["collective"],
        "bus_factor": bus_factor("all_reduce", len(members)),
        "t_compute_s": computing, "t_comm_s": alone, **summary(times, cold=p.device.gpu),
        "params": {"op": "all_reduce", "group": name, "ranks": len(members), "m": width,
                   "n": width, "k": width, "calls": calls, "concurrent_groups": at_once},
    })  # fmt: skip

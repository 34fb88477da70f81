"""Collectives between ranks: six operations, each checked element by element."""

from __future__ import annotations

import time
from typing import Any

import torch
import torch.distributed as dist

from runners.probes.probe import Probe
from runners.probes.rows import BYTE_CONVENTIONS
from runners.probes.timing import Call, event_samples, gpu_event, summary, warm_up


def bus_factor(op: str, ranks: int) -> float:
    """Bytes over the busiest link per byte of the buffer, as nccl-tests defines bus bandwidth."""
    if op == "all_reduce":
        return 2.0 * (ranks - 1) / ranks
    if op in ("all_gather", "reduce_scatter", "all_to_all"):
        return (ranks - 1) / ranks
    return 1.0  # broadcast, send_recv


OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv", "broadcast")
# Renamed in torch 2.13, which warns about the old names.
_gather_into = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_scatter_into = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


class Collective:
    """One operation on one process group at one size, with buffers and a check of its result."""

    def __init__(self, p: Probe, op: str, ranks: list[int], group: Any, size_bytes: int) -> None:
        n = len(ranks)
        self.op, self.group, self.ranks, self.n = op, group, ranks, n
        self.me = ranks.index(p.ranks.rank)
        count = max(1, size_bytes // (4 * n)) * n  # a whole number of fp32 for each rank
        self.size_bytes = 4 * count
        part = count // n
        inputs = part if op == "all_gather" else count
        outputs = part if op == "reduce_scatter" else count
        self.source = torch.empty(inputs, device=p.device.torch)
        self.target = torch.empty(outputs, device=p.device.torch)
        self.fill()

    def fill(self) -> None:
        """Fill the buffer of every rank with another number, small enough for exact sums."""
        self.source.fill_(self.me + 1.0)
        self.target.fill_(self.me + 1.0 if self.op in ("all_reduce", "broadcast") else -1.0)

    def __call__(self, async_op: bool = False) -> Any:
        if self.op == "all_reduce":
            return dist.all_reduce(self.target, group=self.group, async_op=async_op)
        if self.op == "broadcast":
            return dist.broadcast(self.target, self.ranks[0], group=self.group, async_op=async_op)
        if self.op == "all_gather":
            return _gather_into(self.target, self.source, group=self.group, async_op=async_op)
        if self.op == "reduce_scatter":
            return _scatter_into(self.target, self.source, group=self.group, async_op=async_op)
        if self.op == "all_to_all":
            return dist.all_to_all_single(
                self.target, self.source, group=self.group, async_op=async_op
            )
        following, before = self.ranks[(self.me + 1) % self.n], self.ranks[self.me - 1]
        works = dist.batch_isend_irecv([
            dist.P2POp(dist.isend, self.source, following, group=self.group),
            dist.P2POp(dist.irecv, self.target, before, group=self.group),
        ])  # fmt: skip
        for work in works:
            work.wait()
        return None

    def wrong(self) -> int:
        """Number of wrong elements of this rank after one fresh call."""
        self.fill()
        self()
        n, numbers = self.n, torch.arange(1.0, self.n + 1, device=self.target.device)
        if self.op in ("all_reduce", "reduce_scatter"):
            wanted = torch.full_like(self.target, n * (n + 1) / 2)
        elif self.op in ("all_gather", "all_to_all"):
            wanted = numbers.repeat_interleave(self.target.numel() // n)
        else:
            number = 1.0 if self.op == "broadcast" else (self.me - 1) % n + 1.0
            wanted = torch.full_like(self.target, number)
        return int((self.target != wanted).sum())


def own_groups(p: Probe) -> dict[str, tuple[list[int], Any, int]]:
    """Process groups of this rank by name: its members, the handle, how many run at once."""
    own: dict[str, tuple[list[int], Any, int]] = {}
    for name, groups in p.ranks.members().items():
        for members in groups:
            handle = dist.new_group(members)  # every rank makes every group
            if p.ranks.rank in members:
                own[name] = (members, handle, len(groups))
    return own


def shared_names(p: Probe, groups: dict[str, Any]) -> list[str]:
    """Names for which every rank has a group: with nodes of different sizes some ranks are left
    over."""
    return [name for name in p.ranks.members() if all(p.ranks.gather(name in groups))]


def collective_sizes(most: int) -> list[int]:
    """8 bytes to the largest by factors of 4, and the largest."""
    sizes = [8]
    while sizes[-1] * 4 <= most:
        sizes.append(sizes[-1] * 4)
    return sizes if sizes[-1] == most or most < 8 else [*sizes, most]


def sampled_together(p: Probe, call: Call, meet: Call, seconds: float) -> list[float]:
    """Equally many samples on every rank; the time of each sample is that of the slowest rank."""
    one = max(p.ranks.slowest([warm_up(call, p.device.sync, seconds=0.0)]))
    n = p.ranks.decided(min(50, max(5, int(seconds / one))))
    if p.device.gpu:

        def ready() -> None:
            p.device.flush()
            meet()

        return p.ranks.slowest(event_samples(
            call, n, flush=ready, sync=p.device.sync,
            event=gpu_event,
        ))  # fmt: skip
    times = []
    for _ in range(n):
        meet()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return p.ranks.slowest(times)


def meeting(p: Probe, group: Any) -> Call:
    """Make ranks start a sample together: a barrier on a CPU, a tiny all_reduce on the stream."""
    if not p.device.gpu:
        return lambda: dist.barrier(group=group)
    token = torch.zeros(1, device=p.device.torch)
    return lambda: dist.all_reduce(token, group=group)


def measure_collectives(p: Probe) -> None:
    """Six operations on each process group, from 8 bytes up."""
    if p.ranks.world < 2:
        p.skip("collectives", "a single process has no others to communicate with")
        return
    groups = own_groups(p)
    names = shared_names(p, groups)
    total_s = float(p.plan.get("collective_s") or (12.0 if p.reduced else 90.0))
    share_s = total_s / (len(names) * len(OPS))
    for name in names:
        for op in OPS:
            with p.attempt(f"{op} {name}"):
                _sweep(p, op, name, groups[name], share_s)
            p.device.release()


def _sweep(p: Probe, op: str, name: str, group: tuple[list[int], Any, int], share_s: float) -> None:
    """One operation over sizes; the next size is left out when it would take too long."""
    members, handle, at_once = group
    meet = meeting(p, handle)
    sizes = collective_sizes(int(p.plan["collective_max_bytes"]))
    begin, last = time.perf_counter(), 0.0
    for size in sizes:
        used = time.perf_counter() - begin
        # Five samples, three warm-up calls and the check, each of four times the last time.
        if p.ranks.decided(min(share_s, p.left_s()) < used + 9 * 4 * last and size > 8):
            p.skip(f"{op} {name}", f"{size} bytes and more: the time for it was used up")
            return
        collective = Collective(p, op, members, handle, size)
        wrong = sum(p.ranks.gather(collective.wrong()))
        times = sampled_together(p, collective, meet, share_s / (2 * len(sizes)))
        measured = summary(times, cold=p.device.gpu)
        last = measured["t_min_s"]  # a spike is not due to the size
        p.shared.append({
            "probe": p.group, "label": op, "dtype": "fp32", "mode": "fwd", "wrong": wrong,
            "bytes": float(collective.size_bytes), "bus_factor": bus_factor(op, len(members)),
            "byte_convention": BYTE_CONVENTIONS["collective"], **measured,
            "params": {"op": op, "group": name, "ranks": len(members),
                       "concurrent_groups": at_once, "nodes": len({p.ranks.node_of[r]
                                                                   for r in members})},
        })  # fmt: skip

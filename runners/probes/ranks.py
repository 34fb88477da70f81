"""Ranks: the processes of one run and their nodes."""

from __future__ import annotations

import datetime
import os
import socket
from typing import Any

import torch
import torch.distributed as dist


class Ranks:
    """The processes of this run. With a single process, every method returns its argument."""

    def __init__(self) -> None:
        env = os.environ
        self.rank = int(env.get("RANK", "0"))
        self.world = int(env.get("WORLD_SIZE", "1"))
        self.local_rank = int(env.get("LOCAL_RANK", "0"))
        self.local_world = int(env.get("LOCAL_WORLD_SIZE", "0") or 0)
        self.distributed = "RANK" in env and "MASTER_ADDR" in env
        self.control: Any = None  # objects and decisions travel over the CPU
        self.node_of = [0]

    def join(self, kind: str) -> None:
        """Join the other ranks, first over gloo, so that a busy device is found before it is
        used."""
        if not self.distributed:
            return
        limit = datetime.timedelta(seconds=300)
        backend = "gloo" if kind == "cpu" else "cpu:gloo,cuda:nccl"
        dist.init_process_group(backend, timeout=limit)
        self.control = dist.new_group(backend="gloo", timeout=limit)
        node = os.environ.get("GROUP_RANK")  # torchrun's number of the node
        if node is None and self.local_world:
            node = str(self.rank // self.local_world)
        names = self.gather(node if node is not None else socket.gethostname())
        order = sorted(set(names), key=names.index)
        self.node_of = [order.index(name) for name in names]

    def gather(self, value: Any) -> list[Any]:
        """The values of all ranks, in order, on every rank."""
        if not self.distributed:
            return [value]
        values: list[Any] = [None] * self.world
        dist.all_gather_object(values, value, group=self.control)
        return values

    def decided(self, value: Any) -> Any:
        """The decision of rank 0, so that ranks with different clocks agree."""
        if not self.distributed:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0, group=self.control)
        return box[0]

    def slowest(self, times: list[float]) -> list[float]:
        """Sample by sample, the maximum over all ranks."""
        if not self.distributed:
            return times
        worst = torch.tensor(times, dtype=torch.float64)
        dist.all_reduce(worst, op=dist.ReduceOp.MAX, group=self.control)
        return worst.tolist()

    def members(self) -> dict[str, list[list[int]]]:
        """Process groups by name: within a node, across nodes (equal local ranks), all."""
        if self.world < 2:
            return {}
        nodes = [
            [r for r in range(self.world) if self.node_of[r] == node]
            for node in sorted(set(self.node_of))
        ]
        if len(nodes) == 1:
            return {"intra_node": nodes}
        width = min(map(len, nodes))
        across = [[ranks[i] for ranks in nodes] for i in range(width)]
        if width == 1:
            return {"inter_node": across}
        return {"intra_node": nodes, "inter_node": across, "world": [list(range(self.world))]}

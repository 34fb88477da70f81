"""Fit of links: collectives as curves, and the rates and latencies of links."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.numeric import as_float
from core.time import collectives as time_collectives
from core.time import message_curve as curve
from core.time.message_curve import Curve
from runners.calibration.fit_compute import Measured
from runners.calibration.result import CalibResult, Row

USED = "all_reduce"  # the operation whose bus bandwidth is the rate of a link in forecasts
LEAST_POINTS = 4
Z_95 = 1.645


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One operation over one kind of process group."""

    op: str
    group: str
    ranks: int
    nodes: int
    bus_factor: float
    curve: Curve
    has_latency: bool = True  # whether a message was small enough to show the latency

    @property
    def bus_bytes_per_s(self) -> float:
        """Bandwidth as nccl-tests counts it, of large messages."""
        return self.curve.bytes_per_s * self.bus_factor


def links(result: CalibResult) -> tuple[Link, ...]:
    """A curve for every operation and group with enough sizes."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in result.rows("collectives"):
        found[(str(row.params["op"]), str(row.params["group"]))].append(row)
    made = []
    for (op, group), rows in found.items():
        sizes = {float(r.bytes or 0.0): r for r in rows}
        if len(sizes) < LEAST_POINTS:
            continue
        made.append(
            Link(
                op=op,
                group=group,
                ranks=int(rows[0].params["ranks"]),
                nodes=int(rows[0].params["nodes"]),
                bus_factor=float(rows[0].bus_factor or 1.0),
                curve=curve.fit(
                    size_bytes=np.array(list(sizes)),
                    time_s=np.array([r.t_med_s for r in sizes.values()]),
                ),
            )
        )
    return tuple(made)


def rates(found: tuple[Link, ...], cluster: Cluster, eff: Efficiency) -> dict[str, Measured]:
    """Bandwidth and latency of the link inside the node and of the network, from all-reduces."""
    reduced = [link for link in found if link.op == USED]
    inside = max((x for x in reduced if x.nodes == 1), key=lambda x: x.ranks, default=None)
    across = max((x for x in reduced if x.nodes > 1), key=lambda x: x.ranks, default=None)
    made: dict[str, Measured] = {}
    if inside is not None:
        up = as_float(eff.scale_up * np.asarray(cluster.scale_up_bytes_per_s))
        made["scale_up"] = _rate(inside, up, inside.bus_bytes_per_s)
        if inside.has_latency:
            made["scale_up_hop"] = _hop(inside, cluster, eff)
    out = as_float(eff.scale_out * np.asarray(cluster.scale_out_bytes_per_s))
    if across is not None and np.isfinite(out):
        local = across.ranks / across.nodes
        made["scale_out"] = _rate(across, out, across.bus_bytes_per_s / local)
        if across.has_latency:
            made["scale_out_hop"] = _hop(across, cluster, eff)
    return made


def _rate(link: Link, assumed: float, measured: float) -> Measured:
    c = link.curve
    return Measured(
        assumed=assumed / 1e9,
        measured=measured / 1e9,
        unit="GB/s",
        sigma=float(np.log(c.bytes_per_s_high / c.bytes_per_s_low)) / (2 * Z_95),
        num_measured=len(c.size_bytes),
        left_out_error=c.left_out_error,
        note=f"bus bandwidth of {link.op} over {link.ranks} ranks of {link.nodes} nodes",
    )


def _hop(link: Link, cluster: Cluster, eff: Efficiency) -> Measured:
    """Latency of a hop: the smallest all-reduce over its hops, a tree or a ring as in the
    forecast."""
    n = float(link.ranks)
    hops = {
        "ranks": n,
        "local_ranks": n / link.nodes,
        "scale_up_hop_s": eff.hop * np.asarray(cluster.scale_up_hop_s),
        "scale_out_hop_s": eff.hop * np.asarray(cluster.scale_out_hop_s),
    }
    latency = np.minimum(time_collectives.ring_hop_s(**hops), time_collectives.tree_hop_s(**hops))
    return Measured(
        assumed=float(2 * (n - 1) * latency) * 1e6,
        measured=link.curve.latency_s * 1e6,
        unit="us",
        sigma=0.1,
        num_measured=1,
        note=f"the smallest {link.op} over {link.ranks} ranks",
    )

"""Links of a cluster as a group of ranks uses them: rates, hops, all-reduces."""

from __future__ import annotations

import numpy as np

from core.layout.layouts import Layouts
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.numeric import Numeric
from core.time import collectives


def domain(cluster: Cluster) -> Numeric:
    """Devices that the scale-up link joins. Devices of PCIe-only machines share a host: their link
    is the PCIe rate in scale_up_bytes_per_s."""
    return np.maximum(np.maximum(cluster.scale_up_domain, 1.0), cluster.gpus_per_node)


def _rates(
    cluster: Cluster, eff: Efficiency, lay: Layouts, ranks: Numeric, local: Numeric
) -> dict[str, Numeric]:
    """Achieved rates of both tiers, for a group of this size with `local` ranks of a domain."""
    used: Numeric = 1.0
    farther = np.log2(np.maximum(np.divide(ranks, local), 1.0))
    shared = (1 - np.asarray(eff.scale_out_doubling)) ** farther
    if np.any(cluster.torus_axes):
        chips = np.minimum(lay.num_gpus, domain(cluster))
        share = collectives.torus_share(
            ranks=np.minimum(ranks, chips), chips=chips, axes=cluster.torus_axes
        )
        used = np.where(np.asarray(cluster.torus_axes) > 0, share, 1.0)
    if np.any(cluster.linked_peers):
        used = np.where(
            np.asarray(cluster.linked_peers) > 0,
            collectives.mesh_share(ranks=local, peers=cluster.linked_peers),
            used,
        )
    return {
        "scale_up_bytes_per_s": eff.scale_up * used * np.asarray(cluster.scale_up_bytes_per_s),
        "scale_out_bytes_per_s": eff.scale_out * shared * np.asarray(cluster.scale_out_bytes_per_s),
    }


def all_to_all_rates(cluster: Cluster, eff: Efficiency, ranks: Numeric) -> dict[str, Numeric]:
    """Achieved rates of both tiers, for messages from every rank to every other."""
    longer: Numeric = 1.0
    if np.any(cluster.torus_axes):
        factor = collectives.torus_all_to_all_factor(
            ranks=np.minimum(ranks, domain(cluster)), axes=cluster.torus_axes
        )
        longer = np.where(np.asarray(cluster.torus_axes) > 0, factor, 1.0)
    return {
        "scale_up_bytes_per_s": eff.all_to_all * np.asarray(cluster.scale_up_bytes_per_s) / longer,
        "scale_out_bytes_per_s": eff.all_to_all
        * np.asarray(cluster.scale_out_bytes_per_s)
        * cluster.scale_out_all_to_all,
    }


def bandwidth(
    cluster: Cluster, eff: Efficiency, lay: Layouts, *, ranks: Numeric, stride: Numeric
) -> tuple[Numeric, Numeric]:
    """Bandwidth over a group, and its ranks in one domain."""
    local = collectives.local_ranks(ranks=ranks, stride=stride, domain=domain(cluster))
    rate = collectives.group_bytes_per_s(
        ranks=ranks, local_ranks=local, **_rates(cluster, eff, lay, ranks, local)
    )
    return rate, local


def hops(
    cluster: Cluster, eff: Efficiency, *, ranks: Numeric, local_ranks: Numeric
) -> dict[str, Numeric]:
    """What the latency of a group's hops is made of: arguments of `collectives`."""
    return {
        "ranks": ranks,
        "local_ranks": local_ranks,
        "scale_up_hop_s": eff.hop * np.asarray(cluster.scale_up_hop_s),
        "scale_out_hop_s": eff.hop * np.asarray(cluster.scale_out_hop_s),
    }


def group(
    cluster: Cluster, eff: Efficiency, lay: Layouts, *, ranks: Numeric, stride: Numeric
) -> tuple[Numeric, Numeric, Numeric]:
    """Bandwidth over a group, and the latency of one hop of a ring and of an all-reduce."""
    rate, local = bandwidth(cluster, eff, lay, ranks=ranks, stride=stride)
    of = hops(cluster, eff, ranks=ranks, local_ranks=local)
    ring, tree = collectives.ring_hop_s(**of), collectives.tree_hop_s(**of)
    return rate, ring, np.minimum(ring, tree)


def all_reduce_s(
    cluster: Cluster,
    eff: Efficiency,
    lay: Layouts,
    *,
    size_bytes: Numeric,
    ranks: Numeric,
    stride: Numeric,
) -> Numeric:
    """The faster of a ring (or tree) and of switches that add up, where there are any."""
    rate, _, latency = group(cluster, eff, lay, ranks=ranks, stride=stride)
    ring = collectives.all_reduce_s(
        size_bytes=size_bytes, ranks=ranks, bytes_per_s=rate, latency_s=latency
    )
    added = in_switch_s(cluster, eff, lay, size_bytes=size_bytes, ranks=ranks, stride=stride)
    return np.minimum(ring, added)


def in_switch_s(
    cluster: Cluster,
    eff: Efficiency,
    lay: Layouts,
    *,
    size_bytes: Numeric,
    ranks: Numeric,
    stride: Numeric,
) -> Numeric:
    """All-reduce that switches add up; inf where a link on the way has no such switch."""
    if not np.any(cluster.switch_reduces):
        return np.inf
    local = collectives.local_ranks(ranks=ranks, stride=stride, domain=domain(cluster))
    across = np.asarray(ranks) > local
    one = collectives.in_switch_all_reduce_s(
        size_bytes=size_bytes,
        ranks=ranks,
        local_ranks=local,
        **_rates(cluster, eff, lay, ranks, local),
        latency_s=eff.hop * np.where(across, cluster.scale_out_hop_s, cluster.scale_up_hop_s),
    )
    can = (np.asarray(cluster.switch_reduces) > 0) & (
        ~across | (np.asarray(cluster.network_reduces) > 0)
    )
    return np.where(can, one, np.inf)

"""Time of a collective (alpha-beta model, ring), inside a node, across nodes, or both.

[P09] Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
      workstations", JPDC 69(2), 2009.
[G16] Graham et al., "Scalable Hierarchical Aggregation Protocol (SHArP)", COMHPC 2016.
[A25] Austin et al., "How to Scale Your Model", 2025, chapter "Sharded Matrices": collectives on
      a torus of bidirectional rings.
[H25] Intel, "Gaudi Network Configuration", docs.habana.ai, 2025: three ports to each of seven.

Symbols: n ranks, M size_bytes (of the whole, gathered buffer), B bytes_per_s (one direction,
per rank), a latency_s per hop.
"""

from __future__ import annotations

import numpy as np

from core.numeric import Numeric


def all_reduce_s(
    *, size_bytes: Numeric, ranks: Numeric, bytes_per_s: Numeric, latency_s: Numeric
) -> Numeric:
    """Ring all-reduce of M bytes: 2 (n-1)/n M/B + 2 (n-1) a. [P09]

    >>> float(all_reduce_s(size_bytes=1e9, ranks=1, bytes_per_s=450e9, latency_s=5e-6))
    0.0
    """
    n, M, B, a = ranks, size_bytes, bytes_per_s, latency_s
    return 2 * (n - 1) / n * M / B + 2 * (n - 1) * a


def in_switch_all_reduce_s(
    *,
    size_bytes: Numeric,
    ranks: Numeric,
    local_ranks: Numeric,
    scale_up_bytes_per_s: Numeric,
    scale_out_bytes_per_s: Numeric,
    latency_s: Numeric,
) -> Numeric:
    """All-reduce of M bytes that switches add up, inside a scale-up domain of r ranks or across
    d = n/r of them. [G16]

    A switch reads every rank's copy and sends back one sum: (r+1)/r M/B, where a ring moves 2
    (r-1)/r. Across domains the ports of r ranks carry M/r each, once up and once down, in addition
    to a scatter and a gather inside.

    >>> float(in_switch_all_reduce_s(size_bytes=8e9, ranks=8, local_ranks=8,
    ...     scale_up_bytes_per_s=1e9, scale_out_bytes_per_s=1e9, latency_s=0.0))
    9.0
    """
    n, M = np.asarray(ranks), np.asarray(size_bytes)
    r = np.minimum(local_ranks, n)
    inside_s = (r + 1) / r * M / scale_up_bytes_per_s
    d = n / r
    across_s = np.where(d > 1, (d + 1) / d * M / r / scale_out_bytes_per_s, 0.0)
    return np.where(n > 1, np.maximum(inside_s, across_s) + 2 * np.asarray(latency_s), 0.0)


def all_gather_s(
    *, size_bytes: Numeric, ranks: Numeric, bytes_per_s: Numeric, latency_s: Numeric
) -> Numeric:
    """Ring all-gather into M bytes, or reduce-scatter of M: (n-1)/n M/B + (n-1) a. [P09]"""
    n, M, B, a = ranks, size_bytes, bytes_per_s, latency_s
    return (n - 1) / n * M / B + (n - 1) * a


def all_to_all_s(
    *,
    size_bytes: Numeric,
    ranks: Numeric,
    local_ranks: Numeric,
    scale_up_bytes_per_s: Numeric,
    scale_out_bytes_per_s: Numeric,
    latency_s: Numeric,
    sent_once: Numeric = 1.0,
) -> Numeric:
    """Each rank sends M/n to every rank: the slower of the two tiers it travels on.

    Of M bytes, (r-1)/n stay inside the scale-up domain of r ranks and (n-r)/n leave it through the
    rank's own network port. Where copies for one domain cross only once (`sent_once` is the share
    that remains), they are distributed inside it on arrival.
    """
    n, r, M = ranks, local_ranks, size_bytes
    spread = np.where(np.asarray(sent_once) < 1, (r - 1) / r, (r - 1) / n)
    inside_s = spread * M / scale_up_bytes_per_s
    across_s = sent_once * (n - r) / n * M / scale_out_bytes_per_s
    return np.maximum(inside_s, across_s) + (n - 1) * latency_s


def share_sent_once(*, copies: Numeric, domains: Numeric) -> Numeric:
    """Expected distinct domains of a token's `copies` over the copies, when all experts are equally
    likely: D (1 - (1 - 1/D)^k) / k (arXiv:2412.19437, section 3.2.2 sends a token once a node).

    >>> round(float(share_sent_once(copies=8.0, domains=4.0)), 3)
    0.45
    """
    d, k = np.maximum(domains, 1.0), np.maximum(copies, 1.0)
    return d * (1 - (1 - 1 / d) ** k) / k


def local_ranks(*, ranks: Numeric, stride: Numeric, domain: Numeric) -> Numeric:
    """Ranks of one group that share a scale-up domain, when neighbours are `stride` apart.

    >>> float(local_ranks(ranks=16.0, stride=2.0, domain=8.0))
    4.0
    """
    return np.clip(np.floor(np.divide(domain, stride)), 1.0, ranks)


def group_bytes_per_s(
    *,
    ranks: Numeric,
    local_ranks: Numeric,
    scale_up_bytes_per_s: Numeric,
    scale_out_bytes_per_s: Numeric,
) -> Numeric:
    """Bandwidth of a ring over a group that fills several domains.

    A ring enters and leaves each domain through the network ports of its local ranks, which
    it can use together (one ring per port), and inside runs on the scale-up link.
    """
    across = np.minimum(scale_up_bytes_per_s, local_ranks * np.asarray(scale_out_bytes_per_s))
    return np.where(np.asarray(ranks) <= local_ranks, scale_up_bytes_per_s, across)


def torus_share(*, ranks: Numeric, chips: Numeric, axes: Numeric) -> Numeric:
    """Share of a chip's links that a group of neighbouring chips uses. [A25]

    A slice of `chips` has sides of chips^(1/axes), or the powers of two next to that: 128 chips are
    4 x 4 x 8. A group fills one axis after the other, the shortest first, each with two of a chip's
    2 x axes links; a first axis that is not full is a line, of half the rate.

    >>> float(torus_share(ranks=256, chips=256, axes=2)), float(torus_share(ranks=4, chips=256,
    ...     axes=2))
    (1.0, 0.25)
    """
    n, a = np.maximum(ranks, 2.0), np.maximum(axes, 1.0)
    side = np.maximum(np.maximum(chips, n) ** (1 / a), 2.0)
    filled = np.log(n) / np.log(side)
    used = np.clip(np.ceil(filled - 1e-9), 1.0, a)
    shortest = 2 ** np.floor(np.log2(side) + 1e-9)
    return used / a * np.where(n >= shortest, 1.0, 0.5)


def mesh_share(*, ranks: Numeric, peers: Numeric) -> Numeric:
    """Share of a device's links that a group uses where every two devices have links of their own:
    those to the other ranks. [H25]

    >>> float(mesh_share(ranks=8, peers=7)), round(float(mesh_share(ranks=2, peers=7)), 3)
    (1.0, 0.143)
    """
    used = np.maximum(ranks, 2.0) - 1
    return np.minimum(used / np.maximum(peers, 1.0), 1.0)


def torus_all_to_all_factor(*, ranks: Numeric, axes: Numeric) -> Numeric:
    """Time of an all-to-all on a torus of n chips over that behind a switch of equal rate: half of
    the data crosses the middle, where each row of chips has two links in each direction. [A25]

    >>> float(torus_all_to_all_factor(ranks=256, axes=2))
    8.0
    """
    a = np.maximum(axes, 1.0)
    return np.maximum(np.asarray(ranks) ** (1 / a) * a / 4, 1.0)


def ring_hop_s(
    *, ranks: Numeric, local_ranks: Numeric, scale_up_hop_s: Numeric, scale_out_hop_s: Numeric
) -> Numeric:
    """Mean latency of one hop of a ring: one hop per domain leaves the domain.

    >>> float(ring_hop_s(ranks=16, local_ranks=8, scale_up_hop_s=1.0, scale_out_hop_s=9.0))
    2.0
    """
    r = np.minimum(local_ranks, ranks)
    mixed = ((r - 1) * scale_up_hop_s + scale_out_hop_s) / r
    return np.where(np.asarray(ranks) <= local_ranks, scale_up_hop_s, mixed)


def tree_hop_s(
    *, ranks: Numeric, local_ranks: Numeric, scale_up_hop_s: Numeric, scale_out_hop_s: Numeric
) -> Numeric:
    """Latency of an all-reduce over the domains' tree, spread over the ring's (n-1) hops.

    Libraries switch an all-reduce from ring to tree when latency counts, which then grows with
    the logarithm of the domains; gathers and scatters have no tree.
    """
    n = np.maximum(ranks, 2.0)
    domains = np.maximum(n / local_ranks, 1.0)
    inside = np.minimum(local_ranks, n) * scale_up_hop_s
    return (inside + 2 * np.log2(domains) * scale_out_hop_s) / (n - 1)

"""Collectives against step-by-step simulations of the rings, [P09]."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.time.collectives import (
    all_gather_s,
    all_reduce_s,
    all_to_all_s,
    group_bytes_per_s,
    in_switch_all_reduce_s,
    local_ranks,
    ring_hop_s,
    share_sent_once,
    tree_hop_s,
)
from tests.support import simulation


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_the_ring_all_reduce_moves_what_a_simulated_ring_moves(ranks):
    values = np.arange(ranks * ranks * 6, dtype=float).reshape(ranks, -1)  # 6 values a chunk
    reduced, seconds = simulation.ring_all_reduce(values, bytes_per_s=1e3, latency_s=0.25)
    assert (reduced == values.sum(axis=0)).all()  # the simulation is an all-reduce
    assert seconds == pytest.approx(
        all_reduce_s(size_bytes=values[0].nbytes, ranks=ranks, bytes_per_s=1e3, latency_s=0.25)
    )


@given(
    ranks=st.integers(1, 4096),
    size=st.floats(1, 1e12),
    rate=st.floats(1e9, 1e12),
    latency=st.floats(0, 1e-4),
)
def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather(ranks, size, rate, latency):
    ring = {"size_bytes": size, "ranks": ranks, "bytes_per_s": rate, "latency_s": latency}
    assert all_reduce_s(**ring) == pytest.approx(2 * all_gather_s(**ring))
    assert all_gather_s(**ring) >= 0
    assert all_gather_s(**{**ring, "latency_s": 0}) <= size / rate
    assert (all_gather_s(**ring) == 0) == (ranks == 1)


@pytest.mark.parametrize("ranks", [2, 8, 16, 64])
@pytest.mark.parametrize("domain", [1, 2, 8, 64])
@pytest.mark.parametrize("scale_out", [5e9, 50e9, 400e9])
def test_all_to_all_takes_as_long_as_its_busiest_port(ranks, domain, scale_out):
    local = min(domain, ranks)
    got = all_to_all_s(
        size_bytes=1e9, ranks=ranks, local_ranks=local, scale_up_bytes_per_s=450e9,
        scale_out_bytes_per_s=scale_out, latency_s=0.0,
    )  # fmt: skip
    want = simulation.all_to_all_s(
        size_bytes=1e9, ranks=ranks, domain=local, scale_up=450e9, scale_out=scale_out
    )
    assert float(got) == pytest.approx(want)


@pytest.mark.parametrize("domains", [1, 2, 8])
@pytest.mark.parametrize("local", [1, 2, 4, 8])
@pytest.mark.parametrize("scale_out", [1e9, 50e9, 300e9])
def test_rings_over_all_ports_reach_the_bandwidth_of_the_group(domains, local, scale_out):
    """One ring per port: the closed form is the busiest link of the simulated rings, which an
    algorithm may miss by the one hop in r that a ring leaves its domain instead."""
    n = domains * local
    if n == 1:
        return
    want = simulation.multi_ring_all_gather_s(
        size_bytes=1e9, domains=domains, local_ranks=local, scale_up=450e9, scale_out=scale_out
    )
    rate = group_bytes_per_s(
        ranks=float(n), local_ranks=float(local), scale_up_bytes_per_s=450e9,
        scale_out_bytes_per_s=scale_out,
    )  # fmt: skip
    got = float(all_gather_s(size_bytes=1e9, ranks=n, bytes_per_s=rate, latency_s=0.0))
    assert want * 0.999 <= got <= want * max(local / max(local - 1, 1), 1) * 1.001


@given(domain=st.integers(1, 72), stride=st.integers(1, 128), ranks=st.integers(1, 128))
def test_local_ranks_are_those_in_the_first_domain(domain, stride, ranks):
    counted = sum(1 for r in range(ranks) if r * stride < domain)
    got = float(local_ranks(ranks=float(ranks), stride=float(stride), domain=float(domain)))
    assert 1 <= got <= ranks
    # The closed form rounds a partly filled domain down: never more than really share it.
    assert got <= counted
    if domain % stride == 0:
        assert got == counted


@given(
    ranks=st.sampled_from([2.0, 8.0, 64.0, 1024.0]),
    local=st.sampled_from([1.0, 2.0, 8.0]),
    up=st.floats(25e9, 900e9),
    out=st.floats(1e9, 100e9),
)
def test_a_group_is_no_faster_than_its_fastest_link(ranks, local, up, out):
    local = min(local, ranks)
    rate = float(
        group_bytes_per_s(
            ranks=ranks, local_ranks=local, scale_up_bytes_per_s=up, scale_out_bytes_per_s=out
        )
    )
    assert min(up, out) <= rate <= up
    inside = group_bytes_per_s(
        ranks=local, local_ranks=local, scale_up_bytes_per_s=up, scale_out_bytes_per_s=out
    )
    assert float(inside) == up


UP, OUT = 3.1e-6, 9.6e-6  # seconds of a hop inside a domain and between two


@pytest.mark.parametrize("domains", [1, 2, 8])
@pytest.mark.parametrize("local", [1, 2, 8])
def test_a_ring_pays_each_hop_it_takes(domains, local):
    """Counted on a ring that visits one domain after another and closes."""
    n = domains * local
    if n == 1:
        return
    places = [rank // local for rank in range(n)]
    around = sum(OUT if places[i] != places[(i + 1) % n] else UP for i in range(n))
    got = ring_hop_s(ranks=n, local_ranks=local, scale_up_hop_s=UP, scale_out_hop_s=OUT)
    assert float(got) == pytest.approx(around / n)


@pytest.mark.parametrize("domains", [2, 16, 1024])
def test_a_tree_pays_the_depth_of_the_domains_up_and_down(domains):
    """A chain through the domain, and the tree's levels once up and once down."""
    depth = len(bin(domains)) - 3
    got = tree_hop_s(
        ranks=domains * 8.0, local_ranks=8.0, scale_up_hop_s=UP, scale_out_hop_s=OUT
    ) * (domains * 8 - 1)
    assert float(got) == pytest.approx(8 * UP + 2 * depth * OUT)


@given(
    domains=st.sampled_from([1, 2, 4, 64, 1024]),
    local=st.sampled_from([1, 2, 8, 72]),
    up=st.one_of(st.just(0.0), st.floats(1e-7, 1e-4)),
    out=st.one_of(st.just(0.0), st.floats(1e-7, 1e-4)),
)
def test_rings_grow_with_the_ranks_and_trees_with_their_logarithm(domains, local, up, out):
    def latency(of, n):
        hop = of(ranks=float(n), local_ranks=float(min(local, n)), scale_up_hop_s=up,
                 scale_out_hop_s=out)  # fmt: skip
        return (n - 1) * float(hop)

    n = domains * local
    for of in (ring_hop_s, tree_hop_s):
        assert latency(of, n) >= 0
        assert latency(of, 2 * n) >= latency(of, n) * (1 - 1e-9)
    if domains > 1:
        assert latency(tree_hop_s, 2 * n) - latency(tree_hop_s, n) == pytest.approx(
            2 * out, rel=1e-6, abs=1e-12
        )
        assert latency(ring_hop_s, 2 * n) - latency(ring_hop_s, n) == pytest.approx(
            domains * ((local - 1) * up + out), rel=1e-6, abs=1e-12
        )


@pytest.mark.parametrize("copies", [1, 2, 3])
@pytest.mark.parametrize("domains", [1, 2, 4, 8])
def test_a_token_is_sent_to_the_domains_that_its_experts_lie_in(copies, domains):
    """Every way to pick, with equal chance, the domains of k experts: how many differ."""
    picks = list(itertools.product(range(domains), repeat=copies))
    mean = sum(len(set(p)) for p in picks) / len(picks)
    got = float(share_sent_once(copies=float(copies), domains=float(domains)))
    assert got * copies == pytest.approx(mean)


@given(copies=st.integers(1, 16), domains=st.integers(1, 128))
def test_sending_once_is_never_more_than_each_copy_nor_less_than_one(copies, domains):
    share = float(share_sent_once(copies=float(copies), domains=float(domains)))
    assert 1 / copies * (1 - 1e-9) <= share <= 1 + 1e-9
    wider = float(share_sent_once(copies=float(copies), domains=2.0 * domains))
    assert wider >= share * (1 - 1e-9)


@given(
    once=st.floats(0.1, 1),
    ranks=st.sampled_from([16, 64, 256]),
    up=st.floats(25e9, 900e9),
    out=st.floats(1e9, 100e9),
)
def test_sending_once_trades_the_network_for_the_links_inside(once, ranks, up, out):
    rest = {
        "size_bytes": 1e9, "ranks": float(ranks), "local_ranks": 8.0, "scale_up_bytes_per_s": up,
        "scale_out_bytes_per_s": out, "latency_s": 0.0,
    }  # fmt: skip
    got = float(all_to_all_s(**rest, sent_once=once))
    across = once * (ranks - 8) / ranks * 1e9 / out
    assert got >= across * (1 - 1e-12)
    if once < 1:  # all that arrives is spread inside, whoever received it
        assert got == pytest.approx(max(across, 7 / 8 * 1e9 / up))
    else:
        assert got == float(all_to_all_s(**rest))


@pytest.mark.parametrize(
    ("ranks", "inside_s", "across_s"),
    [
        (8, 9 / 8, 0.0),  # eight copies in, one sum out, over a port that carries M/8 of each
        (16, 9 / 8, (3 / 2) / 8),  # two domains: the port of a rank carries M/8, up and half down
        (32, 9 / 8, (5 / 4) / 8),
    ],
)
@pytest.mark.parametrize("network", [1e9, 1e7])
def test_switches_read_every_copy_and_send_back_one_sum(ranks, inside_s, across_s, network):
    """A tree of depth one in closed form, [G16]: whichever of the two tiers takes longer."""
    seconds = in_switch_all_reduce_s(
        size_bytes=1e9, ranks=ranks, local_ranks=8, scale_up_bytes_per_s=1e9,
        scale_out_bytes_per_s=network, latency_s=0.25,
    )  # fmt: skip
    assert seconds == pytest.approx(max(inside_s, across_s * 1e9 / network) + 0.5)


def test_one_rank_reduces_nothing():
    rates = {"scale_up_bytes_per_s": 1e9, "scale_out_bytes_per_s": 1e9, "latency_s": 1.0}
    assert in_switch_all_reduce_s(size_bytes=1e9, ranks=1, local_ranks=8, **rates) == 0

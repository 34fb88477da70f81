"""Switches that add up and tori, against counts of links and published bandwidths."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.machine.cluster import cluster_of
from core.memory.stage_params import stage_params
from core.time import links, state_traffic, traffic
from core.time.collectives import (
    all_reduce_s,
    in_switch_all_reduce_s,
    torus_all_to_all_factor,
    torus_share,
)
from hardware.facts import accelerator, all_to_all_share
from tests.made_up.jobs import CLUSTER, IDEAL, LLAMA_8B, SHIPPED, layout, workload

NVLINK_SHARP = replace(CLUSTER, switch_reduces=1.0)


def shipped(name, domain=8):
    return cluster_of(
        accelerator(name), gpus_per_node=8, scale_up_domain=domain, scale_out_bytes_per_s=50e9
    )


@pytest.mark.parametrize(
    ("name", "measured"),
    [
        ("A100-80GB-SXM", 231.58e9),
        ("H100-80GB-SXM", 478.87e9),
        ("H200-141GB-SXM", 479.98e9),
        ("MI300X", 316.82e9),
    ],
)
def test_the_all_reduce_of_8_gb_runs_at_the_published_bus_bandwidth(name, measured):
    """Azure AI benchmarking guide, all-reduce over 8 devices of one machine, 8 GB: the size
    times 2 (n-1)/n over the seconds. Hopper's switches add up; the others run a ring."""
    seconds = links.all_reduce_s(
        shipped(name), SHIPPED["generic"], layout(), size_bytes=8e9, ranks=8, stride=1
    )
    # A share of training, where other kernels run beside it, and so a little low for one alone.
    assert 2 * 7 / 8 * 8e9 / float(seconds) == pytest.approx(measured, rel=0.17)


def test_a_network_gives_less_of_its_rate_to_more_domains_and_nothing_less_inside_one():
    eff = replace(IDEAL, scale_out=0.8, scale_out_doubling=0.1)
    one = replace(CLUSTER, scale_up_domain=8, gpus_per_node=8)

    def rate(ranks):
        return float(links.group(one, eff, layout(), ranks=float(ranks), stride=1.0)[0])

    across = 8 * 0.8 * float(np.asarray(one.scale_out_bytes_per_s))
    assert rate(16) == pytest.approx(min(0.9 * across, float(one.scale_up_bytes_per_s)))
    assert rate(8 * 16) == pytest.approx(min(0.9**4 * across, float(one.scale_up_bytes_per_s)))
    assert rate(8) == pytest.approx(float(one.scale_up_bytes_per_s))


def test_messages_to_all_ranks_over_efa_get_a_quarter_of_its_rate():
    """awslabs/awsome-distributed-ai, RESULTS.md of Megatron-Bridge."""
    efa = replace(CLUSTER, scale_out_all_to_all=all_to_all_share("efa"))
    slow, fast = (links.all_to_all_rates(c, IDEAL, 32.0) for c in (efa, CLUSTER))
    assert slow["scale_out_bytes_per_s"] == fast["scale_out_bytes_per_s"] / 4
    assert slow["scale_up_bytes_per_s"] == fast["scale_up_bytes_per_s"]
    assert all_to_all_share("infiniband") == 1


def test_a_group_of_gaudis_uses_its_links_to_its_own_ranks_only():
    """docs.habana.ai, Collectives Performance: 256 MiB over 8 Gaudi 3 at 512.96 GB/s of bus
    bandwidth; two of eight have 3 of the 21 ports between them."""
    size, gaudi = 2.0**28, SHIPPED["gaudi"]
    rates = []
    for ranks in (8, 2):
        seconds = links.all_reduce_s(
            shipped("Gaudi3"), gaudi, layout(), size_bytes=size, ranks=ranks, stride=1
        )
        rates.append(2 * (ranks - 1) / ranks * size / float(seconds))
    assert rates[0] == pytest.approx(512.96e9, rel=0.12)
    assert rates[1] == pytest.approx(rates[0] / 7, rel=0.12)


@given(
    ranks=st.sampled_from([2, 4, 8, 16, 64, 512]),
    local=st.sampled_from([1, 4, 8, 72]),
    size=st.floats(1e3, 1e11),
)
def test_switches_that_add_up_move_at_most_half_more_than_one_copy(ranks, local, size):
    """And never less than a copy up and a copy down the busier tier."""
    got = float(
        in_switch_all_reduce_s(
            size_bytes=size, ranks=ranks, local_ranks=local, scale_up_bytes_per_s=4e11,
            scale_out_bytes_per_s=4e11, latency_s=0.0,
        )
    )  # fmt: skip
    assert size / 4e11 <= got <= 2 * size / 4e11
    ring = float(all_reduce_s(size_bytes=size, ranks=ranks, bytes_per_s=4e11, latency_s=0.0))
    if ranks >= 4 and local >= ranks:
        assert got < ring


def test_only_a_way_that_can_add_up_throughout_does():
    one = {"size_bytes": 1e9, "ranks": 64, "stride": 1}
    ring = float(links.all_reduce_s(CLUSTER, IDEAL, layout(), **one))
    inside = float(links.all_reduce_s(NVLINK_SHARP, IDEAL, layout(), **one))
    both = replace(NVLINK_SHARP, network_reduces=1.0)
    assert inside == ring
    assert float(links.all_reduce_s(both, IDEAL, layout(), **one)) < 0.7 * ring


def test_sequence_parallelism_gains_nothing_from_switches_and_all_reduces_do():
    for sp, gains in ((1.0, False), (0.0, True)):
        lay = layout(tp=8, dp_shard=1, sequence_parallel=sp)
        plain, added = (
            float(traffic.tensor_parallel_s(workload(LLAMA_8B), lay, c, IDEAL))
            for c in (CLUSTER, NVLINK_SHARP)
        )
        assert (added < plain) == gains


@pytest.mark.parametrize("strategy", ["ddp", "zero1"])
def test_ddp_inside_a_machine_is_added_up_and_a_sharded_optimizer_is_not(strategy):
    lay = layout(strategy=strategy)
    params = stage_params(workload(LLAMA_8B), lay, first=True)
    plain, added = (
        float(state_traffic.gradient_s(lay, c, IDEAL, params, 1.0, latency_s=0.0))
        for c in (CLUSTER, NVLINK_SHARP)
    )
    assert (added < plain) == (strategy == "ddp")


def busiest(paths):
    """Largest number of chunks over one directed link of a row of chips."""
    return max(Counter(hop for path in paths for hop in path).values())


def walk(begin, steps, direction, size):
    return [((begin + direction * i) % size, direction) for i in range(steps)]


@pytest.mark.parametrize("size", [4, 8, 16])
def test_an_all_gather_on_a_line_takes_twice_a_ring(size):
    """Chunks of M/n: round a ring half go each way; along a line the end gets all on one link."""
    ring = busiest(
        [walk(i, size // 2, 1, size) for i in range(size)]
        + [walk(i, size - 1 - size // 2, -1, size) for i in range(size)]
    )
    line = busiest(
        [walk(i, size - 1 - i, 1, size) for i in range(size)]
        + [walk(i, i, -1, size) for i in range(size)]
    )
    axes = 2
    whole = float(torus_share(ranks=size, chips=size**axes, axes=axes))
    part = float(torus_share(ranks=size, chips=(2 * size) ** axes, axes=axes))
    assert whole == 1 / axes
    assert part / whole == pytest.approx(ring / line, rel=1 / (size - 1))


@pytest.mark.parametrize("size", [8, 16, 32])
def test_an_all_to_all_on_a_ring_is_as_slow_as_its_busiest_link(size):
    """Every pair by the shorter way; a switch would take M over both links of a chip."""
    paths = []
    for i in range(size):
        for j in range(1, size):
            if 2 * j <= size:
                paths.append(walk(i, j, 1, size))
            if 2 * j > size:
                paths.append(walk(i, size - j, -1, size))
    chunks = busiest(paths)  # each M/n over one link; the switch has two
    behind_a_switch = size / 2
    factor = float(torus_all_to_all_factor(ranks=size, axes=1))
    assert factor == pytest.approx(chunks / behind_a_switch, rel=0.35)


def test_a_slice_of_a_tpu_uses_all_links_and_one_axis_a_share():
    pod = shipped("TPU-v6e", domain=256)
    whole, row, corner = (
        links.group(pod, IDEAL, layout(num_gpus=256), ranks=n, stride=1)[0] for n in (256, 16, 4)
    )
    assert float(whole) == accelerator("TPU-v6e").scale_up_bytes_per_s
    assert float(row) == float(whole) / 2
    assert float(corner) == float(whole) / 4


def test_a_group_as_long_as_the_shortest_side_of_a_slice_is_a_ring():
    """4 x 4 x 8 chips have rings of four as 4 x 4 x 4 have."""
    of_64, of_128 = (float(torus_share(ranks=4, chips=n, axes=3)) for n in (64, 128))
    assert of_64 == of_128 == pytest.approx(1 / 3)


@given(chips=st.sampled_from([16, 64, 128, 256, 1024, 4096]), axes=st.sampled_from([2, 3]))
def test_larger_groups_never_use_fewer_links(chips, axes):
    ranks = [2**i for i in range(1, 13) if 2**i <= chips]
    share = torus_share(ranks=np.array(ranks), chips=chips, axes=axes)
    assert (np.diff(share) >= 0).all()
    assert share[-1] == 1

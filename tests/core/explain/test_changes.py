"""Changes of one or two knobs: legal, fitting, and what they are said to take."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from core.explain.changes import changes
from core.explain.explain import columns_of
from core.explain.knobs import KNOBS, MOST_KNOBS, OFFLOADS
from core.layout.workload import CPU
from core.memory.memory import peak_bytes
from core.memory.offload import host_bytes
from core.search.best import Z_80, Job
from core.search.search import best_layouts
from core.time.step import step
from tests.made_up.cases import CHOICES, JOBS, NUM_GPUS, is_legal, job, layout, legal, machine
from tests.made_up.jobs import CLUSTER, LLAMA_8B, LLAMA_70B

LARGER = machine("B200", replace(CLUSTER, memory_bytes=190e9, peak_flops_per_s=2.2e15), usd=110.0)
LAYOUT_KNOBS = tuple(k for k in KNOBS if k not in ("offload", "num_gpus", "accelerator"))


def near_to(found, base, *, num_gpus=NUM_GPUS, choices=CHOICES, **given):
    """Changes of a layout of the made-up job, unless another count or other choices are given."""
    question = replace(found.question, choices=choices)
    return changes(replace(found, num_gpus=num_gpus, question=question), base, **given)


def directly(found, change):
    """Step and memory of a change, from the formulas themselves."""
    work = found.work
    if change.offload != OFFLOADS[0]:
        both = change.offload == OFFLOADS[2]
        work = replace(work, offload_optimizer=CPU, offload_params=CPU if both else 0.0)
        assert change.layout.offload_optimizer == "cpu"
        assert change.layout.offload_params == ("cpu" if both else "none")
    place = LARGER if change.accelerator == "B200" else found.machine
    rows = columns_of([change.layout], [change.num_gpus])
    times = step(work, rows, place.cluster, found.eff)
    peak = sum(v[0] for v in peak_bytes(work, rows, place.cluster, found.eff).values())
    return float(times.step_s[0]), float(peak), place


@settings(max_examples=25, deadline=None)
@given(legal())
def test_every_change_is_legal_fits_and_takes_what_it_says(job):
    found, base = job
    near = near_to(found, base, machines=[LARGER], most=40)
    assert near.num_tried >= near.num_legal >= near.num_fit >= len(near.ranked)
    for c in near.ranked:
        step_s, peak, place = directly(found, c)
        assert c.step_s == pytest.approx(step_s)
        assert c.need_bytes == pytest.approx(peak)
        assert peak <= place.cluster.memory_bytes * math.exp(-Z_80 * found.question.memory_sigma)
        steps = math.ceil(1e11 / (8192 * 512))
        assert c.hours == pytest.approx(steps * step_s / 3600)
        nodes = math.ceil(c.num_gpus / 8)
        assert c.usd == pytest.approx(c.hours * nodes * place.offer.usd_per_hour)
        assert 1 <= len(c.changed) <= MOST_KNOBS
        assert set(c.changed) <= set(KNOBS)
        if c.offload == OFFLOADS[0]:
            assert is_legal(found, c.layout, c.num_gpus)
    costs = [c.usd for c in near.ranked]
    assert costs == sorted(costs)


@pytest.mark.parametrize("sharding", ["hsdp", "zero1"])
def test_a_group_of_shards_stays_as_it_is_where_its_ranks_do(sharding):
    base = replace(layout(tp=2, sharding=sharding), dp_replicate=2, dp_shard=16)
    near = near_to(job(), base, knobs=("micro_batch_size", "recompute"))
    assert near.ranked
    assert {(c.layout.dp_replicate, c.layout.dp_shard) for c in near.ranked} == {(2, 16)}


def test_what_is_said_to_change_is_what_differs():
    base = layout(tp=2, recompute="none")
    for c in near_to(job(), base, most=40).ranked:
        for knob in LAYOUT_KNOBS:
            now, then = str(getattr(base, knob)), str(getattr(c.layout, knob))
            if knob in c.changed:
                assert c.changed[knob] == (now, then)
            elif knob != "virtual_stages":  # which a job without a pipeline has none of
                assert now == then


@pytest.mark.parametrize("model", JOBS)
def test_no_neighbour_of_the_winner_is_faster(model):
    """The search and the neighbourhood are two pieces of code that must agree."""
    found = replace(job(model), is_sure=True)
    best = best_layouts(
        found.work, [Job(cluster=CLUSTER, num_gpus=NUM_GPUS)], found.eff, CHOICES,
        memory_sigma=found.question.memory_sigma,
    )  # fmt: skip
    from core.explain.explain import record_of

    winner = record_of(best.layouts, 0)
    near = near_to(found, winner, knobs=LAYOUT_KNOBS, most=40)
    assert near.ranked
    assert min(c.step_s for c in near.ranked) >= float(best.step.step_s[0]) * (1 - 1e-9)


def test_a_layout_that_does_not_fit_gets_changes_that_do():
    base = layout(sharding="ddp", recompute="none")
    near = near_to(job(LLAMA_70B), base, machines=[LARGER])
    assert any("sharding" in c.changed for c in near.ranked)
    assert all(c.need_bytes < c.capacity_bytes for c in near.ranked)


def test_an_illegal_layout_gets_legal_neighbours():
    base = layout(tp=3)
    near = near_to(job(), base)
    assert near.ranked
    assert all(c.changed["tp"][0] == "3" for c in near.ranked)


def test_counts_that_are_no_powers_of_two_have_neighbours():
    base = replace(layout(), dp_shard=48, num_microbatches=8)
    near = near_to(job(global_batch_size=384.0), base, num_gpus=48, knobs=("pp", "tp"))
    assert near.num_legal > 0
    assert all(c.layout.tp * c.layout.pp * c.layout.dp_shard == 48 for c in near.ranked)


def test_without_a_price_the_fastest_comes_first():
    found = job()
    found = replace(found, machine=machine(usd=None))
    near = near_to(found, layout())
    hours = [c.hours for c in near.ranked]
    assert hours == sorted(hours)
    assert all(math.isnan(c.usd) for c in near.ranked)


def test_the_scenario_decides_which_strategies_are_neighbours():
    free = near_to(job(), layout(), knobs=("sharding",))
    one = replace(CHOICES, shardings=("zero1",))
    bound = near_to(job(), layout(), choices=one, knobs=("sharding",))
    assert bound.num_tried == 1 < free.num_tried


def test_two_knobs_are_told_only_where_they_are_worth_it():
    near = near_to(job(LLAMA_8B), layout(), most=40)
    alone = {next(iter(c.changed)): c.usd for c in near.ranked if len(c.changed) == 1}
    pairs = [c for c in near.ranked if len(c.changed) == 2]
    assert alone
    assert pairs
    for c in pairs:
        assert all(c.usd < alone[k] for k in c.changed if k in alone)


def test_only_what_the_host_has_room_for_is_moved_there():
    found = job(LLAMA_70B)
    base = replace(layout(tp=8, recompute="full"), dp_shard=1, num_microbatches=512)
    roomy = replace(found, machine=machine(host_bytes=200e9))
    near = near_to(roomy, base, num_gpus=8, most=40)
    moved = [c for c in near.ranked if c.offload != OFFLOADS[0]]
    assert moved
    assert all("offload" in c.changed for c in moved)
    less = near_to(found, base, num_gpus=8, most=40)  # no host memory is known
    assert all(c.offload == OFFLOADS[0] for c in less.ranked)


def test_what_the_search_put_on_the_host_has_to_stay_within_it():
    """A layout that the search offloads has neighbours with as much on the host as there is; one
    whose job says so is believed."""
    found = job(LLAMA_70B)
    base = replace(
        layout(tp=4, sharding="zero1"), offload_optimizer="cpu", dp_shard=2, num_microbatches=256
    )
    known = replace(found, machine=machine(host_bytes=60e9))
    searched = replace(CHOICES, searches_offload=True)
    near = near_to(known, base, num_gpus=8, choices=searched, knobs=LAYOUT_KNOBS, most=99)
    said = near_to(known, base, num_gpus=8, knobs=LAYOUT_KNOBS, most=99)
    assert near.num_fit < said.num_fit
    for c in near.ranked:
        rows = columns_of([c.layout], [8])
        assert float(np.max(host_bytes(found.work, rows, found.eff))) <= 60e9


def test_tensor_parallelism_leaves_the_link_only_where_it_may():
    cluster = replace(CLUSTER, memory_bytes=190e9, scale_up_domain=4, gpus_per_node=4)
    small = machine("T", cluster, usd=2.0)
    base = layout(tp=8, sharding="zero1")
    near = near_to(job(), base, machines=[small], most=99)
    there = [c for c in near.ranked if c.accelerator == "T"]
    assert there
    assert all(c.layout.tp <= 4 for c in there)
    free = replace(CHOICES, tp_across_nodes=True)
    near = near_to(job(), base, choices=free, machines=[small], most=99)
    assert any(c.accelerator == "T" and c.layout.tp == 8 for c in near.ranked)


def test_a_cluster_that_has_no_more_gpus_gets_none():
    owned = replace(job(), machine=machine(largest_num_gpus=64))
    near = near_to(owned, layout(), knobs=("num_gpus",))
    assert {c.num_gpus for c in near.ranked} <= {32}
    more = near_to(job(), layout(), knobs=("num_gpus",))
    assert {c.num_gpus for c in more.ranked} > {128}


def test_nothing_that_fits_is_no_error():
    tiny = job(LLAMA_70B, on=machine(cluster=replace(CLUSTER, memory_bytes=1e9)))
    near = near_to(tiny, layout())
    assert (near.num_fit, near.ranked) == (0, ())
    assert np.isfinite(near.num_legal)

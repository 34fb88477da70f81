"""What would make a step faster: each claim, computed again from the step itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from core.explain.bottleneck import (
    BATCH,
    DOWN,
    GROUPS,
    HIDDEN,
    LAUNCH,
    MEMORY,
    RESOURCES,
    UP,
    WORK,
    faster,
    improved,
)
from core.explain.explain import columns_of
from core.layout.layouts import RECOMPUTE
from core.memory.memory import peak_bytes
from core.search.best import Z_80
from core.time.step import PARTS, step
from tests.made_up.cases import NUM_GPUS, job, layout, legal
from tests.made_up.jobs import CLUSTER, LLAMA_70B, MIXTRAL_8X7B


def again(found, rows, resource, value):
    """Seconds of each part, per batch of today, with a resource at `value`."""
    work, cluster, batches = found.work, CLUSTER, 1.0
    if resource in (*UP, *DOWN):
        cluster = replace(cluster, **{resource: value})
    elif resource == LAUNCH:
        work = replace(work, host_slowdown=value)
    else:
        batches = value / float(np.asarray(rows.num_microbatches)[0])
        work = replace(work, global_batch_size=work.global_batch_size * batches)
        rows = replace(rows, num_microbatches=np.array([value]))
    parts = step(work, rows, cluster, found.eff).parts
    return {k: float(v[0]) / batches for k, v in parts.items()}


def share(parts, group):
    return sum(parts[p] for p in GROUPS[group]) / sum(parts.values())


def test_every_part_of_a_step_has_a_group():
    assert sorted(p for parts in GROUPS.values() for p in parts) == sorted(PARTS)


@settings(max_examples=25, deadline=None)
@given(legal())
def test_the_groups_are_the_step(job):
    found, one = job
    told = faster(found, columns_of([one], [NUM_GPUS]))
    parts = step(found.work, columns_of([one], [NUM_GPUS]), CLUSTER, found.eff).parts
    assert told.step_s == pytest.approx(sum(float(v[0]) for v in parts.values()))
    assert sum(b.exposed_s for b in told.bottlenecks) == pytest.approx(told.step_s)
    for b in told.bottlenecks:
        assert b.exposed_s == pytest.approx(sum(float(parts[p][0]) for p in GROUPS[b.group]))
        assert b.share == pytest.approx(b.exposed_s / told.step_s)
        assert b.hidden == (b.share <= HIDDEN)


@settings(max_examples=25, deadline=None)
@given(legal())
def test_what_is_needed_hides_the_part_and_a_little_less_does_not(job):
    found, one = job
    rows = columns_of([one], [NUM_GPUS])
    told = faster(found, rows)
    now = again(found, rows, BATCH, float(one.num_microbatches))
    for b in told.bottlenecks:
        for r in b.remedies:
            if r.needed is None or r.resource == MEMORY:
                continue
            there = again(found, rows, r.resource, r.needed)
            assert share(there, b.group) <= HIDDEN * (1 + 1e-9)
            assert r.saved_s == pytest.approx(sum(now.values()) - sum(there.values()), abs=1e-9)
            assert r.left_s == pytest.approx(sum(there[p] for p in GROUPS[b.group]))
            less = r.needed * 1.01 if r.resource in (*DOWN, LAUNCH) else r.needed / 1.01
            if r.resource == BATCH:  # whole multiples of today's
                less = r.needed - one.num_microbatches
                if less < one.num_microbatches:
                    continue
            assert share(again(found, rows, r.resource, less), b.group) > HIDDEN


@settings(max_examples=25, deadline=None)
@given(legal())
def test_twice_a_resource_saves_what_is_said(job):
    found, one = job
    rows = columns_of([one], [NUM_GPUS])
    told = faster(found, rows)
    assert {x.resource for x in told.levers} == set(RESOURCES)
    for lever in told.levers:
        twice = lever.now / 2 if lever.resource in (*DOWN, LAUNCH) else lever.now * 2
        there = sum(again(found, rows, lever.resource, twice).values())
        assert lever.saved_s == pytest.approx(told.step_s - there, abs=1e-9)


def test_tensor_parallelism_wants_a_faster_link_inside_the_node():
    rows = columns_of([layout(tp=8, sharding="zero1", recompute="none")], [NUM_GPUS])
    told = faster(job(LLAMA_70B), rows)
    assert told.next.group == "tp_exposed"
    assert told.next.remedies[0].resource == "scale_up_bytes_per_s"
    assert told.next.remedies[0].needed > 2 * CLUSTER.scale_up_bytes_per_s


def test_latency_is_hidden_by_no_bandwidth():
    rows = columns_of([layout(tp=8, sharding="zero1", recompute="none")], [NUM_GPUS])
    slow = replace(CLUSTER, scale_up_hop_s=1e-4)
    found = replace(job(), cluster=slow)
    told = faster(found, rows).next
    assert told.group == "tp_exposed"
    link = next(r for r in told.remedies if r.resource == "scale_up_bytes_per_s")
    assert link.needed is None
    assert link.left_s > HIDDEN * faster(found, rows).step_s
    hop = next(r for r in told.remedies if r.resource == "scale_up_hop_s")
    assert hop.needed is None or hop.needed < 1e-4


def test_a_bubble_wants_a_larger_batch():
    rows = columns_of([layout(pp=8, num_microbatches=16, sharding="zero1")], [NUM_GPUS])
    small = job(LLAMA_70B, global_batch_size=128.0)
    bubble = next(b for b in faster(small, rows).bottlenecks if b.group == "bubble")
    assert [r.resource for r in bubble.remedies] == [BATCH]
    assert bubble.remedies[0].needed % 16 == 0


def test_experts_over_a_slow_link_want_a_faster_one():
    found = job(MIXTRAL_8X7B)
    slow = replace(CLUSTER, scale_up_bytes_per_s=20e9)
    rows = columns_of([layout(ep=8, sharding="zero1")], [NUM_GPUS])
    told = faster(replace(found, cluster=slow), rows)
    assert told.next.group == "ep_exposed"
    assert told.next.remedies[0].resource == "scale_up_bytes_per_s"


def test_less_recompute_needs_memory_that_is_enough():
    found = job(LLAMA_70B)
    one = layout(tp=8, sharding="zero1", recompute="full")
    told = faster(found, columns_of([one], [NUM_GPUS]))
    part = next(b for b in told.bottlenecks if b.group == "recompute")
    remedies = [r for r in part.remedies if r.resource == MEMORY]
    assert remedies
    for r in remedies:
        times = {}
        for kind in RECOMPUTE[:2]:
            rows = columns_of([replace(one, recompute=kind)], [NUM_GPUS])
            larger = replace(CLUSTER, memory_bytes=r.needed)
            need = sum(v[0] for v in peak_bytes(found.work, rows, larger, found.eff).values())
            seconds = float(step(found.work, rows, CLUSTER, found.eff).step_s[0])
            needed = need / np.exp(-Z_80 * found.question.memory_sigma)
            times[kind] = (needed, told.step_s - seconds)
        assert any(
            need == pytest.approx(r.needed, rel=1e-3) and r.saved_s == pytest.approx(saved)
            for need, saved in times.values()
        )


def test_the_memory_of_a_small_device_grows_with_what_it_keeps_for_itself():
    small = replace(CLUSTER, memory_bytes=4e9)
    found = job()
    found = replace(found, cluster=small)
    one = layout(recompute="full")
    told = faster(found, columns_of([one], [NUM_GPUS]))
    part = next(b for b in told.bottlenecks if b.group == "recompute")
    remedies = [r for r in part.remedies if r.resource == MEMORY]
    assert remedies
    for r in remedies:
        larger = replace(small, memory_bytes=r.needed)
        needs = [
            sum(v[0] for v in peak_bytes(found.work, rows, larger, found.eff).values())
            for kind in RECOMPUTE[:2]
            for rows in [columns_of([replace(one, recompute=kind)], [NUM_GPUS])]
        ]
        usable = r.needed * np.exp(-Z_80 * found.question.memory_sigma)
        assert any(need == pytest.approx(usable, rel=1e-4) for need in needs)


def test_one_node_has_no_network_to_improve():
    rows = columns_of([layout(dp_shard=8, num_microbatches=64)], [8])
    told = faster(job(), rows)
    assert not {x.resource for x in told.levers} & {"scale_out_bytes_per_s", "scale_out_hop_s"}


def test_computing_is_work_that_nothing_hides():
    told = faster(job(), columns_of([layout()], [NUM_GPUS]))
    for b in told.bottlenecks:
        if b.group in WORK:
            assert all(r.needed is None for r in b.remedies if r.resource != MEMORY)
        else:
            assert all(r.resource != "peak_flops_per_s" for r in b.remedies)
    assert told.bottlenecks[0].group == "compute"
    best = told.bottlenecks[0].remedies[0]
    assert best.resource == "peak_flops_per_s"
    assert best.saved_s == told.levers[0].saved_s
    assert told.next is None or told.next.group != "compute"


def test_a_measurement_moves_every_second():
    rows = columns_of([layout(tp=8, sharding="zero1")], [NUM_GPUS])
    plain, moved = faster(job(), rows), faster(replace(job(), measured_factor=2.0), rows)
    assert moved.step_s == pytest.approx(2 * plain.step_s)
    for a, b in zip(plain.bottlenecks, moved.bottlenecks, strict=True):
        assert b.exposed_s == pytest.approx(2 * a.exposed_s)
        assert [r.needed for r in b.remedies] == [r.needed for r in a.remedies]


def test_a_resource_once_as_good_changes_nothing():
    rows = columns_of([layout()], [NUM_GPUS])
    names = np.array(RESOURCES)
    groups, step_s = improved(job(), rows, names, np.ones(len(names)))
    assert np.ptp(step_s) == 0
    assert all(np.ptp(s) == 0 for s in groups.values())

"""The search: its winner is what brute force over the same candidates finds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.evidence.uncertainty import probability_above
from core.layout.layouts import RECOMPUTE, Choices
from core.layout.workload import CPU
from core.memory.memory import PARTS as MEMORY_PARTS
from core.memory.memory import peak_bytes
from core.search.best import MAX_PROBABILITY_OOM, Job
from core.search.plan import Counts
from core.search.ranking import frontier
from core.search.recommended import MOST_PROBABILITY_OOM
from core.search.search import best_layouts
from core.search.space import candidates
from core.time.step import step
from tests.made_up.jobs import (
    CLUSTER,
    LLAMA_2_7B,
    LLAMA_8B,
    LLAMA_70B,
    MIXTRAL_8X7B,
    SHIPPED,
    TIED_GPT,
    workload,
)

GENERIC = SHIPPED["generic"]
SIGMA = 0.2
SMALL = replace(CLUSTER, memory_bytes=24e9, peak_flops_per_s=165e12, scale_up_bytes_per_s=31e9,
                scale_up_domain=1)  # fmt: skip


def search(work, jobs, choices=None):
    return best_layouts(work, jobs, GENERIC, choices or Choices(), memory_sigma=SIGMA)


def brute_force(work, job, choices):
    """(tokens per second of the fastest layout that surely fits, or where none does of those that
    may, or None; candidates that do not)."""
    per_node = int(job.cluster.gpus_per_node)
    found, _ = candidates(
        model=work.model,
        seq_len=int(work.seq_len),
        choices=choices,
        global_batch_size=int(work.global_batch_size),
        num_gpus=job.num_gpus,
        gpus_per_node=per_node,
        scale_up_domain=max(int(job.cluster.scale_up_domain), per_node),
    )
    speeds, chances = [], []
    for i in range(len(np.asarray(found.tp))):
        one = found.take(np.array([i]))
        need = sum(float(v[0]) for v in peak_bytes(work, one, job.cluster, GENERIC).values())
        chances.append(float(probability_above(job.cluster.memory_bytes, p50=need, sigma=SIGMA)))
        speeds.append(float(step(work, one, job.cluster, GENERIC).tokens_per_s[0]))
    most = MOST_PROBABILITY_OOM if min(chances) <= MOST_PROBABILITY_OOM else MAX_PROBABILITY_OOM
    fit = [speed for speed, chance in zip(speeds, chances, strict=True) if chance <= most]
    return max(fit, default=None), len(chances) - len(fit)


def assert_same(work, job, choices):
    want, misses = brute_force(work, job, choices)
    best = search(work, [job], choices)
    assert best.counts.pruned_by_memory == misses
    if want is None:
        assert not len(best.job)
    else:
        assert float(best.step.tokens_per_s[0]) == pytest.approx(want)


@pytest.mark.parametrize(
    ("model", "cluster", "num_gpus"),
    [
        (LLAMA_8B, CLUSTER, 8),
        (LLAMA_70B, CLUSTER, 32),
        (LLAMA_2_7B, SMALL, 8),
        (TIED_GPT, SMALL, 3),
        (MIXTRAL_8X7B, CLUSTER, 4),
    ],
)
def test_the_winner_is_that_of_brute_force(model, cluster, num_gpus):
    work = workload(model, global_batch_size=48)
    assert_same(work, Job(cluster=cluster, num_gpus=num_gpus), Choices())


@pytest.mark.parametrize(
    ("model", "changes", "fixed"),
    [
        # Less recompute sends more to the host: the least that fits need not be the fastest.
        (LLAMA_8B, {"offloads_activations": True}, {}),
        (LLAMA_2_7B, {"offloads_activations": True, "seq_len": 16384.0}, {"tp": 1}),
        (LLAMA_70B, {"offload_optimizer": CPU}, {"offloads": True}),
        (LLAMA_8B, {"offload_params": CPU}, {"offloads": True, "fetches_params": True}),
        (LLAMA_8B, {}, {"schedule": "interleaved", "micro_batch_size": 1}),
        (LLAMA_8B, {}, {"schedule": "zero_bubble", "recomputes": ("full", "offload")}),
        (LLAMA_8B, {"seq_len": 131072.0}, {"context_method": "ulysses", "tp": 1}),
        (LLAMA_8B, {}, {"shardings": ("fsdp1", "zeropp"), "reshard": False}),
        (MIXTRAL_8X7B, {"capacity_factor": 1.25}, {"etp": 2, "tp": 2}),
    ],
    ids=str,
)
def test_the_winner_of_every_choice_is_that_of_brute_force(model, changes, fixed):
    work = workload(model, **{"global_batch_size": 16, **changes})
    assert_same(work, Job(cluster=CLUSTER, num_gpus=8), Choices(**fixed))


def test_several_jobs_at_once_get_what_each_gets_alone():
    work = workload(LLAMA_8B, global_batch_size=512)
    jobs = [Job(cluster=c, num_gpus=n) for c in (CLUSTER, SMALL) for n in (1, 8, 24, 64)]
    together = search(work, jobs)
    at = {int(j): i for i, j in enumerate(together.job)}
    assert list(together.job) == sorted(together.job)
    for number, job in enumerate(jobs):
        alone = search(work, [job])
        assert (number in at) == bool(len(alone.job))
        assert (number in together.jobs_out_of_memory) == bool(len(alone.jobs_out_of_memory))
        assert (number in together.jobs_without_layout) == bool(len(alone.jobs_without_layout))
        if number in at:
            assert together.step.step_s[at[number]] == alone.step.step_s[0]


@settings(max_examples=25)
@given(
    model=st.sampled_from([LLAMA_8B, LLAMA_70B, MIXTRAL_8X7B, TIED_GPT]),
    num_gpus=st.sampled_from([1, 4, 8, 64]),
    memory=st.floats(8e9, 192e9),
    seq_len=st.sampled_from([2048.0, 32768.0]),
)
def test_nothing_is_over_capacity_and_every_job_is_accounted_for(model, num_gpus, memory, seq_len):
    cluster = replace(CLUSTER, memory_bytes=memory)
    best = search(
        workload(model, seq_len=seq_len, global_batch_size=64),
        [Job(cluster=cluster, num_gpus=num_gpus)],
    )
    outcomes = [len(best.job), len(best.jobs_out_of_memory), len(best.jobs_without_layout)]
    assert sorted(outcomes) == [0, 0, 1]
    if len(best.job):
        need = sum(best.memory[p][0] for p in MEMORY_PARTS)
        assert need < memory
        assert best.probability_oom[0] <= MAX_PROBABILITY_OOM
        assert sum(v[0] for v in best.step.parts.values()) == pytest.approx(best.step.step_s[0])
    elif len(best.jobs_out_of_memory):
        nearest = best.closest
        assert nearest is not None
        assert nearest.need_bytes > nearest.usable_bytes
        assert nearest.usable_bytes < nearest.limit_bytes == memory
        assert nearest.need_bytes == pytest.approx(sum(nearest.memory.values()))


def test_more_memory_is_never_slower():
    work = workload(LLAMA_70B, global_batch_size=64)
    speeds = []
    for memory in (80e9, 96e9, 141e9, 192e9, 1e15):
        best = search(work, [Job(cluster=replace(CLUSTER, memory_bytes=memory), num_gpus=32)])
        speeds.append(float(best.step.tokens_per_s[0]) if len(best.job) else 0.0)
    assert speeds == sorted(speeds)
    assert speeds[0] < speeds[-1]


def test_the_limit_of_a_plan_is_the_probability_that_is_allowed():
    """`usable_bytes` is the need at which the probability is exactly the allowed one."""
    best = search(workload(LLAMA_70B, global_batch_size=8), [Job(cluster=SMALL, num_gpus=1)])
    assert best.closest is not None
    at_limit = probability_above(24e9, p50=best.closest.usable_bytes, sigma=SIGMA)
    assert float(at_limit) == pytest.approx(MAX_PROBABILITY_OOM)


def test_a_precision_that_the_device_lacks_leaves_no_layout():
    without = replace(CLUSTER, fp8_ratio=float("nan"))
    work = workload(LLAMA_8B, matmul_bits=8.0, quantised_bytes=4.0)
    best = search(work, [Job(cluster=without, num_gpus=8), Job(cluster=CLUSTER, num_gpus=8)])
    assert list(best.jobs_without_layout) == [0]
    assert list(best.job) == [1]


def test_no_jobs_and_no_layouts_are_answers_too():
    work = workload(LLAMA_8B, global_batch_size=64)
    assert search(work, []).counts == Counts()
    none = search(work, [Job(cluster=CLUSTER, num_gpus=8)], Choices(tp=7))
    assert none.counts.candidates == none.counts.removed
    assert list(none.jobs_without_layout) == [0]
    assert sum(none.removed.values()) > 0


def test_choices_are_kept():
    work = workload(LLAMA_8B, global_batch_size=64)
    chosen = Choices(shardings=("zero1",), recomputes=("full",), tp=2, pp=2, micro_batch_size=2)
    best = search(work, [Job(cluster=CLUSTER, num_gpus=16)], chosen)
    lay = best.layouts
    assert (lay.tp[0], lay.pp[0], lay.micro_batch_size[0]) == (2, 2, 2)
    assert RECOMPUTE[int(lay.recompute[0])] == "full"


POINTS = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 8).map(float), st.just(float("nan"))), st.integers(0, 8).map(float)
    ),
    max_size=30,
)


@given(points=POINTS)
def test_the_frontier_is_that_of_comparing_every_pair(points):
    cost, time = (np.array([p[i] for p in points], dtype=float) for i in (0, 1))
    on = frontier(cost, time)
    for i, (c, t) in enumerate(points):
        beaten = any((c2 <= c and t2 <= t and (c2 < c or t2 < t)) for c2, t2 in points)
        if np.isnan(c):
            assert not on[i]
        elif on[i]:
            assert not beaten
        else:
            # Off it: beaten, or one of several equal points of which one stands for all.
            twins = [j for j, p in enumerate(points) if p == (c, t)]
            assert beaten or any(on[j] for j in twins)

"""The pruned search against timing every legal layout of every job, and against the scalar
formulas: the same winner, the same figures, and every candidate accounted for."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.layout.layouts import Choices, Layouts
from core.machine.cluster import Cluster
from core.memory.memory import PARTS as MEMORY_PARTS
from core.memory.memory import peak_bytes
from core.memory.offload import LEVELS, least_host_s, work_on
from core.model import adapters
from core.model.presets import preset
from core.search.best import Job
from core.search.bounds import least_step_s, pipeline, straggling, unit
from core.search.search import best_layouts
from core.search.space import candidates
from core.time.step import PARTS as STEP_PARTS
from core.time.step import step
from tests.made_up.jobs import (
    CLUSTER,
    DEEPSEEK_V3,
    LLAMA_8B,
    LLAMA_70B,
    LLAMA_405B,
    MIXTRAL_8X7B,
    SHIPPED,
    jobs,
    workload,
)

GENERIC = SHIPPED["generic"]
SIGMA = 0.2
FREE = Choices(schedule="interleaved", searches_offload=True)
# Three machines that differ in what decides: memory, network, the size of a node.
PCIE = replace(
    CLUSTER, memory_bytes=24e9, peak_flops_per_s=165e12, scale_up_bytes_per_s=31e9,
    scale_up_domain=1, scale_out_bytes_per_s=1.25e9,
)  # fmt: skip
RACK = replace(CLUSTER, memory_bytes=190e9, scale_up_domain=72, gpus_per_node=4)


def lora(model):
    """LoRA of rank 16 on all matrices."""
    trained = float(np.asarray(adapters.trained_fraction(model, rank=16.0, on_mlp=True)))
    return workload(model, adapters=True, trained_fraction=trained, global_batch_size=96)


CASES = {
    "dense 8B": (workload(LLAMA_8B, global_batch_size=512), (1, 8, 24, 64)),
    "dense 70B": (workload(LLAMA_70B, seq_len=8192.0, global_batch_size=1024), (8, 40, 64, 96)),
    "405B": (workload(LLAMA_405B, seq_len=8192.0, global_batch_size=1024), (256, 1536)),
    "8 experts": (workload(MIXTRAL_8X7B, global_batch_size=256), (8, 48)),
    "256 experts": (workload(DEEPSEEK_V3, global_batch_size=1024), (256,)),
    "LoRA": (lora(LLAMA_70B), (1, 2, 8)),
    "LoRA of experts": (lora(MIXTRAL_8X7B), (8,)),
    "128k tokens": (workload(LLAMA_8B, seq_len=131072.0, global_batch_size=32), (8, 64)),
    "state spaces": (
        workload(preset("nemotron-h-8b").transformer, global_batch_size=96), (8, 24),
    ),
    "counts that divide by little": (workload(LLAMA_8B, global_batch_size=420), (5, 7, 12, 131)),
}  # fmt: skip


def both(work, counts, choices, *, machines=(CLUSTER, PCIE, RACK), eff=GENERIC):
    """What the search finds, and what timing everything finds."""
    wanted = [
        Job(cluster=c, num_gpus=n, host_bytes=h)
        for c in machines
        for n in counts
        for h in (200e9, 0.0)
    ]
    return [
        best_layouts(work, wanted, eff, choices, memory_sigma=SIGMA, exhaustive=exhaustive)
        for exhaustive in (False, True)
    ]


def assert_same(pruned, brute):
    assert pruned.job.tolist() == brute.job.tolist()
    for f in fields(Layouts):
        found, wanted = (np.asarray(getattr(b.layouts, f.name)) for b in (pruned, brute))
        assert found.tolist() == wanted.tolist(), f.name
    assert pruned.step.step_s.tolist() == brute.step.step_s.tolist()
    assert pruned.jobs_out_of_memory.tolist() == brute.jobs_out_of_memory.tolist()
    assert pruned.jobs_without_layout.tolist() == brute.jobs_without_layout.tolist()
    for b in (pruned, brute):
        c = b.counts
        parts = (c.removed, c.pruned_by_memory, c.pruned_by_time, c.evaluated, c.cut)
        assert sum(parts) == c.candidates > 0
        assert c.removed == sum(b.removed.values())
    assert brute.counts.pruned_by_time == 0
    same = ("candidates", "removed", "pruned_by_memory", "cut")
    for name in same:
        assert getattr(pruned.counts, name) == getattr(brute.counts, name)


@pytest.mark.parametrize("case", CASES)
def test_the_pruned_search_finds_what_brute_force_finds(case):
    work, counts = CASES[case]
    pruned, brute = both(work, counts, FREE)
    assert_same(pruned, brute)
    assert len(pruned.job)
    assert pruned.counts.evaluated < brute.counts.evaluated


@pytest.mark.parametrize(
    ("changes", "choices"),
    [
        ({"offloads_activations": 1.0}, FREE),
        ({"paged_optimizer": True}, FREE),
        ({}, replace(FREE, schedule="zero_bubble")),
        ({}, replace(FREE, schedule="gpipe", recomputes=("selective", "full", "offload"))),
        ({}, replace(FREE, schedule="naive", tp_across_nodes=True)),
        ({"orthogonalises": True, "ends_state_bytes": 8.0, "optimizer_state_bytes": 4.0}, FREE),
        ({"cuda_graphs": True, "host_slowdown": 4.0}, replace(FREE, shardings=("fsdp1", "zeropp"))),
        ({"matmul_bits": 8.0, "quantised_bytes": 4.0}, FREE),
        ({"seq_len": 65536.0}, replace(FREE, context_method="ulysses")),
    ],
    ids=str,
)
def test_so_it_does_whatever_is_chosen(changes, choices):
    work = workload(LLAMA_8B, **{"global_batch_size": 48, **changes})
    pruned, brute = both(work, (8, 12), choices)
    assert_same(pruned, brute)


def test_a_host_that_is_faster_than_the_device_may_gain_by_offloading():
    """Then less on the host is not the faster layout, and the search does not think so."""
    quick = replace(GENERIC, host_bytes_per_s=1e15, host_link=1e4)
    work = workload(LLAMA_8B, global_batch_size=48)
    roomy = replace(CLUSTER, memory_bytes=500e9)
    pruned, brute = both(work, (8,), FREE, machines=(roomy,), eff=quick)
    assert_same(pruned, brute)
    assert pruned.layouts.offload_optimizer[0] > 0


def test_offload_wins_only_where_the_host_has_the_room():
    """70B on 8 GPUs does not fit them alone: states wait on the host, or nothing fits."""
    work = workload(LLAMA_70B, seq_len=4096.0, global_batch_size=64)

    def on(host_bytes):
        job = Job(cluster=CLUSTER, num_gpus=8, host_bytes=host_bytes)
        return best_layouts(work, [job], GENERIC, FREE, memory_sigma=SIGMA)

    roomy = on(250e9)
    assert roomy.layouts.offload_optimizer[0] > 0
    assert 80e9 < roomy.host_bytes[0] <= 250e9
    assert on(roomy.host_bytes[0]).step.step_s[0] == roomy.step.step_s[0]
    tighter = on(roomy.host_bytes[0] * 0.999)
    assert not len(tighter.job) or tighter.host_bytes[0] < roomy.host_bytes[0]
    for host_bytes in (20e9, 0.0):
        none = on(host_bytes)
        assert not len(none.job)
        assert none.jobs_out_of_memory.tolist() == [0]


@settings(max_examples=30, deadline=None)
@given(
    model=st.sampled_from([LLAMA_8B, LLAMA_70B, MIXTRAL_8X7B]),
    num_gpus=st.integers(1, 200),
    batch=st.integers(1, 600),
    seq_len=st.sampled_from([2048.0, 32768.0]),
    data=st.data(),
)
def test_a_row_of_the_search_is_the_scalar_formula_of_its_layout(
    model, num_gpus, batch, seq_len, data
):
    work = workload(model, seq_len=seq_len, global_batch_size=float(batch))
    job = Job(cluster=CLUSTER, num_gpus=num_gpus)
    best = best_layouts(work, [job], GENERIC, FREE, memory_sigma=SIGMA)
    found, _ = candidates(
        model=model, seq_len=int(seq_len), global_batch_size=batch, num_gpus=num_gpus,
        gpus_per_node=8, scale_up_domain=8, choices=FREE,
    )  # fmt: skip
    rows = len(np.asarray(found.tp))
    if rows:
        n = data.draw(st.integers(0, rows - 1))
        column = step(work_on(work, found), found, CLUSTER, GENERIC)
        bytes_of = peak_bytes(work_on(work, found), found, CLUSTER, GENERIC)
        one = scalar(found, n)
        alone = step(work_on(work, one), one, CLUSTER, GENERIC)
        for part in STEP_PARTS:
            assert float(alone.parts[part]) == pytest.approx(float(column.parts[part][n]), rel=1e-9)
        need = peak_bytes(work_on(work, one), one, CLUSTER, GENERIC)
        for part in MEMORY_PARTS:
            assert float(need[part]) == pytest.approx(float(bytes_of[part][n]), rel=1e-9)
    if len(best.job):
        one = scalar(best.layouts, 0)
        alone = step(work_on(work, one), one, CLUSTER, GENERIC)
        assert float(alone.step_s) == pytest.approx(float(best.step.step_s[0]), rel=1e-9)


def scalar(layouts: Layouts, row: int) -> Layouts:
    """One layout, each field a number."""
    return Layouts(
        **{f.name: float(np.asarray(getattr(layouts, f.name))[row]) for f in fields(Layouts)}
    )


def bound_of(work, lay: Layouts, cluster: Cluster, eff) -> float:
    return float(
        np.asarray(
            least_step_s(
                unit(work, lay, cluster, eff),
                pipeline(work, lay),
                num_layers=float(work.model.num_layers),
                host_s=np.asarray(least_host_s(work, lay, eff)),
                factor=np.asarray(straggling(cluster, lay.num_gpus, eff)),
                step_s=float(eff.step_s),
            )
        ).ravel()[0]
    )


@settings(max_examples=150, deadline=None)
@given(job=jobs(), level=st.sampled_from(LEVELS))
def test_no_step_is_shorter_than_its_bound(job, level):
    work, lay, cluster, eff = job
    lay = replace(
        lay, **{f.name: np.array([getattr(lay, f.name)], dtype=float) for f in fields(Layouts)}
    )
    lay = replace(lay, offload_optimizer=np.array([level[0]]), offload_params=np.array([level[1]]))
    took = float(step(work_on(work, lay), lay, cluster, eff).step_s[0])
    bound = bound_of(work, lay, cluster, eff)
    assert 0 < bound <= took


def test_the_bound_of_an_offloaded_step_counts_the_weights_that_its_stack_has():
    """Where all of training is 16-bit, an update moves fewer bytes, on the host too."""
    work = workload(LLAMA_8B, global_batch_size=64)
    for own in (2.0, 4.0):
        eff = replace(GENERIC, own_weight_bytes=own)
        lay, _ = candidates(
            model=work.model, seq_len=4096, global_batch_size=64, num_gpus=16, gpus_per_node=8,
            scale_up_domain=8, choices=replace(FREE, shardings=("zero3",)),
        )  # fmt: skip
        away = lay.take(np.flatnonzero(np.asarray(lay.offload_optimizer) > 0)[:40])
        took = step(work_on(work, away), away, CLUSTER, eff)
        host_s = np.asarray(least_host_s(work, away, eff))
        assert (host_s > 0.5 * took.parts["optimizer"]).all()
        assert (host_s <= took.parts["optimizer"] * (1 + 1e-9)).all()


def test_the_bound_is_of_use():
    """Of a dense model on its winner the bound leaves out little; else it would prune nothing."""
    work = workload(LLAMA_70B, seq_len=8192.0, global_batch_size=1024)
    best = best_layouts(
        work, [Job(cluster=CLUSTER, num_gpus=64)], GENERIC, FREE, memory_sigma=SIGMA
    )
    assert bound_of(work, best.layouts, CLUSTER, GENERIC) > 0.8 * float(best.step.step_s[0])
    assert best.counts.evaluated < 0.15 * best.counts.pruned_by_time

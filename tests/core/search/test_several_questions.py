"""Questions that are searched together have the answers that each has alone, and GPU counts that
are staged together those that they have one by one."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

from core.layout.layouts import Choices
from core.layout.workload import Workload
from core.memory.memory import live_bytes
from core.memory.offload import host_bytes
from core.search import fastest
from core.search.asked import OF_TIME, Asked, Together, twins
from core.search.best import Job
from core.search.search import best_layouts, best_of_each
from core.search.space import candidates
from tests.made_up.jobs import CLUSTER, LLAMA_8B, MIXTRAL_8X7B, SHIPPED, workload

JOBS = [Job(cluster=CLUSTER, num_gpus=n, host_bytes=2e11) for n in (64, 8, 16, 48)]
SMALL = replace(CLUSTER, memory_bytes=24e9, gpus_per_node=4, scale_up_domain=4)
SIGMA = 0.1


def asked_about(model) -> list[Asked]:
    """Questions that differ in work, software and choices; the last is a twin of the first."""
    work = workload(model, global_batch_size=192)
    every = np.arange(len(JOBS) + 1)

    def one(work: Workload, stack: str, choices: Choices, numbers=every) -> Asked:
        return Asked(
            work=work, eff=SHIPPED[stack], choices=choices, memory_sigma=SIGMA, numbers=numbers
        )

    return [
        one(work, "megatron", Choices(shardings=("ddp", "zero1"))),
        one(replace(work, compiled=True, cuda_graphs=1.0), "torch",
            Choices(shardings=("fsdp2", "hsdp"), recomputes=("full",)), every[1:]),
        one(replace(work, gradient_bytes=2.0), "deepspeed",
            Choices(shardings=("zero2", "zero3"), pp=1, searches_offload=True)),
        one(replace(work, async_tp=not work.async_tp), "megatron",
            Choices(shardings=("ddp", "zero1"))),
    ]  # fmt: skip


def differences(a: object, b: object, path: str = "") -> list[str]:
    """Where two results differ by more than rounding."""
    if is_dataclass(a):
        names = [f.name for f in fields(a)]
        return [d for n in names for d in differences(getattr(a, n), getattr(b, n), f"{path}.{n}")]
    if isinstance(a, dict):
        assert isinstance(b, dict)
        wrong = [] if a.keys() == b.keys() else [f"{path}: keys"]
        return wrong + [d for k in a for d in differences(a[k], b[k], f"{path}.{k}")]
    if isinstance(a, (np.ndarray, float)):
        alike = np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-12, atol=0, equal_nan=True)
        return [] if alike else [path]
    return [] if a == b else [path]


def alone(asked: Asked, jobs: list[Job]):
    """The search of one question about its own jobs, with their numbers among all jobs."""
    found = best_layouts(
        asked.work, [jobs[n] for n in asked.numbers], asked.eff, asked.choices, memory_sigma=SIGMA
    )

    def spread(column):
        whole = np.zeros(len(jobs), dtype=column.dtype)
        whole[asked.numbers] = column
        return whole

    return replace(
        found,
        job=asked.numbers[found.job],
        counts_of={name: spread(column) for name, column in found.counts_of.items()},
        removed_of={name: spread(column) for name, column in found.removed_of.items()},
        jobs_out_of_memory=asked.numbers[found.jobs_out_of_memory],
        jobs_without_layout=asked.numbers[found.jobs_without_layout],
    )


@pytest.mark.parametrize("model", [LLAMA_8B, MIXTRAL_8X7B])
@pytest.mark.parametrize("rows_at_once", [1, 1_000_000])
def test_questions_asked_together_have_their_own_answers(monkeypatch, model, rows_at_once):
    monkeypatch.setattr("core.search.search.ROWS_AT_ONCE", rows_at_once)
    jobs = [*JOBS, Job(cluster=SMALL, num_gpus=16)]
    asked = asked_about(model)
    together = best_of_each(asked, jobs)
    assert [differences(alone(a, jobs), b) for a, b in zip(asked, together, strict=True)] == (
        [[]] * len(asked)
    )
    assert sum(len(b.job) for b in together) > len(jobs)


def test_units_are_held_for_no_more_questions_than_there_is_room_for(monkeypatch):
    """Twins share their candidates, but each has bounds of its own."""
    held = []

    def examples(code, num):
        held.append(num)
        return in_fastest(code, num)

    in_fastest = fastest._examples
    monkeypatch.setattr(fastest, "_examples", examples)
    monkeypatch.setattr("core.search.space.ROWS_AT_ONCE", 1)  # every GPU count on its own
    first, *_, last = asked_about(LLAMA_8B)
    jobs, found = [*JOBS, Job(cluster=SMALL, num_gpus=16)], []
    best_of_each([first], jobs)
    room = max(held)  # of all counts of one question
    monkeypatch.setattr("core.search.search.UNITS_AT_ONCE", room)
    for asked in ([first], [first, last]):
        held.clear()
        best_of_each(asked, jobs)
        found.append((len(held), max(held)))
    (alone, _), (together, most) = found
    assert together > alone
    assert most < 2 * room


def test_counts_staged_together_are_those_of_each(monkeypatch):
    jobs = [*JOBS, Job(cluster=SMALL, num_gpus=16), Job(cluster=SMALL, num_gpus=48)]
    work = workload(MIXTRAL_8X7B, global_batch_size=192)
    choices = Choices(searches_offload=True)

    def found():
        return best_layouts(work, jobs, SHIPPED["generic"], choices, memory_sigma=SIGMA)

    whole = found()
    monkeypatch.setattr("core.search.space.ROWS_AT_ONCE", 1)  # every GPU count on its own
    assert differences(whole, found()) == []


def test_twins_are_questions_that_differ_in_time_alone():
    first, second, third, last = asked_about(LLAMA_8B)
    assert twins([first, second, third, last]) == {0: [3], 1: [], 2: []}
    assert twins([first, replace(last, numbers=last.numbers[1:])]) == {0: [], 1: []}
    assert twins([first, replace(first, work=replace(first.work, compiled=True))]) == {0: [], 1: []}


@pytest.mark.parametrize("name", sorted(OF_TIME))
def test_memory_does_not_depend_on_what_is_of_time(name):
    work = workload(MIXTRAL_8X7B, global_batch_size=64)
    layouts, _ = candidates(
        model=MIXTRAL_8X7B, seq_len=4096, global_batch_size=64, num_gpus=16, gpus_per_node=8,
        scale_up_domain=8, choices=Choices(searches_offload=True),
    )  # fmt: skip
    value = getattr(work, name)
    changed = not value if isinstance(value, bool) else value + 0.5
    other, eff = replace(work, **{name: changed}), SHIPPED["generic"]
    assert differences(live_bytes(work, layouts, eff), live_bytes(other, layouts, eff)) == []
    of_host, of_other = (np.asarray(host_bytes(w, layouts, eff)) for w in (work, other))
    assert of_host.any()
    assert np.array_equal(of_host, of_other)


def test_what_questions_share_stays_a_number_and_nan_is_shared():
    first, second, *_ = asked_about(LLAMA_8B)
    work, eff = Together.of([first, second]).at(np.array([1, 0, 0]))
    assert np.asarray(work.compiled).tolist() == [True, False, False]
    assert np.ndim(work.document_tokens) == 0
    assert np.isnan(work.document_tokens)
    assert eff.matmul[0] == second.eff.matmul
    assert np.ndim(eff.unknown_stack_sigma) == 0

"""The only way into core's search. Here the scenario's workload, what a search may place on the
hosts, and what the user measured become its inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.forecast import anchor
from app.forecast.anchor import Anchor
from app.forecast.machines import Machine, cluster_at
from app.forecast.search_memory import SearchMemory
from app.forecast.training import Question, question_of, searches_offload
from core.memory.offload import USABLE_SHARE
from core.scenario import Scenario
from core.search.best import Best, Job
from core.search.search import best_layouts
from core.units import GIB
from hardware.instances import find_instance

Stop = Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The best layout of each job that has one, with its step corrected by what the user
    measured."""

    question: Question
    best: Best
    shift: NDArray[np.float64]  # shift of each row's log throughput
    variance_left: NDArray[np.float64]  # share of the forecast's variance that remains


def never() -> bool:
    """A stop condition that never ends the search."""
    return False


def searched(
    scenario: Scenario,
    jobs: Sequence[Job],
    *,
    most_rows: float = math.inf,
    stop: Stop = never,
    memory: SearchMemory | None = None,
) -> Found:
    """The best layout of each job, for what this scenario trains.

    Ends early after `most_rows` legal layouts, or when `stop` returns true. Jobs found in `memory`
    are not searched again.
    """
    question = question_of(scenario)

    def search(some: Sequence[Job]) -> Best:
        return best_of(question, some, most_rows=most_rows, stop=stop)

    best = memory.best(question, jobs, search) if memory else search(jobs)
    measured = anchor.anchor_of(scenario, question, best_of)
    names = [jobs[int(n)].accelerator for n in best.job]
    moved, shift, left = anchor.corrected(best, measured, names, question.eff)
    return Found(question=question, best=moved, shift=shift, variance_left=left)


def best_of(
    question: Question,
    jobs: Sequence[Job],
    memory_sigma: float | None = None,
    *,
    most_rows: float = math.inf,
    stop: Stop = never,
) -> Best:
    """The best layout of each job, for a question that need not be a scenario's own: with another
    batch, or with other layouts allowed. The user's measurement is not applied.

    `memory_sigma` replaces the error of the memory forecast.
    """
    return best_layouts(
        question.work,
        jobs,
        question.eff,
        question.choices,
        memory_sigma=question.memory_sigma if memory_sigma is None else memory_sigma,
        most_rows=most_rows,
        stop=stop,
    )


def anchor_of(scenario: Scenario) -> Anchor | None:
    """What the user measured, with our forecast for it; None without a measurement."""
    return anchor.anchor_of(scenario, question_of(scenario), best_of)


def job_of(scenario: Scenario, machine: Machine, num_gpus: int) -> Job:
    """A machine at one GPU count, with what the search may place on its hosts."""
    return Job(
        cluster=cluster_at(machine, num_gpus),
        num_gpus=num_gpus,
        host_bytes=host_memory(machine) if searches_offload(scenario) else math.inf,
        accelerator=machine.accelerator.name,
    )


def host_memory(m: Machine) -> float:
    """Bytes of host memory per GPU that a search may use; 0 if no source states the host's
    memory."""
    known = find_instance(m.offer.provider, m.offer.instance_type)
    if known is None or not known.host_ram_gib:
        return 0.0
    return USABLE_SHARE * known.host_ram_gib * GIB / known.gpu_count

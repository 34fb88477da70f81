"""The only way into core's search. Here the scenario's workload, what a search may place on the
hosts, and what the user measured become its inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.forecast import anchor, calibrations, machines, stack_limits
from app.forecast.anchor import Anchor
from app.forecast.nearby.moved import Moved, Rows, moved_by_runs, scaled
from app.forecast.nearby.of_stacks import best_of_stacks
from app.forecast.search_memory import SearchMemory
from app.forecast.training import question_of, searches_offload, tokens_of
from core.errors import ScenarioError
from core.explain.explain import records_of
from core.layout.workload import Workload
from core.machine.efficiency import Efficiency
from core.scenario import Scenario
from core.search.asked import Asked, Together
from core.search.best import Best, Job
from core.search.job import Machine, PlanJob, Question
from core.search.plan import Layout
from core.search.search import best_layouts, best_of_each
from hardware.outside import interrupt

Stop = Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The best layout of each job that has one, with its step corrected by what the user
    measured. `best.asked` has the number of the variant and question of each row."""

    variants: tuple[Scenario, ...]  # the scenario with its automatic choices fixed
    questions: tuple[Question, ...]  # of each variant
    best: Best
    shift: NDArray[np.float64]  # shift of each row's log throughput
    variance_left: NDArray[np.float64]  # share of the forecast's variance that remains
    runs: Moved  # what measured runs say about each row
    _layouts: dict[int, Layout] = field(default_factory=dict, repr=False, compare=False)

    def layout_of(self, row: int) -> Layout:
        """The layout of a row as a record."""
        return self.layouts_of([row])[row]

    def layouts_of(self, rows: Iterable[int]) -> Mapping[int, Layout]:
        """The layouts of these rows, and of others that were asked for, each made once."""
        if new := [row for row in dict.fromkeys(rows) if row not in self._layouts]:
            self._layouts.update(zip(new, records_of(self.best.layouts, new), strict=True))
        return self._layouts

    def question_of(self, row: int) -> Question:
        """The question that the layout of a row answers."""
        return self.questions[int(self.best.asked[row])]

    def works_of(self, rows: NDArray[np.intp]) -> tuple[Workload, Efficiency]:
        """What the layouts of these rows train, with what software, as columns where they
        differ."""
        together = Together.of([_asked(q, np.empty(0, dtype=np.intp)) for q in self.questions])
        return together.at(np.asarray(self.best.asked)[rows])

    def variant_of(self, row: int) -> Scenario:
        """The scenario with the automatic choices that a row has made."""
        return self.variants[int(self.best.asked[row])]

    def stack_of(self, row: int) -> str:
        """The stack of a row."""
        return self.variant_of(row).stack


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
    """The best layout of each job, for what this scenario trains; where the scenario leaves the
    stack open, of all stacks that take it.

    Ends early after `most_rows` legal layouts, or when `stop` returns true. Jobs found in `memory`
    are not searched again.
    """
    asked = asked_of(scenario)
    variants, questions = zip(*asked, strict=True)
    works = [(v, q.work) for v, q in asked]
    calibrated = calibrations.chosen(scenario)

    def search(some: Sequence[Job]) -> Best:
        if len(variants) == 1 or not some:
            return best_of(questions[0], some, most_rows=most_rows, stop=stop)

        def of_variants(numbers: Mapping[int, NDArray[np.intp]]) -> Mapping[int, Best]:
            found = best_of_each(
                [_asked(questions[n], mine) for n, mine in numbers.items()], some,
                most_rows=most_rows, stop=stop, check=interrupt.check,
            )  # fmt: skip
            return dict(zip(numbers, found, strict=True))

        def shift_of(rows: Rows) -> NDArray[np.float64]:
            """By published runs: a measurement is of whichever stack is open (anchor.py)."""
            return moved_by_runs(rows, some, works, calibrated).shift

        return best_of_stacks(variants, questions, some, of_variants, shift_of)

    best = memory.best(memory_key(scenario), jobs, search) if memory else search(jobs)
    runs = moved_by_runs(best, jobs, works, calibrated)
    shift, left = anchor.moved(anchor_of(scenario), runs.of)
    return Found(
        variants=variants,
        questions=questions,
        best=scaled(best, runs.shift + shift),
        shift=runs.shift + shift,
        variance_left=left * runs.variance_left,
        runs=runs,
    )


@lru_cache(maxsize=32)  # the page asks several times while it draws one scenario
def asked_of(scenario: Scenario) -> tuple[tuple[Scenario, Question], ...]:
    """What is asked of every machine: each stack that takes the scenario, and its question."""
    return tuple((v, question_of(v)) for v in stack_limits.variants_of(scenario))


def memory_key(scenario: Scenario) -> Hashable:
    """Under what a SearchMemory keeps what `searched` found: what is asked and, where a stack is
    chosen, the calibrations, which take the place of published runs."""
    asked = asked_of(scenario)
    key = tuple((variant.stack, question) for variant, question in asked)
    return key if len(asked) == 1 else (key, tuple(sorted(scenario.calibration)))


def _asked(question: Question, numbers: NDArray[np.intp]) -> Asked:
    """A question about the jobs with these numbers."""
    return Asked(
        work=question.work,
        eff=question.eff,
        choices=question.choices,
        memory_sigma=question.memory_sigma,
        numbers=numbers,
    )


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
        check=interrupt.check,
    )


def anchor_of(scenario: Scenario) -> Anchor | None:
    """What the user measured, with our forecast for it: that of the fastest stack, if the scenario
    leaves the stack open. None without a measurement."""
    if scenario.anchor_tokens_per_s_per_gpu is None:
        return None
    variants = stack_limits.variants_of(scenario)
    found: list[Anchor] = []
    refused: list[ScenarioError] = []
    for n in stack_limits.asked_of(variants, scenario.anchor_gpu or "".join(scenario.gpu[:1])):
        try:
            one = anchor.anchor_of(variants[n], question_of(variants[n]), best_of)
        except ScenarioError as e:
            refused.append(e)
        else:
            found += [one] if one else []
    if not found:
        raise refused[0]
    return max(found, key=lambda a: a.predicted)


def search_job(job: PlanJob) -> Job:
    """What a layout is searched for in a plan's job."""
    return Job(
        cluster=job.cluster,
        num_gpus=job.num_gpus,
        host_bytes=job.host_bytes,
        accelerator=job.machine.accelerator.name,
    )


def job_of(scenario: Scenario, machine: Machine, num_gpus: int) -> Job:
    """A machine at one GPU count, with what the search may place on its hosts."""
    return Job(
        cluster=machines.cluster_at(machine, num_gpus),
        num_gpus=num_gpus,
        host_bytes=host_bytes(scenario, machine),
        accelerator=machine.accelerator.name,
    )


def plan_job(
    scenario: Scenario, question: Question, machine: Machine, num_gpus: int, **terms: Any
) -> PlanJob:
    """A question on a machine at one number of GPUs, with what it rents there. `terms` are further
    fields of the job."""
    return PlanJob(
        scenario=scenario,
        question=question,
        machine=machines.rented(machine, num_gpus),
        cluster=machines.cluster_at(machine, num_gpus),
        num_gpus=num_gpus,
        num_tokens=tokens_of(scenario),
        host_bytes=host_bytes(scenario, machine),
        **terms,
    )


def host_bytes(scenario: Scenario, machine: Machine) -> float:
    """Bytes of host memory per GPU that the search of a scenario may use."""
    return machine.host_bytes if searches_offload(scenario) else math.inf

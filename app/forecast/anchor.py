"""Correct the forecast with what the user measured (core/evidence/own_runs.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.forecast import calibrations, machines
from app.forecast.fixed_layout import fixed_choices
from app.forecast.nearby.moved import moved_by_runs
from app.scenario.layout import parse_layout
from core.errors import ScenarioError
from core.evidence import uncertainty
from core.evidence.measured_runs import SCALES, Traits
from core.evidence.own_runs import OwnRuns, check_measured, said_by_own
from core.layout.layouts import Choices, Layouts
from core.model.transformer import forward_flops_per_token
from core.numeric import as_float
from core.scenario import Scenario
from core.search.best import Best, Job
from core.search.job import Question
from core.time.step import step

ANY_MEMORY_BYTES = 1e18  # the measured run did fit
MEMORY_SIGMA = 0.01  # so that the memory forecast rejects hardly any layout
Search = Callable[[Question, Sequence[Job], float], Best]
# What a layout has to give: the errors of runs differ with it.
SETTLED = ("micro_batch_size", "tp", "pp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """One measurement, and our forecast of the measured run."""

    layouts: Layouts  # one row
    runs: OwnRuns  # one row
    predicted: float  # tokens/s per GPU
    throughput_sigma: float  # of the forecast, before the measurement
    at_half_network: float  # log of the step at half the network over the step


def anchor_of(scenario: Scenario, question: Question, search: Search) -> Anchor | None:
    """The scenario's measurement with its forecast; None if there is none. Raises ScenarioError if
    it is not a possible measurement."""
    measured = scenario.anchor_tokens_per_s_per_gpu
    if measured is None:
        return None
    chip = machines.accelerator_of(_gpu(scenario), scenario)
    count = scenario.anchor_num_gpus
    if count is None:
        raise ScenarioError("anchor_num_gpus is not given: on how many GPUs was it measured?")
    machine = machines.unpriced_machine(chip.name, scenario)
    work = question.work
    flops = np.asarray(forward_flops_per_token(work.model, work.seq_len))
    peaks = (chip.bf16_flops_per_s, chip.fp8_flops_per_s, chip.fp4_flops_per_s)
    check_measured(
        tokens_per_s_per_gpu=measured,
        flops_per_token=float(flops * np.where(work.adapters, 2.0, 3.0)),
        fastest_flops_per_s=max(p for p in peaks if p),
    )
    layout = parse_layout(scenario.anchor_layout)  # what it leaves open is searched
    pinned = replace(question, choices=Choices(**fixed_choices(layout, question.choices)))
    roomy = replace(machine.cluster, memory_bytes=ANY_MEMORY_BYTES)
    for cluster in (machine.cluster, roomy):  # it did fit, whatever the forecast says
        job = Job(cluster=cluster, num_gpus=count)
        found = search(pinned, [job], MEMORY_SIGMA)
        if len(found.job):
            break
    else:
        raise ScenarioError(
            f"anchor_layout={scenario.anchor_layout!r} on {count} GPUs is no legal layout of this "
            "model and batch."
        )
    named = [replace(job, accelerator=chip.name)]
    runs = moved_by_runs(found, named, [(scenario, work)], calibrations.chosen(scenario))
    predicted = float(found.step.tokens_per_s_per_gpu[0] * np.exp(runs.shift[0]))
    rate = np.asarray(cluster.scale_out_bytes_per_s) / 2
    half = replace(cluster, scale_out_bytes_per_s=rate)
    at_half = step(question.work, found.layouts, half, question.eff)
    width = uncertainty.narrowed(question.eff, runs.variance_left[0])
    parts_s = {p: v[0] for p, v in found.step.parts.items()}
    of_its_step = uncertainty.of_step(uncertainty.Circumstances(), parts_s=parts_s)
    blank = np.array([""])
    return Anchor(
        layouts=found.layouts,
        runs=OwnRuns(
            run_id=blank,
            publication=blank,
            traits=runs.of,
            log_left=np.array([np.log(measured / predicted)]),
            open_layout=np.array([any(k not in layout for k in SETTLED)]),
        ),
        predicted=predicted,
        throughput_sigma=as_float(uncertainty.throughput_sigma(width, of_its_step)),
        at_half_network=float(np.log(at_half.step_s[0] / found.step.step_s[0])),
    )


def _gpu(scenario: Scenario) -> str:
    if scenario.anchor_gpu:
        return scenario.anchor_gpu
    if len(scenario.gpu) == 1:
        return scenario.gpu[0]
    raise ScenarioError("anchor_gpu is not given: on which GPU was it measured?")


def moved(found: Anchor | None, of: Traits) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The shift of each row's log throughput, and the share of the forecast's own variance that
    remains after the measurement. A stack and CUDA graphs that the scenario leaves open count as
    those of the measured run."""
    if found is None or not len(of):
        return np.zeros(len(of)), np.ones(len(of))
    ran = found.runs.traits
    numbers = np.where(np.array(list(SCALES)) == "cuda_graphs", ran.numbers, of.numbers)
    alike = replace(of, stack=np.repeat(ran.stack, len(of)), numbers=numbers)
    return said_by_own(alike, found.runs)

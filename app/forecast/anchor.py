"""Correct the forecast with what the user measured (core/evidence/anchor.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.forecast import machines
from app.forecast.fixed_layout import fixed_choices
from app.forecast.nearby.moved import moved_by_runs, scaled
from app.forecast.training import Question
from app.scenario.layout import parse_layout
from core.errors import ScenarioError
from core.evidence import anchor as evidence_anchor
from core.layout.layouts import Choices, Layouts
from core.model.transformer import forward_flops_per_token
from core.scenario import Scenario
from core.search.best import Best, Job

ANY_MEMORY_BYTES = 1e18  # the measured run did fit
MEMORY_SIGMA = 0.01  # so that the memory forecast rejects hardly any layout
Search = Callable[[Question, Sequence[Job], float], Best]
ALIKE = ("tp", "pp", "cp", "ep", "strategy", "micro_batch_size", "recompute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """One measurement, and our forecast of the measured run."""

    accelerator: str
    num_gpus: int
    layouts: Layouts  # one row
    given: frozenset[str]  # columns of `layouts` that the user gave
    predicted: float  # tokens/s per GPU
    measured: float
    throughput_sigma: float  # of the forecast, before the measurement


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
    evidence_anchor.check_measured(
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
    runs = moved_by_runs(found, [replace(job, accelerator=chip.name)], [(scenario, work)])
    return Anchor(
        accelerator=chip.name,
        num_gpus=count,
        layouts=found.layouts,
        given=frozenset("strategy" if k == "sharding" else k for k in layout),
        predicted=float(found.step.tokens_per_s_per_gpu[0] * np.exp(runs.shift[0])),
        measured=measured,
        throughput_sigma=float(
            np.asarray(question.eff.throughput_sigma) * np.sqrt(runs.variance_left[0])
        ),
    )


def _gpu(scenario: Scenario) -> str:
    if scenario.anchor_gpu:
        return scenario.anchor_gpu
    if len(scenario.gpu) == 1:
        return scenario.gpu[0]
    raise ScenarioError("anchor_gpu is not given: on which GPU was it measured?")


def moved(
    found: Anchor | None,
    layouts: Layouts,
    accelerators: Sequence[str],
    throughput_sigma: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The shift of each row's log throughput, and the share of the forecast's own variance that
    remains after the measurement. `throughput_sigma` is the forecast's own, of each row."""
    rows = len(accelerators)
    if found is None:
        return np.zeros(rows), np.ones(rows)
    # No layout given counts as a different one; otherwise every key that was given must match.
    compared = [name for name in ALIKE if name in found.given]
    same_layout = np.full(rows, bool(compared))
    for name in compared:
        same_layout &= np.asarray(getattr(layouts, name)) == getattr(found.layouts, name)[0]
    shift, sigma = evidence_anchor.anchored(
        predicted_anchor=found.predicted,
        measured=found.measured,
        sigma_shared=throughput_sigma,
        sigma_own=0.0,
        same_accelerator=np.array([n == found.accelerator for n in accelerators], dtype=bool),
        same_model=np.ones(rows, dtype=bool),
        same_layout=same_layout,
        same_num_gpus=np.asarray(layouts.num_gpus) == found.num_gpus,
    )
    left = np.square(sigma / throughput_sigma)
    return np.broadcast_to(shift, (rows,)), np.broadcast_to(left, (rows,))


def corrected(
    best: Best,
    found: Anchor | None,
    accelerators: Sequence[str],
    throughput_sigma: NDArray[np.float64],
) -> tuple[Best, NDArray[np.float64], NDArray[np.float64]]:
    """The search result corrected by the measurement, the shift of each row's log throughput, and
    the share of the forecast's own variance that remains."""
    shift, left = moved(found, best.layouts, accelerators, throughput_sigma)
    if found is None:
        return best, shift, left
    return scaled(best, shift), shift, left

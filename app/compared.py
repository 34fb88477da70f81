"""What a scenario compares: machines at GPU counts, and the offers that it leaves out."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from app import machines
from app.machines import CUSTOM, Machine
from core import ranking
from core.accelerator import offers_precision
from core.precision import Precision, precision
from core.scenario import Scenario
from core.search import Job
from core.units import DAY_S

LONGEST_DAYS = 365.0  # runs that would take longer are counted, not shown, unless asked for
TARGET_DAYS = 60.0  # GPU counts are tried up to what ends the run within this


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The machines that a scenario compares, and the offers that it leaves out."""

    machines: tuple[Machine, ...]
    left_out: Counter[str]


def _takes(m: Machine, recipe: Precision) -> bool:
    return offers_precision(m.accelerator, name=recipe.name, matmul_bits=recipe.matmul_bits)


def choice_of(scenario: Scenario) -> Choice:
    found, without = machines.priced_machines(scenario.prices)
    recipe = precision(scenario.precision)
    left_out: Counter[str] = Counter()
    wanted = set(scenario.gpu)
    kept = []
    for m in found:
        if wanted and m.offer.accelerator not in wanted:
            continue
        if scenario.cloud and m.offer.provider not in scenario.cloud:
            continue
        if m.offer.purchase not in scenario.purchase:
            left_out["purchase"] += 1
        elif not _takes(m, recipe):
            left_out["precision"] += 1
        elif m.offer.usd_per_hour is not None:
            kept.append(m)
    priced = {m.offer.accelerator for m in kept}
    if not scenario.cloud:
        for m in machines.unpriced_machines():
            named = m.offer.accelerator in wanted if wanted else True
            if not named or m.offer.accelerator in priced:
                continue
            if _takes(m, recipe):
                kept.append(m)
            else:
                left_out["precision"] += 1
    if CUSTOM in wanted:
        kept.append(machines.custom_machine(scenario))
    if not wanted and not scenario.cloud:
        left_out["no_facts"] = sum(o.purchase in scenario.purchase for o in without)
    known = tuple(machines.as_known(m, scenario) for m in kept)
    return Choice(machines=known, left_out=left_out)


def _counts(scenario: Scenario, m: Machine, run_flops: float) -> tuple[list[int], int]:
    """GPU counts to try on one machine, and how many of them would take too long."""
    if scenario.num_gpus:
        return list(scenario.num_gpus), 0
    deadline = scenario.deadline_days
    return ranking.counts_to_try(
        gpus_per_instance=m.offer.gpu_count,
        flops_of_run=run_flops,
        peak_flops_per_s=float(np.asarray(m.cluster.peak_flops_per_s)),
        longest_s=max(LONGEST_DAYS, 2 * (deadline or 0.0)) * DAY_S,
        target_s=min(deadline or TARGET_DAYS, TARGET_DAYS) * DAY_S,
    )


def jobs_of(
    scenario: Scenario, chosen: tuple[Machine, ...], run_flops: float
) -> tuple[list[Job], list[tuple[Machine, int]], int]:
    """Jobs without repetition, (machine, job number) of every row, and counts left out."""
    number: dict[tuple[object, ...], int] = {}
    jobs: list[Job] = []
    rows: list[tuple[Machine, int]] = []
    too_slow = 0
    for m in chosen:
        counts, slow = _counts(scenario, m, run_flops)
        too_slow += slow
        for count in counts:
            nodes = math.ceil(count / m.offer.gpu_count)
            # Inside one instance the network plays no part: offers share the job.
            cluster = m.cluster if nodes > 1 else replace(m.cluster, scale_out_bytes_per_s=1e9)
            key = (
                m.accelerator.name,
                cluster.gpus_per_node,
                cluster.scale_up_domain,
                cluster.scale_out_bytes_per_s,
                count,
            )
            if key not in number:
                number[key] = len(jobs)
                jobs.append(Job(cluster=cluster, num_gpus=count))
            rows.append((m, number[key]))
    return jobs, rows, too_slow

"""What a scenario compares: machines at GPU counts. Offers that are left out are counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from app.forecast import calibrations, machines, price_book, stack_limits
from app.forecast.excluded import LONGEST_DAYS, Key, reason_at
from app.forecast.machines import CUSTOM
from app.forecast.search import host_bytes, job_of
from core.layout.precision import Precision, precision
from core.machine.accelerator import offers_precision
from core.scenario import Scenario
from core.search import ranking
from core.search.best import Job
from core.search.job import Machine
from core.units import DAY_S
from pricing.book.offers import is_quote

TARGET_DAYS = 60.0  # GPU counts are tried until the run ends within this


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The machines that a scenario compares, and the offers that it leaves out."""

    machines: tuple[Machine, ...]
    left_out: Counter[Key]


def _takes(m: Machine, recipe: Precision) -> bool:
    return offers_precision(m.accelerator, name=recipe.name, matmul_bits=recipe.matmul_bits)


def choice_of(scenario: Scenario) -> Choice:
    found, without = price_book.machines_of(scenario)
    recipe = precision(scenario.precision)
    variants = stack_limits.variants_of(scenario)
    left_out: Counter[Key] = Counter()
    wanted = set(scenario.gpu)
    kept = []
    for m in found:
        if wanted and m.offer.accelerator not in wanted:
            continue
        own = m.offer.purchase == "owned" or is_quote(m.offer)  # the user named it: compared always
        if scenario.cloud and m.offer.provider not in scenario.cloud and not own:
            continue
        if m.offer.purchase not in scenario.purchase and not own:
            left_out[reason_at("purchase", m.offer)] += 1
        elif _is_too_small(m, scenario):
            left_out[reason_at("cluster_size", m.offer)] += 1
        elif not _takes(m, recipe):
            left_out[reason_at("precision", m.offer)] += 1
        elif not stack_limits.is_compared(variants, m.accelerator):
            left_out[reason_at("stack", m.offer)] += 1
        elif m.offer.usd_per_hour is not None:
            kept.append(m)
    left_out.update(
        reason_at("quote_over", q.offer) for q in price_book.quotes_of(scenario) if q.is_over
    )
    priced = {m.offer.accelerator for m in kept}
    if not scenario.cloud:
        for m in machines.unpriced_machines():
            named = m.offer.accelerator in wanted if wanted else True
            if not named or m.offer.accelerator in priced:
                continue
            if not _takes(m, recipe):
                left_out[reason_at("precision", m.offer)] += 1
            elif not stack_limits.is_compared(variants, m.accelerator):
                left_out[reason_at("stack", m.offer)] += 1
            else:
                kept.append(_as_asked(m, scenario))
    if CUSTOM in wanted:
        kept.append(machines.custom_machine(scenario))
    if not wanted and not scenario.cloud:
        left_out.update(
            reason_at("no_facts", o) for o in without if o.purchase in scenario.purchase
        )
    measured = calibrations.with_measured_rates(tuple(kept), scenario)
    # A network given by the scenario wins over one measured elsewhere.
    known = tuple(machines.as_known(m, scenario) for m in measured)
    return Choice(machines=price_book.with_terms(scenario, known), left_out=left_out)


def _as_asked(m: Machine, scenario: Scenario) -> Machine:
    """A machine that nobody sells, bought in the first of the ways that are compared."""
    if m.offer.purchase in scenario.purchase:
        return m
    return replace(m, offer=replace(m.offer, purchase=scenario.purchase[0]))


def _is_too_small(m: Machine, scenario: Scenario) -> bool:
    """Whether a cluster has fewer GPUs than the smallest requested count."""
    most, asked = m.largest_num_gpus, scenario.num_gpus
    return most is not None and bool(asked) and min(asked) > most


# Numbers of GPUs to try, and how many others are left out, by reason.
Tried = tuple[list[int], dict[str, int]]


def _counts(scenario: Scenario, m: Machine, run_flops: float) -> Tried:
    """The GPU counts to try on one machine, and why others are left out."""
    left_out: dict[str, int] = {}
    counts, deadline = list(scenario.num_gpus), scenario.deadline_days
    if not counts:
        counts, left_out["too_slow"] = ranking.counts_to_try(
            gpus_per_instance=m.offer.gpu_count,
            flops_of_run=run_flops,
            peak_flops_per_s=float(np.asarray(m.cluster.peak_flops_per_s)),
            longest_s=max(LONGEST_DAYS, 2 * (deadline or 0.0)) * DAY_S,
            target_s=min(deadline or TARGET_DAYS, TARGET_DAYS) * DAY_S,
        )
    if (most := m.largest_num_gpus) is not None:
        whole = [] if scenario.num_gpus or max(counts, default=0) < most else [most]
        counts = sorted({*(n for n in counts if n <= most), *whole})
    joined = [n for n in counts if n <= m.largest_job]
    left_out["not_a_cluster"] = len(counts) - len(joined)
    shaped = [n for n in joined if machines.chips_of_slice(m, n) is not None]
    left_out["slice"] = len(joined) - len(shaped)
    return shaped, {reason: num for reason, num in left_out.items() if num}


def jobs_of(
    scenario: Scenario, chosen: tuple[Machine, ...], run_flops: float
) -> tuple[list[Job], list[tuple[Machine, int]], Counter[Key]]:
    """The distinct jobs, the (machine, job number) of every row, and counts of what was left
    out."""
    number: dict[tuple[object, ...], int] = {}
    jobs: list[Job] = []
    rows: list[tuple[Machine, int]] = []
    left_out: Counter[Key] = Counter()
    tried: dict[tuple[object, ...], Tried] = {}  # thousands of offers differ in their price alone
    for m in chosen:
        name, peak = m.accelerator.name, m.cluster.peak_flops_per_s
        alike = (name, m.offer.gpu_count, peak, m.largest_num_gpus, m.largest_job)
        if alike not in tried:
            tried[alike] = _counts(scenario, m, run_flops)
        counts, without = tried[alike]
        for reason, num in without.items():
            left_out[reason_at(reason, m.offer)] += num
        host, cluster = host_bytes(scenario, m), m.cluster
        shape = (name, host, cluster.gpus_per_node, cluster.scale_out_hop_s)
        of_size: dict[int, Machine] = {}
        for count in counts:
            key = (*shape, *machines.links_at(m, count), count)
            at = number.get(key)
            if at is None:
                at = number[key] = len(jobs)
                jobs.append(job_of(scenario, m, count))
            size = min(count, m.network.gpus_per_machine)
            if size not in of_size:
                of_size[size] = machines.rented(m, count)
            rows.append((of_size[size], at))
    return jobs, rows, left_out

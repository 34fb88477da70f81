"""The one place where facts meet core: a scenario in, an answer out."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from app import (
    anchoring,
    calibration_files,
    calibrations,
    left_out,
    machines,
    nearest_fit,
    price_books,
    search_log,
)
from app.compared import choice_of, jobs_of
from app.left_out import LEAST_MFU, LONGEST_DAYS
from app.machines import CUSTOM, Machine
from app.model_input import model_of
from app.plan_rows import Row, plan_of, points_of
from app.search_memory import SearchMemory
from app.training import (
    choices_of,
    efficiency_of,
    habits_of,
    searches_offload,
    tokens_of,
    workload_of,
)
from core import cost, ranking
from core.errors import RuncastError, ScenarioError, unknown_name, unknown_sentence
from core.plan import Answer
from core.presets import PRESETS, preset
from core.scenario import Scenario
from core.search import Best, Job, best_layouts, frontier
from core.transformer import train_flops_per_token
from core.units import HOUR_S
from hardware import facts, names
from hardware.efficiency import stacks
from pricing import offers as prices
from pricing.price_book_store import has_book

# What one search may take before it ends with what it has; the largest counts come last.
SEARCH_S = 20.0
MOST_LEGAL = 30_000_000  # legal layouts


def current_prices() -> str:
    """Id of the installed price snapshot."""
    return prices.installed_id()


def model_names() -> list[str]:
    """Presets, in the order of their table."""
    return list(PRESETS)


def accelerator_names() -> list[str]:
    """Accelerators that can be estimated, and 'custom'."""
    return [*facts.accelerators(), CUSTOM]


def cloud_names() -> list[str]:
    """Providers that the installed snapshot has offers of."""
    return list(prices.snapshot().providers)


def stack_names() -> list[str]:
    """Software stacks that have a profile."""
    return list(stacks())


def resolve(scenario: Scenario) -> tuple[Scenario, list[str]]:
    """The scenario with canonical names; what does not exist is dropped, with a sentence."""
    notes: list[str] = []
    kept: dict[str, object] = scenario.model_dump()
    for name, one in (("gpu", _gpu), ("cloud", _cloud)):
        found = []
        for given in getattr(scenario, name):
            try:
                found.append(one(given))
            except ScenarioError as e:
                notes.append(f"Left out of {name}: {e}")
        kept[name] = tuple(dict.fromkeys(found))
    for name, check in (("model", _model), ("stack", _stack)):
        try:
            kept[name] = check(scenario)
        except ScenarioError as e:
            default = Scenario.model_fields[name].default
            notes.append(f"{e} {default} is shown instead.")
            kept[name] = default
    if CUSTOM in scenario.gpu:
        try:
            machines.accelerator_of(CUSTOM, scenario)
        except ScenarioError as e:
            notes.append(f"Left out the custom GPU: {e}")
            kept["gpu"] = tuple(g for g in kept["gpu"] if g != CUSTOM)  # type: ignore[attr-defined]
    try:
        _check_anchor(Scenario.model_validate(kept))
    except ScenarioError as e:
        notes.append(f"Left out the measurement: {e}")
        kept["anchor_tokens_per_s_per_gpu"] = None
    for lacking in [c for c in scenario.calibration if not calibration_files.has(c)]:
        notes.append(f"The calibration {lacking} is not on this server: it is left out.")
        kept["calibration"] = tuple(c for c in kept["calibration"] if c != lacking)  # type: ignore[attr-defined]
    try:
        calibrations.chosen(Scenario.model_validate(kept))
    except RuncastError as e:
        notes.append(f"Left out the calibrations: {e}")
        kept["calibration"] = ()
    if scenario.prices and scenario.prices not in prices.snapshot_ids():
        kept["prices"] = ""
    if scenario.price_book and not has_book(scenario.price_book):
        notes.append(price_books.lacking_sentence(scenario.price_book))
        kept["price_book"] = ""
    return Scenario.model_validate(kept), notes


def resolve_strict(scenario: Scenario) -> Scenario:
    """The scenario with canonical names; the first thing that does not exist is an error."""
    resolved = Scenario.model_validate(
        {
            **scenario.model_dump(),
            "gpu": tuple(_gpu(g) for g in scenario.gpu),
            "cloud": tuple(_cloud(c) for c in scenario.cloud),
            "model": _model(scenario),
            "stack": _stack(scenario),
        }
    )
    if CUSTOM in resolved.gpu:
        machines.accelerator_of(CUSTOM, resolved)
    price_books.book_of(resolved)
    calibrations.chosen(resolved)
    _check_anchor(resolved)
    return resolved


def _gpu(given: str) -> str:
    if given.lower() == CUSTOM:
        return CUSTOM
    canonical = names.canonical(given)
    facts.accelerator(canonical)
    return canonical


def _cloud(given: str) -> str:
    known = {c.lower(): c for c in cloud_names()}
    if given.lower() not in known:
        raise unknown_name("cloud", given, known.values())
    return known[given.lower()]


def _model(scenario: Scenario) -> str:
    if scenario.model == CUSTOM:
        model_of(scenario)
        return CUSTOM
    return preset(scenario.model).id


def _stack(scenario: Scenario) -> str:
    if scenario.stack not in stacks():
        raise ScenarioError(unknown_sentence("stack", scenario.stack, stacks()))
    return scenario.stack


def _check_anchor(scenario: Scenario) -> None:
    """ScenarioError if the scenario's measurement cannot be one."""
    if scenario.anchor_tokens_per_s_per_gpu is not None:
        work = workload_of(scenario, model_of(scenario))
        anchoring.anchor_of(scenario, work, efficiency_of(scenario, work), choices_of(scenario))


@search_log.logged
def answer(
    scenario: Scenario,
    top: int = 50,
    *,
    with_frontier: bool = False,
    memory: SearchMemory | None = None,
) -> Answer:
    """Ranked plans of a resolved scenario, and what was left out and why.

    Plans beyond `top` are described only where the scenario selects or pins them, or, on request,
    where they are on the frontier. Given a `memory`, layouts that it knows are not searched again.
    """
    model = model_of(scenario)
    work = workload_of(scenario, model)
    eff = efficiency_of(scenario, work)
    choice = choice_of(scenario)
    choices = replace(choices_of(scenario), searches_offload=searches_offload(scenario))
    flops = float(np.asarray(train_flops_per_token(model.transformer, float(scenario.seq_len))))
    jobs, pairs, slow = jobs_of(scenario, choice.machines, flops * tokens_of(scenario))
    over = time.monotonic() + SEARCH_S

    def search(some: Sequence[Job]) -> Best:
        return best_layouts(
            work,
            some,
            eff,
            choices,
            memory_sigma=float(np.asarray(eff.memory_sigma)),
            most_rows=MOST_LEGAL,
            stop=lambda: time.monotonic() > over,
        )

    best = memory.best((work, eff, choices), jobs, search) if memory else search(jobs)
    of_job = {job: m.accelerator.name for m, job in pairs}
    best, shift, variance_left = anchoring.corrected(
        best,
        anchoring.anchor_of(scenario, work, eff, choices),
        [of_job[int(j)] for j in best.job],
        eff,
    )
    rows, unwanted = _rows(scenario, pairs, best)
    without = choice.left_out + slow + unwanted + left_out.without_layout(pairs, best)
    usd = np.array([r.usd for r in rows])
    hours = np.array([r.hours for r in rows])
    deadline = None if scenario.deadline_days is None else scenario.deadline_days * 24.0
    on_time, in_budget = (
        ranking.within(hours, deadline), ranking.within(usd, scenario.budget_usd)
    )  # fmt: skip
    best_first = ranking.order(
        usd=usd, hours=hours, meets_limits=on_time & in_budget, by=scenario.rank_by
    )
    on_frontier = frontier(usd, hours)
    ranked = [
        replace(
            rows[i], rank=n + 1, meets_deadline=bool(on_time[i]),
            meets_budget=bool(in_budget[i]), frontier=bool(on_frontier[i]),
        )
        for n, i in enumerate(best_first)
    ]  # fmt: skip
    named = {scenario.plan, *scenario.pinned}
    shown = ranked[:top] + [
        r for r in ranked[top:] if r.id in named or (with_frontier and r.frontier)
    ]
    return Answer(
        plans=tuple(
            plan_of(
                r,
                best,
                eff,
                shift=float(shift[r.best_row]),
                variance_left=float(variance_left[r.best_row]),
                habits=lambda layout: habits_of(scenario, layout.sharding),
            )
            for r in shown
        ),
        num_plans=len(ranked),
        points=points_of(ranked, best),
        num_candidates=best.counts.candidates,
        counts=best.counts,
        not_searched=_not_searched(jobs, best),
        excluded=left_out.exclusions(
            without, best, num_without_price=sum(math.isnan(r.usd) for r in ranked)
        ),
        left_out_at=left_out.by_pair(without),
        nothing_fits=None
        if ranked
        else nearest_fit.sentence(
            scenario,
            work,
            jobs,
            best,
            eff,
            choices,
            without_precision=left_out.total(choice.left_out, "precision"),
        ),
    )


def _rows(
    scenario: Scenario, pairs: list[tuple[Machine, int]], best: Best
) -> tuple[list[Row], Counter[left_out.Key]]:
    """One row per machine and count that has a layout; and those that take too long or waste the
    GPUs. Neither is left out where the scenario gives the number of GPUs."""
    found = {int(job): n for n, job in enumerate(best.job)}
    steps = cost.num_steps(
        num_tokens=tokens_of(scenario),
        seq_len=scenario.seq_len,
        global_batch_size=scenario.global_batch_size,
    )
    hours: NDArray[np.float64] = np.asarray(steps) * best.step.step_s / HOUR_S
    longest = max(LONGEST_DAYS, 2 * (scenario.deadline_days or 0.0)) * 24.0
    rows: list[Row] = []
    unwanted: Counter[left_out.Key] = Counter()
    for m, job in pairs:
        if job not in found:
            continue
        n = found[job]
        if not scenario.num_gpus and hours[n] > longest:
            unwanted[left_out.reason_at("too_slow", m.offer)] += 1
            continue
        if not scenario.num_gpus and best.step.mfu[n] < LEAST_MFU:
            unwanted[left_out.reason_at("wasteful", m.offer)] += 1
            continue
        rows.append(Row.of(m, best, n, num_steps=float(np.asarray(steps)), hours=float(hours[n])))
    return rows, unwanted


def _not_searched(jobs: Sequence[Job], best: Best) -> str:
    """What the search left out because it was over its budget."""
    counts = sorted({jobs[n].num_gpus for n in best.jobs_cut})
    found = []
    if counts:
        found.append(
            f"The search ended after {SEARCH_S:.0f} seconds or {MOST_LEGAL:,} legal layouts; not "
            f"looked at: {', '.join(f'{n:,}' for n in counts)} GPUs."
        )
    if best.counts.cut:
        found.append(
            f"{best.counts.cut:,} layouts of GPU counts with very many divisors were not looked "
            "at: powers of two and small model-parallel groups came first."
        )
    return " ".join(found)

"""Answers `runcast explain`: about the best plan, one named layout, or two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.explain import explained
from app.explain.explained import Against, Named, Why
from app.explain.sensitivity import Again, Sensitivity, searched_again, sensitivity_of
from app.forecast.search import best_of, search_job
from app.scenario.layout import layout_text
from core.errors import ScenarioError
from core.explain.bottleneck import Faster, faster
from core.explain.explain import record_of
from core.scenario import Scenario
from core.search.job import PlanJob
from core.search.plan import Answer, Layout, Plan

PLAIN = Layout(
    tp=1, pp=1, virtual_stages=1, cp=1, ep=1, dp_replicate=1, dp_shard=1, sharding="ddp",
    micro_batch_size=1, num_microbatches=1, recompute="none",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The question, and each part of the answer."""

    scenario: Scenario
    nothing_fits: str | None
    plan: Plan | None  # whose machines are used; None: nothing fits
    named: tuple[Named, ...] = ()
    difference: Against | None = None  # of the two layouts, or of the only one and the plan
    why: Why | None = None  # for the plan, if no layout is named
    faster: Faster | None = None  # for the first named layout, if it is legal
    sensitivity: Sensitivity | None = None
    again: tuple[Again, ...] = ()


def explanation(
    scenario: Scenario,
    answer: Answer,
    *,
    rank: int = 1,
    layout: str | None = None,
    against: str | None = None,
) -> Explanation:
    """The explanation of a plan, or of named layouts on its machines."""
    plan = _plan(scenario, answer, rank)
    found = Explanation(scenario=scenario, nothing_fits=None, plan=plan)
    texts = [t for t in (layout, against) if t is not None]
    if plan is None:
        return _without_plan(replace(found, nothing_fits=answer.nothing_fits), texts)
    if texts:
        return _with_named(found, plan.job, texts)
    return replace(
        found,
        why=explained.why(plan, explained.other_of(answer, plan)),
        sensitivity=sensitivity_of(plan),
        again=searched_again(plan),
    )


def _plan(scenario: Scenario, answer: Answer, rank: int) -> Plan | None:
    """The plan with the given rank; without a rank, the plan that the link selects."""
    if not answer.plans:
        return None
    if rank == 1 and scenario.plan:
        return answer.chosen(scenario.plan)
    found = next((p for p in answer.plans if p.rank == rank), None)
    if found is None:
        raise ScenarioError(
            f"--rank {rank} is beyond the ranked plans: there are {answer.num_plans:,}."
        )
    return found


def _without_plan(found: Explanation, texts: Sequence[str]) -> Explanation:
    """The explanation of named layouts, else of the nearest miss, if no plan fits."""
    try:
        job = explained.job_without_plan(found.scenario)
    except ScenarioError:
        if texts:
            raise
        return found
    if not texts and (missed := _nearest_miss(job)):
        texts = [missed]
    return _with_named(found, job, texts) if texts else found


def _nearest_miss(job: PlanJob) -> str | None:
    """The text of the layout that exceeds the memory by the least."""
    closest = best_of(job.question, [search_job(job)]).closest
    return None if closest is None else layout_text(record_of(closest.layout_row, 0))


def _with_named(found: Explanation, job: PlanJob, texts: Sequence[str]) -> Explanation:
    """The explanation of one or two layouts; a single one is compared with the plan's."""
    own = [found.plan.layout] if found.plan else []
    like = own[0] if own else PLAIN
    named = tuple(explained.named(job, text, like=like) for text in texts)
    layouts = [*own, *(n.layout for n in named)]
    difference, last = None, named[-1]
    if len(layouts) > 1 and last.figures and all(n.figures for n in named):
        difference = explained.against_layout(job, layouts[-2], last.layout, last.figures)
    is_legal = named[0].figures is not None
    row = explained.row_of(job, named[0].layout)
    return replace(
        found,
        named=named,
        difference=difference,
        faster=faster(job, row) if is_legal else None,
    )

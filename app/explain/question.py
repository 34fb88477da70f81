"""Answers `runcast explain`: about the best plan, one named layout, or two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.explain import explained
from app.explain.explained import Against, Named, Setting, Why
from app.explain.sensitivity import Again, Sensitivity, searched_again, sensitivity_of
from app.forecast.search import best_of
from app.scenario.layout import layout_text
from core.errors import ScenarioError
from core.explain.bottleneck import Faster, faster
from core.explain.explain import record_of
from core.scenario import Scenario
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
    texts = [t for t in (layout, against) if t is not None]
    if plan is None:
        return _without_plan(scenario, answer, texts)
    setting = explained.setting_of(scenario, plan)
    if not texts:
        return Explanation(
            scenario=scenario,
            nothing_fits=None,
            plan=plan,
            why=explained.why(scenario, plan, explained.other_of(answer, plan)),
            sensitivity=sensitivity_of(scenario, plan),
            again=searched_again(scenario, plan),
        )
    found = tuple(explained.named(setting, text, like=plan.layout) for text in texts)
    return Explanation(
        scenario=scenario,
        nothing_fits=None,
        plan=plan,
        named=found,
        difference=_difference(setting, [plan.layout] * (len(found) == 1), found),
        faster=_faster(setting, found[0]),
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


def _without_plan(scenario: Scenario, answer: Answer, texts: Sequence[str]) -> Explanation:
    """The explanation of named layouts, else of the nearest miss, if no plan fits."""
    try:
        setting = explained.setting_without_plan(scenario)
    except ScenarioError:
        if texts:
            raise
        return Explanation(scenario=scenario, nothing_fits=answer.nothing_fits, plan=None)
    if not texts and (missed := _nearest_miss(setting)):
        texts = [missed]
    found = tuple(explained.named(setting, text, like=PLAIN) for text in texts)
    return Explanation(
        scenario=scenario,
        nothing_fits=answer.nothing_fits,
        plan=None,
        named=found,
        difference=_difference(setting, [], found),
        faster=_faster(setting, found[0]) if found else None,
    )


def _nearest_miss(setting: Setting) -> str | None:
    """The text of the layout that exceeds the memory by the least."""
    closest = best_of(setting.question, [setting.job()]).closest
    return None if closest is None else layout_text(record_of(closest.layout_row, 0))


def _difference(
    setting: Setting, first: Sequence[Layout], found: Sequence[Named]
) -> Against | None:
    """The last layout compared with the one before it; None if either is illegal."""
    if not found or any(n.figures is None for n in found) or len(first) + len(found) < 2:
        return None
    layouts = [*first, *(n.layout for n in found)]
    last = found[-1]
    if last.figures is None:
        return None
    return explained.against_layout(setting, layouts[-2], last.layout, last.figures)


def _faster(setting: Setting, named: Named) -> Faster | None:
    if named.figures is None:
        return None
    return faster(setting.case, explained.row_of(setting, named.layout))

"""The other plans in a report: cost against time, the first ten, and the pinned ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from app.document import format as fmt
from app.document import vocabulary
from app.document.blocks import Block, Bullets, Figure, Paragraph, Row, Section
from app.document.on_use import pd
from app.document.pictures import THEME
from app.document.table import Table, plain
from app.explain import explained
from app.explain import words as explain_words
from app.plan import chart_tables
from app.plan import charts as plan_charts
from app.plan import document as plan_document
from app.plan import words as plan_words
from app.report.answer import WIDTH_PX
from core.cost.uncertain import Uncertain
from core.scenario import Scenario
from core.search.plan import Answer, Plan
from core.units import DAY_S, HOUR_S

FIRST = 10  # plans that a report lists
MOST_FRONTIER = 15  # rows of frontier plans, the cheapest for their time
DOTS = 250  # dominated plans in the chart: more are not visible on paper
DAY_H = DAY_S / HOUR_S


def alternatives_section(scenario: Scenario, answer: Answer, plan: Plan) -> Section:
    """Cost against time, and the plans ranked first."""
    shown = answer.plans[:FIRST]
    return Section(
        "Other plans",
        (
            Paragraph(plan_words.coverage_line(answer)),
            *_pareto(scenario, answer, plan),
            plain(
                caption=f"The first {fmt.count(len(shown))} of {fmt.count(answer.num_plans)} plans",
                head=("#", "Expected cost", "Expected time", "Machines", "Layout", "MFU"),
                rows=_ranked(shown),
                numeric=(1, 2, 5),
                widths=(1, 4, 4, 9, 8, 3),
            ),
        ),
    )


def _ranked(plans: Sequence[Plan]) -> list[Row]:
    return [
        (
            fmt.count(p.rank),
            fmt.usd_short(p.paid_usd),
            fmt.days(p.expected_hours) if np.isfinite(p.expected_hours) else "never ends",
            vocabulary.machine(p)
            + (f"; not recommended: {vocabulary.not_recommended(p.against)}" if p.against else ""),
            fmt.layout_short(p.layout),
            fmt.percent(p.mfu),
        )
        for p in plans
    ]


def _pareto(scenario: Scenario, answer: Answer, plan: Plan) -> tuple[Block, ...]:
    points, free = plan_document.points(answer), plan_document.free_sentence(answer)
    note = (Paragraph(free),) if free else ()
    if points.empty:
        return note
    budget, deadline = scenario.budget_usd, scenario.deadline_days
    drawn = _thinned(points, plan)
    spec = plan_charts.pareto(
        drawn,
        budget_usd=budget,
        deadline_days=deadline,
        budget_text=f"Budget {fmt.usd_short(budget)}",
        deadline_text=f"Deadline {fmt.days((deadline or 0) * 24)}",
        theme=THEME,
    )
    best = points[points["frontier"].astype(bool)].sort_values("days")
    figure = Figure(
        name="pareto",
        alt=f"Cost against wall clock of {fmt.count(answer.num_plans)} plans, both on logarithmic "
        f"axes. {fmt.count(len(best))} of them are the cheapest for their time.",
        caption="Cost against time. Grey plans are beaten in both by one with a symbol; the ring "
        "is the plan of this report.",
        spec={
            **chart_tables.here(spec, chart_tables.places(drawn).get(plan.id)),
            "width": WIDTH_PX,
        },
        numbers=_frontier_table(best),
    )
    return (figure, *note)


def _thinned(points: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    """All of the frontier, the quotes and the plan itself, with an even sample of the rest."""
    kept = points["frontier"] | points["is_quote"] | (points["id"] == plan.id)
    others = np.flatnonzero(~kept)
    if len(others) > DOTS:
        others = others[np.linspace(0, len(others) - 1, DOTS).astype(int)]
    return points.iloc[np.concatenate([np.flatnonzero(kept), others])]


def _frontier_table(best: pd.DataFrame) -> Table[Row]:
    shown = np.linspace(0, len(best) - 1, min(len(best), MOST_FRONTIER)).astype(int)
    rows = [
        (
            fmt.days(p["days"] * DAY_H),
            fmt.usd_short(p["usd"]),
            f"{fmt.count(p['num_gpus'])} x {p['accelerator']}",
            f"{p['provider']}, {p['purchase']}",
        )
        for p in best.iloc[shown].to_dict("records")
    ]
    return plain(
        caption=f"Cheapest for their time: {fmt.count(len(rows))} of {fmt.count(len(best))}",
        head=("Time", "Cost", "GPUs", "Cloud and purchase"),
        rows=rows,
        numeric=(0, 1),
    )


def pinned_section(scenario: Scenario, answer: Answer) -> Section:
    """The pinned plans side by side, each compared with the first."""
    found = [p for name in scenario.pinned for p in answer.plans if p.id == name]
    if len(found) < 2:
        return Section("Pinned plans", ())
    columns = [_column(scenario, p) for p in found]
    others = [explained.against_plan(found[0], p) for p in found[1:]]
    return Section(
        "Pinned plans",
        (
            plain(
                caption="The pinned plans side by side",
                head=("", *(f"Plan {fmt.count(p.rank)}" for p in found)),
                rows=[(label, *(c[label] for c in columns)) for label in columns[0]],
                widths=(2, *(3 for _ in found)),
            ),
            Bullets(tuple(against_sentence(a, a.label) for a in others)),
        ),
    )


def against_sentence(found: explained.Against, label: str) -> str:
    """How another plan differs in its step and over the whole run."""
    step = explain_words.difference_sentence(found.step, label)
    return f"{step} {explain_words.run_sentence(found)}"


def _column(scenario: Scenario, plan: Plan) -> dict[str, str]:
    peak = plan_document.peak_bytes(plan)
    return {
        "Machines": vocabulary.machine(plan),
        "Expected cost (P10 to P90)": _with_range(plan.paid, fmt.usd_short),
        "Expected time (P10 to P90)": _with_range(plan.cost.hours, fmt.days),
        "Without failures": plan_words.unfailing_sentence(plan),
        "Layout": fmt.layout(plan.layout),
        "Throughput": fmt.tokens_per_s(plan.tokens_per_s.p50),
        "MFU": fmt.percent(plan.mfu),
        "Peak memory": f"{fmt.gib(peak)} of {fmt.gib(plan.memory_capacity_bytes)}",
        "Chance of out of memory": fmt.chance(plan.probability_oom),
        "Price seen": plan.offer.observed_at,
    }


def _with_range(values: Uncertain | None, write: Callable[[float], str]) -> str:
    if values is None:
        return fmt.MISSING
    return f"{write(values.mean)} ({write(values.p10)} to {write(values.p90)})"

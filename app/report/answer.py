"""The first sections of a report: the answer with its interval, the plan in facts and charts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from math import isinf

from app.document import format as fmt
from app.document import vocabulary
from app.document.blocks import Block, Bullets, Figure, Paragraph, Row, Section
from app.document.pictures import THEME
from app.document.table import Table, plain
from app.plan import document as plan_document
from app.plan import part_charts
from app.plan import words as plan_words
from app.plan.decided import recommended_sentence
from core.cost.uncertain import Uncertain
from core.scenario import Scenario
from core.search.plan import Answer, Plan

WIDTH_PX = 660  # of a plot, so that its letters match the text on paper
UNDATED = dt.date.min  # date for which badges do not give the age of a price
P10_P90 = (
    "P10 to P90: as far as the forecast knows, one run in ten is below P10 and one in ten above "
    "P90. This covers the error of the forecast, failures, preemption, and a price that may have "
    "moved since it was seen."
)


def answer_section(scenario: Scenario, answer: Answer, plan: Plan) -> Section:
    """The sentence, the numbers for a decision, and their uncertainty."""
    said = plan_words.answer_sentence(scenario, answer, plan=plan)
    blocks: list[Block] = [Paragraph(said, strong=True)]
    if plan.rank != 1:
        blocks.append(
            Paragraph(
                f"This is plan {plan.rank}, which the link selects. Recommended is plan 1: "
                f"{_claim(answer.plans[0])}."
            )
        )
    if why := recommended_sentence(scenario, answer):
        blocks.append(Paragraph(f"Why plan 1 is recommended: {why}"))
    blocks += [decision_table(plan), Paragraph(P10_P90)]
    if doubts := _doubts(plan):
        blocks += [Paragraph("To keep in mind about this plan:"), Bullets(doubts)]
    return Section("Answer", tuple(blocks))


def _claim(plan: Plan) -> str:
    usd = plan.paid_usd
    cost = "no price known" if usd is None else fmt.usd_short(usd)
    return f"{cost}, {fmt.days(plan.expected_hours)} on {vocabulary.machine(plan)}"


def _doubts(plan: Plan) -> tuple[str, ...]:
    """The badges of a plan, without the age of its price, which the dated line gives."""
    found = plan_words.badges(plan, UNDATED)
    return tuple(f"{b[0].upper()}{b[1:]}." for b in found if not b.startswith("price "))


def decision_table(plan: Plan) -> Table[Row]:
    """The numbers for a decision: dollars, days, speed and memory, each with its uncertainty."""
    rows = [
        *([("Sum committed", *_four(plan.paid, fmt.usd_short))] if plan.cost.commits else []),
        ("Cost of the run", *_four(plan.cost.total if plan.cost.has_price else None,
                                   fmt.usd_short)),
        ("Time of the run", *_four(plan.cost.hours, fmt.days)),
        ("Cost without failures", fmt.MISSING, *_three(plan.usd, fmt.usd_short)),
        ("Time without failures", fmt.MISSING, *_three(plan.hours, fmt.days)),
        ("Throughput", fmt.MISSING, *_three(plan.tokens_per_s, fmt.tokens_per_s)),
        ("Peak memory of the fullest GPU", fmt.MISSING, fmt.MISSING,
         fmt.gib(plan_document.peak_bytes(plan)), fmt.MISSING),
    ]  # fmt: skip
    return plain(
        caption=f"Numbers of plan {plan.rank}. Of throughput P10 is the slow end.",
        head=("Number", "Expected", "P10", "P50", "P90"),
        rows=rows,
        numeric=(1, 2, 3, 4),
    )


def _three(values: Uncertain | None, write: Callable[[float], str]) -> tuple[str, str, str]:
    if values is None:
        return (fmt.MISSING, "no price", fmt.MISSING)
    return (write(values.p10), write(values.p50), write(values.p90))


def _four(values: Uncertain | None, write: Callable[[float], str]) -> tuple[str, ...]:
    """The mean and the quantiles."""
    if values is None:
        return (fmt.MISSING, fmt.MISSING, "no price", fmt.MISSING)
    if isinf(values.mean):
        return (fmt.MISSING, fmt.MISSING, "never ends", fmt.MISSING)
    return (write(values.mean), write(values.p10), write(values.p50), write(values.p90))


def plan_section(scenario: Scenario, plan: Plan) -> Section:
    """The rented machines, how the job is split over them, and where memory and time go."""
    offer = plan.offer
    facts = {
        **dict(plan_document.facts(scenario, plan, UNDATED)),
        "Price seen": f"{offer.observed_at}, quality {offer.quality}",
        "Chance of out of memory": fmt.chance(plan.probability_oom),
        "Calibration": plan.calibration or "none: published and fitted figures",
        "Name in the link": plan.id,
    }
    return Section(
        f"The plan: {fmt.count(plan.num_gpus)} x {offer.accelerator}",
        (
            plain(
                caption="What is rented, and how the job is cut over it",
                head=("Fact", "Value"),
                rows=facts.items(),
                widths=(1, 4),
            ),
            memory_figure(plan),
            step_figure(plan),
        ),
    )


def memory_figure(plan: Plan) -> Figure:
    """One GPU's memory by part against its capacity."""
    sentence = plan_document.headroom_sentence(plan)
    spec = part_charts.memory_bar(
        plan_document.memory(plan),
        capacity_gib=plan_document.capacity_gib(plan),
        capacity_text=f"Usable {fmt.gib(plan.memory_capacity_bytes)}",
        theme=THEME,
    )
    rows = _shares(plan.memory_bytes, vocabulary.memory_part, fmt.gib, total="Peak")
    rows.append(("Usable", fmt.gib(plan.memory_capacity_bytes), ""))
    return Figure(
        name="memory",
        alt=f"Bar of the memory of one GPU by part, against its capacity. {sentence}",
        caption=f"Memory per GPU. {sentence}",
        spec={**spec, "width": WIDTH_PX},
        numbers=plain(
            caption="Memory of the fullest GPU by part",
            head=("Part", "Memory", "Share of the peak"),
            rows=rows,
            numeric=(1, 2),
        ),
    )


def _shares(
    parts: Mapping[str, float],
    name: Callable[[str], str],
    write: Callable[[float], str],
    *,
    total: str,
) -> list[Row]:
    """Each part that is not 0 with its share of the total, then the total under its name."""
    whole = float(sum(parts.values()))
    named = [(name(part), size) for part, size in parts.items() if size > 0]
    return [(n, write(x), fmt.percent(x / whole)) for n, x in (*named, (total, whole))]


def step_figure(plan: Plan) -> Figure:
    """Where one optimizer step goes."""
    sentence = plan_document.step_sentence(plan)
    return Figure(
        name="step",
        alt=f"Waterfall of the seconds of one optimizer step by part. {sentence}",
        caption=f"Time of one step. {sentence}",
        spec={
            **part_charts.step_waterfall(plan_document.step(plan), theme=THEME),
            "width": WIDTH_PX,
        },
        numbers=plain(
            caption="Time of one optimizer step by part",
            head=("Part", "Time", "Share of the step"),
            rows=_shares(plan.step_s, vocabulary.step_part, fmt.seconds, total="Whole step"),
            numeric=(1, 2),
        ),
    )

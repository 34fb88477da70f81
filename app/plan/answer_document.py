"""The answer as blocks: the sentence, the ranked plans, the exclusions, the assumptions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from app.document import format as fmt
from app.document import vocabulary
from app.document.blocks import Block, Bullets, Copied, Paragraph, Section
from app.document.table import Column, Table, column, text_column
from app.plan import words
from app.plan.decided import recommended_sentence
from app.plan.document import AGAINST, utilisation
from app.scenario.link_query import link_query
from core.scenario import Scenario
from core.search.plan import Answer, Plan
from pricing.offers import snapshot

PAGE = "http://localhost:8501/"  # where `make run` serves the page
# In a narrow window the seller's name is cut first, then layouts wrap.
COLUMNS: tuple[Column[Plan], ...] = (
    column("#", lambda p: f"{'*' if p.frontier else ''}{p.rank}"),
    text_column("GPUs", lambda p: f"{fmt.count(p.num_gpus)} x {p.offer.accelerator}"),
    text_column("Seller", lambda p: vocabulary.place(p.offer), least=6),
    text_column("Purchase", lambda p: vocabulary.purchase_short(p.offer.purchase)),
    text_column("Layout", lambda p: fmt.layout_short(p.layout), wraps=True),
    column("Time", lambda p: fmt.days(p.expected_hours)),
    column("Cost", lambda p: fmt.usd(p.paid_usd, digits=3)),
    column("MFU", lambda p: fmt.percent(p.mfu)),
    text_column(AGAINST, lambda p: ", ".join(p.against).replace("_", " ")),  # short: narrow window
)


def ranked(plans: tuple[Plan, ...]) -> Table[Plan]:
    """One line per plan; the purchase kind only if there are several, and what speaks against a
    plan only if something does."""
    table = Table(caption="Plans", columns=COLUMNS, rows=plans)
    if not any(p.against for p in plans):
        table = table.without(AGAINST)
    return table if len({p.offer.purchase for p in plans}) > 1 else table.without("Purchase")


def blocks(scenario: Scenario, answer: Answer, *, today: dt.date) -> Iterator[Block | Section]:
    """The sentence, the ranked table, the exclusions, the assumptions, the link."""
    yield Paragraph(words.answer_sentence(scenario, answer, today))
    if why := recommended_sentence(scenario, answer):
        yield Paragraph(f"Recommended: {why}")
    if answer.plans:
        yield ranked(answer.plans)
        if any(p.frontier for p in answer.plans):
            yield Paragraph(
                "Time and cost are averages, failures included. * no other priced plan is both "
                "cheaper and faster"
            )
    yield Section(words.coverage_line(answer), ())
    if also := words.also_sentences(scenario, answer):
        yield Bullets(also, "Also")
    if answer.plans:
        yield from _first(scenario, answer.plans[0], today)
    link = link_query(scenario, snapshot(scenario.prices).id)
    yield Copied(label="Link", text=f"{PAGE}?{link}")


def _first(scenario: Scenario, plan: Plan, today: dt.date) -> Iterator[Block | Section]:
    """Details of the recommended plan."""
    figures = (
        f"{fmt.seconds(sum(plan.step_s.values()))} a step, "
        f"{fmt.tokens_per_s(plan.tokens_per_s.p50)}, "
        f"{utilisation(plan)}, {fmt.hours(plan.gpu_hours)} of GPU time, "
        f"peak memory {fmt.gib(sum(plan.memory_bytes.values()))} of "
        f"{fmt.gib(plan.memory_capacity_bytes)} a GPU"
    )
    unfailing = words.unfailing_sentence(plan)
    found = (
        figures,
        f"Without failures: {unfailing}",
        f"Chosen by forecast {chosen}" if (chosen := words.chosen_sentence(plan)) else "",
        " ".join(filter(None, (words.network_sentence(plan), words.half_network_sentence(plan)))),
        words.batch_advice(scenario).sentence,
        "; ".join(words.badges(plan, today)),
        words.reservation_sentence(plan),
    )
    yield Section(
        f"Plan 1: {fmt.layout(plan.layout)}",
        tuple(Paragraph(text, level=1) for text in found if text),
    )
    if plan.assumptions:
        yield Bullets(plan.assumptions, "Assumptions")

"""The cost section of a report: every line of the bill, and other ways to buy the machines."""

from __future__ import annotations

from app.bill import document as bill_document
from app.bill.bill import Bill, bill_of
from app.buy.prices import Priced, priced
from app.document import format as fmt
from app.document import vocabulary
from app.document.blocks import Block, Paragraph, Section
from app.document.table import plain
from app.risk import words as risk_words
from app.risk.risk import Risk, risk_of
from core.errors import RuncastError
from core.scenario import Scenario
from core.search.plan import Plan

OTHERWISE = (
    "Each kind is at its cheapest price of the same machine, else of the same GPU at another "
    "seller. These are dollars of steady training: neither failures nor the interruptions of spot "
    "are in them. The command runcast buy plays those."
)


def bill_or_risk(scenario: Scenario, plan: Plan) -> tuple[Bill | None, Risk]:
    """The bill and the risk from failures; no bill if failures keep the run from ever ending."""
    try:
        found = bill_of(scenario, plan)
    except RuncastError:
        return None, risk_of(scenario, plan)
    return found, found.risk


def cost_section(scenario: Scenario, found: Bill | None, risk: Risk) -> Section:
    """The bill line by line with failures, then the other ways to buy."""
    told = tuple(Paragraph(s) for s in risk_words.risk_sentences(scenario, risk))
    beside = _otherwise(scenario, risk.plan)
    if found is None:
        return Section("Cost", (*told, *beside))
    blocks: list[Block] = [
        *told,
        bill_document.lines(found).only(*bill_document.READ),
        bill_document.how(found),
    ]
    return Section("Cost", (*blocks, *beside))


def _otherwise(scenario: Scenario, plan: Plan) -> tuple[Block, ...]:
    """The run's cost at the price of every purchase kind on offer."""
    found = [p for p in priced(scenario, plan) if p.plan is not None]
    if len(found) < 2:
        return ()
    return (
        Paragraph(OTHERWISE),
        plain(
            caption=f"The same {fmt.count(plan.num_gpus)} x {plan.offer.accelerator}, bought in "
            "another way",
            head=("Bought", "From", "Per GPU", "Cost", "Price seen"),
            rows=tuple(_row(p) for p in found),
            numeric=frozenset({2, 3}),
        ),
    )


def _row(one: Priced) -> tuple[str, ...]:
    plan = one.plan
    if plan is None:
        return (vocabulary.purchase(one.kind), one.why_not, "", "", "")
    usd = None if plan.usd is None else plan.usd.p50
    return (
        vocabulary.purchase(one.kind),
        vocabulary.place(plan.offer),
        fmt.usd_per_hour(plan.usd_per_gpu_hour),
        fmt.usd_short(usd),
        plan.offer.observed_at,
    )

"""The cost section of a report: every line of the bill, and other ways to buy the machines."""

from __future__ import annotations

from app.bill import document as bill_document
from app.bill.bill import Bill, bill_of
from app.buy.prices import priced
from app.document import format as fmt
from app.document import vocabulary
from app.document.blocks import Block, Paragraph, Row, Section
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
    blocks: list[Block] = [Paragraph(s) for s in risk_words.risk_sentences(scenario, risk)]
    if found is not None:
        blocks.append(bill_document.lines(found).only(*bill_document.READ))
        blocks.append(bill_document.how(found))
    return Section("Cost", (*blocks, *_otherwise(scenario, risk.plan)))


def _otherwise(scenario: Scenario, plan: Plan) -> tuple[Block, ...]:
    """The run's cost at the price of every purchase kind on offer."""
    rows = [_row(p.plan) for p in priced(scenario, plan) if p.plan is not None]
    if len(rows) < 2:
        return ()
    return (
        Paragraph(OTHERWISE),
        plain(
            caption=f"The same {fmt.count(plan.num_gpus)} x {plan.offer.accelerator}, bought in "
            "another way",
            head=("Bought", "From", "Per GPU", "Cost", "Price seen"),
            rows=rows,
            numeric=(2, 3),
        ),
    )


def _row(plan: Plan) -> Row:
    return (
        vocabulary.purchase(plan.offer.purchase),
        vocabulary.place(plan.offer),
        fmt.usd_per_hour(plan.usd_per_gpu_hour),
        fmt.usd_short(plan.paid_usd),
        plan.offer.observed_at,
    )

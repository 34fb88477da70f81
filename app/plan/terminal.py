"""The answer on a terminal: sentences and the ranked table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from app.document import format as fmt
from app.document import vocabulary
from app.document.terminal import console, cut, print_wrapped
from app.forecast import alternatives as forecast_alternatives
from app.forecast.with_failures import of_plans
from app.plan import words
from app.scenario.link_query import link_query
from core.scenario import Scenario
from core.search.plan import Answer, Plan
from pricing.offers import snapshot

PAGE = "http://localhost:8501/"  # where `make run` serves the page


LEAST_SELLER = 6  # characters that the name of a seller keeps in a narrow window


RIGHT_OF_SELLER = ("Layout", "Time", "Cost", "MFU")


def print_answer(scenario: Scenario, answer: Answer, *, today: dt.date) -> None:
    """The sentence, the ranked table, what was left out, what is assumed, the link."""
    out = console()
    print_wrapped(out, words.answer_sentence(scenario, answer))
    if answer.plans:
        out.print()
        out.print(_plan_table(answer.plans, out.width))
        if any(p.frontier for p in answer.plans):
            out.print("* no other priced plan is both cheaper and faster")
    out.print()
    print_wrapped(out, words.coverage_line(answer))
    _print_also(out, scenario, answer)
    if answer.plans:
        first = answer.plans[0]
        failing = words.failing_sentence(of_plans(scenario, (first,))[0])
        batch = words.batch_advice(scenario).sentence
        _print_first(out, first, today, failing=failing, batch=batch)
    # Never wrapped: a link that is broken in two cannot be copied.
    link = link_query(scenario, snapshot(scenario.prices).id)
    out.print(f"\nLink: {PAGE}?{link}", soft_wrap=True)


def _print_also(out: Console, scenario: Scenario, answer: Answer) -> None:
    """What else people ask: the fewest GPUs, the fastest, the cheapest."""
    found = [p.sentence for p in forecast_alternatives.picks_of(scenario, answer)]
    if fewer := forecast_alternatives.smaller_count(scenario, answer):
        found.append(f"On the machine with the fewest, {fmt.count(fewer)} GPUs would fit, too.")
    if found:
        out.print("\nAlso:")
    for sentence in found:
        print_wrapped(out, sentence, indent="   ", first=" - ")


def _print_first(out: Console, plan: Plan, today: dt.date, *, failing: str, batch: str) -> None:
    """What stands behind the recommended plan."""
    used = sum(plan.memory_bytes.values())
    out.print(f"\nPlan 1: {fmt.layout(plan.layout)}")
    figures = (
        f"{fmt.seconds(sum(plan.step_s.values()))} a step, "
        f"{fmt.tokens_per_s(plan.tokens_per_s.p50)}, "
        f"MFU {fmt.percent(plan.mfu)}, {fmt.hours(plan.gpu_hours)} of GPU time, "
        f"peak memory {fmt.gib(used)} of {fmt.gib(plan.memory_capacity_bytes)} a GPU"
    )
    print_wrapped(out, figures, indent="  ")
    print_wrapped(out, f"With failures: {failing}", indent="  ")
    print_wrapped(out, batch, indent="  ")
    if notes := words.badges(plan, today):
        print_wrapped(out, "; ".join(notes), indent="  ")
    if plan.assumptions:
        out.print("Assumptions:")
    for sentence in plan.assumptions:
        print_wrapped(out, sentence, indent="   ", first=" - ")


def _plan_table(plans: Iterable[Plan], width: int) -> Table:
    """One line a plan. Where the window is narrow the seller's name is cut, then layouts wrap."""
    plans = tuple(plans)
    several = len({p.offer.purchase for p in plans}) > 1
    heads = ("#", "GPUs", "Seller", *(("Purchase",) if several else ()), *RIGHT_OF_SELLER)
    rows = [_plan_row(p, several) for p in plans]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    seller = heads.index("Seller")
    room = max(LEAST_SELLER, width - sum(widths) + widths[seller] - len(heads) + 1)
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for head in heads:
        right = head in ("#", "Time", "Cost", "MFU")
        table.add_column(head, justify="right" if right else "left", no_wrap=head != "Layout")
    for row in rows:
        table.add_row(*row[:seller], cut(row[seller], room), *row[seller + 1 :])
    return table


def _plan_row(plan: Plan, several_purchases: bool) -> tuple[str, ...]:
    offer = plan.offer
    return (
        f"{'*' if plan.frontier else ''}{plan.rank}",
        f"{fmt.count(plan.num_gpus)} x {offer.accelerator}",
        vocabulary.place(offer),
        *(
            (vocabulary.purchase(offer.purchase).removeprefix("reserved "),)
            if several_purchases
            else ()
        ),
        fmt.layout_short(plan.layout),
        fmt.days(plan.wall_clock_hours),
        fmt.usd(plan.usd.p50 if plan.usd else None, digits=3),
        fmt.percent(plan.mfu),
    )

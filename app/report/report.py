"""Builds the report of a plan once for three writers (Markdown, HTML, PDF).

The builder makes the page's calls and computes nothing of its own. The same inputs and date give
the same bytes: only the dated line contains ages of prices.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from app.document import format as fmt
from app.document import html, markdown, pdf
from app.document.blocks import Paragraph, Report, Section, line
from app.plan import words as plan_words
from app.report.answer import answer_section, plan_section
from app.report.choice import alternatives_section, pinned_section
from app.report.cost import bill_or_risk, cost_section
from app.report.origin import (
    accuracy_section,
    again_section,
    assumptions_section,
    sources_section,
    why_section,
)
from app.report.programme import programme_sections
from app.scenario.model import model_of
from app.scenario.version import version
from core.errors import ScenarioError
from core.scenario import Scenario
from core.search.plan import Answer, Plan

MAX_NAME = 80  # characters of a report's name
WRITERS: dict[str, Callable[[Report], bytes]] = {
    "md": markdown.written,
    "html": html.written,
    "pdf": pdf.written,
}
MIME = {"md": "text/markdown", "html": "text/html", "pdf": "application/pdf"}


def report_of(
    scenario: Scenario, answer: Answer, *, date: dt.date, address: str = "", name: str = ""
) -> Report:
    """The report of a resolved scenario, about the plan that it selects, else the best one.

    `address` is the page's own (https://host/), for a link that can be clicked; without it the
    link is a query. `name` is any text. ScenarioError if the name is too long.
    """
    if len(name) > MAX_NAME:
        raise ScenarioError(
            f"The name of a report has {len(name)} characters; at most {MAX_NAME} are allowed."
        )
    title = f"Training plan: {model_of(scenario).label}, {plan_words.tokens(scenario)}"
    plan = answer.chosen(scenario.plan)
    return Report(
        title=line(title),
        name=line(name),
        date=date,
        dated=_dated(plan, date),
        sections=tuple(_sections(scenario, answer, plan, address)),
    )


def _sections(scenario: Scenario, answer: Answer, plan: Plan | None, address: str) -> list[Section]:
    if plan is None:
        sentence = Paragraph(plan_words.answer_sentence(scenario, answer), strong=True)
        return [
            Section("Answer", (sentence,)),
            *programme_sections(scenario),
            assumptions_section(answer, None),
            accuracy_section(None),
            again_section(scenario, address),
        ]
    bill, risk = bill_or_risk(scenario, plan)
    found = [
        answer_section(scenario, answer, plan),
        *programme_sections(scenario),
        plan_section(scenario, plan),
        cost_section(scenario, bill, risk),
        alternatives_section(scenario, answer, plan),
        pinned_section(scenario, answer),
        why_section(answer, plan),
        assumptions_section(answer, plan),
        accuracy_section(plan),
        sources_section(scenario, answer, plan),
        again_section(scenario, address),
    ]
    return [s for s in found if s.blocks]


def _dated(plan: Plan | None, date: dt.date) -> str:
    """The only line that another date changes."""
    written = f"Written on {date.isoformat()} by Runcast {version() or 'not installed'}."
    if plan is None or plan.usd is None:
        return written
    seen = plan.offer.observed_at
    return f"{written} The price of the plan is dated {seen}: {fmt.age(seen, date)}."


def file_name(kind: str) -> str:
    """The file name of a downloaded report."""
    return f"runcast_report.{kind}"

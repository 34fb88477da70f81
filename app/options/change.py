"""What a change of a scenario file costs: two forecasts, their difference, and guardrails.

Either file may be missing: a scenario that is new, or that goes.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from dataclasses import dataclass

from app.document import format as fmt
from app.document.as_json import Json
from app.document.blocks import Block, Copied, Paragraph
from app.document.table import plain
from app.forecast.answer import answer
from app.options.side_by_side import SAME_WORD, Row, Subject, differing, rows
from app.options.two_links import changed_fields
from app.plan.answer_document import PAGE
from app.plan.as_json import brief_json
from app.plan.words import answer_sentence
from app.programme import words
from app.programme.as_json import contract_json
from app.programme.contract import Contract
from app.programme.programme import programme_of
from app.scenario.link_query import link_query
from core.errors import ScenarioError
from core.scenario import Scenario
from core.search.plan import Plan
from pricing.offers import snapshot

HEAD = ("Old", "New")
COST, TIME = "Expected cost", "Expected time"
SHOWN = (
    COST, "Cost, P90", TIME, "Time, P90", "Chance on time", "Price, GPU-hour", "GPUs", "Purchase",
    "Cloud", "Region", "Instance", "Layout", "MFU", "Out of memory", "Energy", "CO2e",
    "Deadline and budget",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """One side of the change: its scenario, and the plan that it names or that is recommended."""

    scenario: Scenario
    plan: Plan | None
    sentence: str
    whole: Contract | None = None  # of its stages, if it has any

    @property
    def expected_usd(self) -> float | None:
        """Of the whole where there are stages, else of the plan."""
        if self.whole is not None:
            return None if self.whole.paid is None else self.whole.usd
        return None if self.plan is None else self.plan.paid_usd

    @property
    def expected_hours(self) -> float | None:
        """Of the whole where there are stages, else of the plan."""
        if self.whole is not None:
            return self.whole.cost.hours.mean
        return None if self.plan is None else self.plan.expected_hours

    @property
    def meets_deadline(self) -> bool:
        """Whether it ends in time, as surely as asked."""
        if self.whole is not None:
            return self.whole.chance_on_time >= self.scenario.deadline_confidence
        return self.plan is not None and self.plan.meets_deadline

    @property
    def link(self) -> str:
        """The address of the page with these numbers, on this machine."""
        return f"{PAGE}?{link_query(self.scenario, snapshot(self.scenario.prices or None).id)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Two forecasts, of which one may be missing, and the guardrails that the new one breaks."""

    name: str
    old: Forecast | None
    new: Forecast | None
    broken: tuple[str, ...]


def change_of(
    name: str,
    old: Scenario | None,
    new: Scenario | None,
    *,
    fail_above_usd: float | None = None,
    fail_if_late: bool = False,
    today: dt.date,
) -> Change:
    """Forecast both scenarios. ScenarioError if both are missing."""
    if old is None and new is None:
        raise ScenarioError("OLD and NEW are both missing: one of them is a scenario file.")
    made = None if new is None else _forecast(new, today)
    return Change(
        name=name,
        old=None if old is None else _forecast(old, today),
        new=made,
        broken=() if made is None else tuple(_broken(made, fail_above_usd, fail_if_late)),
    )


def _forecast(scenario: Scenario, today: dt.date) -> Forecast:
    found = answer(scenario, top=1)
    plan, sentence = found.chosen(scenario.plan), answer_sentence(scenario, found, today)
    if not scenario.stages:
        return Forecast(scenario=scenario, plan=plan, sentence=sentence)
    stages = programme_of(scenario)
    if not stages.contracts:
        return Forecast(scenario=scenario, plan=None, sentence=stages.nothing_fits)
    sentence = words.answer_sentence(scenario, stages.best)
    return Forecast(scenario=scenario, plan=plan, sentence=sentence, whole=stages.best)


def _broken(made: Forecast, fail_above_usd: float | None, fail_if_late: bool) -> Iterator[str]:
    usd = made.expected_usd
    if fail_above_usd is not None and (usd is None or usd > fail_above_usd):
        cost = "has no known cost" if usd is None else f"is expected to cost {fmt.usd(usd)}"
        yield f"It {cost}; at most {fmt.usd(fail_above_usd)} is allowed."
    if fail_if_late and made.plan is None:
        yield "No plan fits, so none ends in time."
    elif fail_if_late and not made.meets_deadline:
        days = fmt.days((made.scenario.deadline_days or math.nan) * 24)
        yield f"It misses the deadline of {days}."


def blocks(change: Change, today: dt.date) -> Iterator[Block]:
    """The difference in one sentence, the guardrails, the fields and the figures that changed."""
    old, new = change.old, change.new
    found = _rows(change, today)
    yield Paragraph(f"{change.name}: {_sentence(change, found)}", strong=True)
    for sentence in change.broken:
        yield Paragraph(f"Guardrail: {sentence}", strong=True)
    if old is not None and new is not None:
        if fields := changed_fields(old.scenario, new.scenario):
            yield plain("What was changed", ("Field", *HEAD), fields)
        if found:
            cells = [(r.label, *r.texts, "" if r.deltas[1] == SAME_WORD else r.deltas[1])
                     for r in differing(found)[0] if r.label in SHOWN]  # fmt: skip
            yield plain(_of_run(old, new), ("Quantity", *HEAD, "Change"), cells)
    if new is not None:
        yield Paragraph(new.sentence)
        yield Copied(label="Link", text=new.link)


def _of_run(old: Forecast, new: Forecast) -> str:
    is_part = old.whole is not None or new.whole is not None
    return "What it changes in the scenario's own run" if is_part else "What it changes"


def _rows(change: Change, today: dt.date) -> tuple[Row, ...]:
    subjects = [
        Subject(letter=letter, scenario=side.scenario, plan=side.plan)
        for letter, side in (("A", change.old), ("B", change.new))
        if side is not None and side.plan is not None
    ]
    return rows(subjects, today) if len(subjects) == 2 else ()


def _sentence(change: Change, found: tuple[Row, ...]) -> str:
    if change.new is None:
        return "removed."
    if change.old is None:
        return "new."
    if change.new.plan is None:
        return "nothing fits."
    if change.old.plan is None:
        return "now a plan fits."
    if change.old.whole is not None or change.new.whole is not None:
        sides = (change.old, change.new)
        usd = " to ".join(fmt.usd_short(s.expected_usd) for s in sides)
        days = " to ".join(fmt.days(s.expected_hours or math.inf) for s in sides)
        return f"with all stages {COST.lower()} {usd}, {TIME.lower()} {days}."
    parts = []
    for row in found:
        if row.label in (COST, TIME):
            same = row.deltas[1] in ("", SAME_WORD)
            what = row.texts[1] if same else f"{' to '.join(row.texts)} ({row.deltas[1]})"
            parts.append(f"{row.label.lower()} {what}")
    return f"{', '.join(parts)}."


def change_json(change: Change) -> dict[str, Json]:
    """The change for programs; null where a side is missing or nothing fits."""
    sides = {n: _side(s) for n, s in (("old", change.old), ("new", change.new))}
    old, new = change.old, change.new
    more_usd = more_hours = None
    if old is not None and new is not None:
        if old.expected_hours is not None and new.expected_hours is not None:
            more_hours = new.expected_hours - old.expected_hours
        if old.expected_usd is not None and new.expected_usd is not None:
            more_usd = new.expected_usd - old.expected_usd
    return {
        "schema_version": 1, "name": change.name, **sides,
        "more_usd": more_usd, "more_hours": more_hours, "broken": [*change.broken],
    }  # fmt: skip


def _side(side: Forecast | None) -> dict[str, Json] | None:
    if side is None:
        return None
    plan = None if side.plan is None else brief_json(side.plan)
    whole = {} if side.whole is None else {"programme": contract_json(side.whole)}
    return {"sentence": side.sentence, "link": side.link, "plan": plan, **whole}

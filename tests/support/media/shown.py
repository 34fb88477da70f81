"""One scenario with its answer, and everything that commands and pages make of its first plan."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import orjson

from app.bill.bill import Bill, bill_of
from app.buy.purchases import Purchases, purchases_of
from app.document.blocks import Figure, Report
from app.forecast.answer import answer as forecast_answer
from app.forecast.resolve import resolve_strict
from app.plan.as_json import plan_json
from app.report.report import report_of
from app.risk.risk import Risk, risk_of
from app.scale.points import Scale, scale_of
from core.scenario import Scenario
from core.search.plan import Answer, Plan

Value = float | str | None
Values = dict[str, Value]
TODAY = dt.date(2026, 11, 9)


@dataclass(frozen=True)
class Shown:
    """One scenario with its answer, and everything that is made of its first plan, once."""

    scenario: Scenario
    answer: Answer

    @property
    def plan(self) -> Plan:
        return self.answer.plans[0]

    @cached_property
    def document(self) -> dict[str, Any]:
        return as_json(plan_json(self.scenario, self.answer))

    @cached_property
    def reference(self) -> dict[str, float | None]:
        """The plan's own numbers, by their path in `runcast plan --json`."""
        return dict(numbers(self.document["plans"][0]))

    @cached_property
    def risk(self) -> Risk:
        return risk_of(self.scenario, self.plan)

    @cached_property
    def purchases(self) -> Purchases:
        return purchases_of(self.scenario, self.plan)

    @cached_property
    def bill(self) -> Bill:
        return bill_of(self.scenario, self.plan)

    @cached_property
    def scale(self) -> Scale:
        return scale_of(self.scenario, self.plan)

    @cached_property
    def report(self) -> Report:
        """Without its charts, whose tables have their numbers."""
        made = report_of(self.scenario, self.answer, date=TODAY)
        sections = [
            replace(x, blocks=tuple(b for b in x.blocks if not isinstance(b, Figure)))
            for x in made.sections
        ]
        return replace(made, sections=tuple(sections))


def shown(scenario: Scenario) -> Shown:
    """The answer to a scenario, and a holder of what is made of it."""
    resolved = resolve_strict(scenario)
    return Shown(resolved, forecast_answer(resolved, top=5, with_frontier=True))


def as_json(document: object) -> dict[str, Any]:
    """A document as a reader of its JSON gets it."""
    return orjson.loads(orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY))


def numbers(value: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, float | None]]:
    """Every number of an object by its path, null included; lists and the inputs are left out."""
    for key, inner in value.items():
        if isinstance(inner, dict) and key != "inputs":
            yield from numbers(inner, f"{at}{key}.")
        elif inner is None or (isinstance(inner, int | float) and not isinstance(inner, bool)):
            yield f"{at}{key}", inner


def own_way(s: Shown) -> str:
    """The name of the way in which the plan is bought: of spot the policy that plans have."""
    return "spot_only" if s.plan.offer.purchase == "spot" else s.plan.offer.purchase

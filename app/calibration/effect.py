"""What the calibrations of a scenario change: its plan and the best plan, without and with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.document import format as fmt
from app.document.table import Table, plain
from app.scenario.link import changed
from core.scenario import Scenario
from core.search.plan import Answer, Plan

AnswerOf = Callable[[Scenario], Answer]
FIGURES: tuple[tuple[str, Callable[[Plan], float | None], Callable[[float | None], str]], ...] = (
    ("Speed", lambda p: p.tokens_per_s.p50, fmt.tokens_per_s),
    ("Time", lambda p: p.expected_hours, fmt.days),
    ("Cost", lambda p: p.paid_usd, fmt.usd),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A plan before and after the calibrations are applied; None where it is not ranked."""

    name: str
    before: Plan | None
    after: Plan | None


def effects_of(scenario: Scenario, answer_of: AnswerOf) -> tuple[Effect, ...]:
    """The effect on the chosen plan, and on the best plan where that is a different one."""
    without = changed(scenario, calibration=(), plan="")
    after, before = answer_of(scenario), answer_of(without)
    plan = after.chosen(scenario.plan)
    same = None
    if plan is not None:
        asked = changed(without, plan=plan.id)
        same = next((p for p in answer_of(asked).plans if p.id == plan.id), None)
    name = f"{fmt.count(plan.num_gpus)} {plan.offer.accelerator}" if plan else "The plan"
    found = [Effect(name=name, before=same, after=plan)]
    best = Effect(
        name="The best plan",
        before=before.plans[0] if before.plans else None,
        after=after.plans[0] if after.plans else None,
    )
    if (best.before and best.before.id) != (plan and plan.id) or best.after != plan:
        found.append(best)
    return tuple(found)


def table(effects: tuple[Effect, ...]) -> Table[tuple[str, ...]]:
    """Speed, time, cost and layout without and with the calibrations."""
    rows = []
    for e in effects:
        for what, number, text in FIGURES:
            old, new = (None if p is None else number(p) for p in (e.before, e.after))
            change = f"{new / old - 1:+.1%}" if old and new else fmt.MISSING
            rows.append((e.name, what, text(old), text(new), change))
        one, other = (fmt.layout_short(p.layout) if p else fmt.MISSING for p in (e.before, e.after))
        rows.append((e.name, "Layout", one, other, "same" if one == other else "other"))
    return plain(
        "What it moves", ("Plan", "Figure", "Without", "With the calibration", "Change"), rows
    )


def sentence(effects: tuple[Effect, ...]) -> str:
    """The effect on the first plan in one sentence."""
    e = effects[0]
    if e.after is None or e.before is None:
        return "Nothing fits without the calibration or with it: there is nothing to compare."
    change = e.after.tokens_per_s.p50 / e.before.tokens_per_s.p50 - 1
    cost = ""
    if e.before.paid_usd and e.after.paid_usd:
        usd = e.before.paid_usd
        cost = f", {fmt.usd(usd)} {_to(e.after.paid_usd, usd, fmt.usd)}"
    if not e.after.calibration:
        return (
            f"The plan is on {e.after.offer.accelerator}, of which no calibration in use is: its "
            "forecast is as without them."
        )
    return (
        f"With the calibration {e.name} trains {fmt.tokens_per_s(e.after.tokens_per_s.p50)} "
        f"({change:+.1%}): {fmt.days(e.before.expected_hours)} "
        f"{_to(e.after.expected_hours, e.before.expected_hours, fmt.days)}{cost}."
    )


def interval_sentence(effects: tuple[Effect, ...]) -> str:
    """Width of the P10-P90 speed interval without and with calibrations; '' if there is none."""
    e = effects[0]
    if e.after is None or e.before is None:
        return ""
    old, new = (p.tokens_per_s.p90 / p.tokens_per_s.p10 - 1 for p in (e.before, e.after))
    return f"P10 to P90 of the speed spans {old:.0%} without and {new:.0%} with it."


def _to(new: float, old: float, text: Callable[[float], str]) -> str:
    return "as before" if text(new) == text(old) else f"become {text(new)}"

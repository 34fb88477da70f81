"""Explanations as JSON: the keys that docs/explanations.md documents. Add, never rename."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from app.document.as_json import Json, number
from app.explain.explained import Against, Figures, Named, Why
from app.explain.question import Explanation
from app.explain.sensitivity import Again, Sensitivity
from app.explain.words import (
    difference_sentence,
    named_sentences,
    next_sentence,
    run_sentence,
    unknowns_sentence,
)
from app.scenario.link_query import link_query
from core.explain.bottleneck import Faster
from core.explain.changes import Changes
from core.explain.explain import Difference
from core.search.plan import Layout, Plan
from pricing.offers import snapshot

SCHEMA_VERSION = 1


def explanation_json(found: Explanation) -> dict[str, Json]:
    """The document of `runcast explain --json`; null: not asked for."""
    prices = snapshot(found.scenario.prices)
    return {
        "schema_version": SCHEMA_VERSION,
        "link": link_query(found.scenario, prices.id),
        "nothing_fits": found.nothing_fits,
        "plan": None if found.plan is None else plan_json(found.plan),
        "layouts": [named_json(n) for n in found.named],
        "difference": None if found.difference is None else against_json(found.difference),
        "why": None if found.why is None else why_json(found.why),
        "faster": None if found.faster is None else faster_json(found.faster),
        "sensitivity": None
        if found.sensitivity is None
        else sensitivity_json(found.sensitivity, found.again),
    }


def plan_json(plan: Plan) -> dict[str, Json]:
    """The plan that is explained."""
    return {
        "id": plan.id,
        "rank": plan.rank,
        "accelerator": plan.offer.accelerator,
        "num_gpus": plan.num_gpus,
        "layout": layout_json(plan.layout),
        "step_s": number(sum(plan.step_s.values())),
        "wall_clock_hours": number(plan.wall_clock_hours),
        "usd": None if plan.usd is None else number(plan.usd.p50),
    }


def why_json(why: Why) -> dict[str, Json]:
    """The runner-up, the next best layout, and what would make the plan faster."""
    return {
        "runner_up": None if why.runner_up is None else against_json(why.runner_up),
        "next_layout": None if why.next_layout is None else against_json(why.next_layout),
        "layouts_tried": _looked_at(why.next_changes),
        "faster": faster_json(why.faster),
    }


def against_json(against: Against) -> dict[str, Json]:
    """One plan or layout against another: additional seconds and dollars of the other."""
    cost = against.cost
    return {
        "name": against.name,
        "label": against.label,
        "step": difference_json(against.step),
        "more_hours": number(against.hours),
        "more_usd": None if cost is None else number(cost.more_usd),
        "by_gpu_hours_usd": None if cost is None else number(cost.by_gpu_hours_usd),
        "by_price_usd": None if cost is None else number(cost.by_price_usd),
        "sentence": difference_sentence(against.step, against.label),
        "run_sentence": run_sentence(against),
    }


def difference_json(step: Difference) -> dict[str, Json]:
    """Terms and the rest, which add up to the whole difference."""
    return {
        "first_s": number(step.first_s),
        "second_s": number(step.second_s),
        "more_s": number(step.more_s),
        "terms": [
            {
                "part": t.part,
                "first_s": number(t.first_s),
                "second_s": number(t.second_s),
                "more_s": number(t.more_s),
            }
            for t in step.terms
        ],
        "rest_s": number(step.rest_s),
    }


def faster_json(faster: Faster) -> dict[str, Json]:
    """Every part of the step with its remedies, and the effect of doubling every resource."""
    return {
        "next": None if faster.next is None else faster.next.group,
        "sentence": next_sentence(faster),
        "step_s": number(faster.step_s),
        "bottlenecks": [
            {
                "group": b.group,
                "exposed_s": number(b.exposed_s),
                "share": number(b.share),
                "hidden": b.hidden,
                "remedies": [_plain(asdict(r)) for r in b.remedies],
            }
            for b in faster.bottlenecks
        ],
        "levers": [_plain(asdict(x)) for x in faster.levers],
    }


def named_json(named: Named) -> dict[str, Json]:
    """A named layout: the verdict, the obstacles, and the changes that fit."""
    return {
        "layout_text": named.text,
        "layout": layout_json(named.layout),
        "verdict": named.verdict,
        "sentences": list(named_sentences(named)),
        "obstacles": [
            {
                "reason": o.reason,
                "sentence": o.sentence,
                "figures": {name: number(value) for name, value in o.figures},
            }
            for o in named.obstacles
        ],
        "shortage": None
        if named.shortage is None
        else {**_plain(asdict(named.shortage)), "over_bytes": number(named.shortage.over_bytes)},
        "figures": None if named.figures is None else _figures(named.figures),
        "changes_tried": _looked_at(named.changes),
        "changes": [
            {
                **_plain({k: v for k, v in asdict(c).items() if k not in ("layout", "changed")}),
                "changed": {k: {"from": a, "to": b} for k, (a, b) in c.changed.items()},
                "layout": layout_json(c.layout),
            }
            for c in named.changes.ranked
        ],
    }


def sensitivity_json(found: Sensitivity, again: tuple[Again, ...] = ()) -> dict[str, Json]:
    """The effect of each input, and the unknowns that make up the interval."""
    return {
        "change": number(found.change),
        "effects": [_plain(asdict(e)) for e in found.effects],
        "searched_again": [
            {
                "name": a.name,
                "value": number(a.value),
                "to": number(a.to),
                "time": number(a.time),
                "changed": a.changed,
                "layout": None if a.layout is None else layout_json(a.layout),
            }
            for a in again
        ],
        "sigma": number(found.sigma),
        "unknowns": [_plain(asdict(u)) for u in found.unknowns],
        "unknowns_sentence": unknowns_sentence(found.unknowns),
    }


def layout_json(layout: Layout) -> dict[str, Json]:
    """A layout in the format of `runcast plan --json`."""
    return _plain(asdict(layout))


def _figures(found: Figures) -> dict[str, Json]:
    return _plain(asdict(found))


def _looked_at(changes: Changes) -> dict[str, Json]:
    return {"tried": changes.num_tried, "legal": changes.num_legal, "fit": changes.num_fit}


def _plain(values: dict[str, Any]) -> dict[str, Json]:
    """A number for JSON; null if JSON cannot hold it."""
    return {k: number(v) if isinstance(v, float) else _nested(v) for k, v in values.items()}


def _nested(value: Any) -> Json:
    return _plain(value) if isinstance(value, dict) else value

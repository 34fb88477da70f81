"""Explanations as JSON: the keys that docs/explanations.md documents. Add, never rename."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import Any

from app.document.as_json import Json, number
from app.explain.explained import Against, Named, Why
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
from core.explain.changes import Change, Changes
from core.explain.explain import Difference
from core.search.plan import Plan
from pricing.offers import snapshot

SCHEMA_VERSION = 1


def explanation_json(found: Explanation) -> dict[str, Json]:
    """The document of `runcast explain --json`; null: not asked for."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "link": link_query(found.scenario, snapshot(found.scenario.prices).id),
        "nothing_fits": found.nothing_fits,
        "plan": found.plan and _plan(found.plan),
        "layouts": [_named(n) for n in found.named],
        "difference": found.difference and _against(found.difference),
        "why": found.why and _why(found.why),
        "faster": found.faster and _faster(found.faster),
        "sensitivity": found.sensitivity and _sensitivity(found.sensitivity, found.again),
    }
    return {key: _plain(value) for key, value in document.items()}


def _plan(plan: Plan) -> dict[str, Any]:
    """The plan that is explained."""
    return {
        "id": plan.id,
        "rank": plan.rank,
        "accelerator": plan.offer.accelerator,
        "num_gpus": plan.num_gpus,
        "layout": plan.layout,
        "step_s": sum(plan.step_s.values()),
        "wall_clock_hours": plan.wall_clock_hours,
        "usd": plan.usd and plan.usd.p50,
    }


def _why(why: Why) -> dict[str, Any]:
    """The runner-up, the next best layout, and what would make the plan faster."""
    return {
        "runner_up": why.runner_up and _against(why.runner_up),
        "next_layout": why.next_layout and _against(why.next_layout),
        "layouts_tried": _looked_at(why.next_changes),
        "faster": _faster(why.faster),
    }


def _against(against: Against) -> dict[str, Any]:
    """One plan or layout against another: additional seconds and dollars of the other."""
    cost = against.cost
    return {
        "name": against.name,
        "label": against.label,
        "step": _difference(against.step),
        "more_hours": against.hours,
        "more_usd": cost and cost.more_usd,
        "by_gpu_hours_usd": cost and cost.by_gpu_hours_usd,
        "by_price_usd": cost and cost.by_price_usd,
        "sentence": difference_sentence(against.step, against.label),
        "run_sentence": run_sentence(against),
    }


def _difference(step: Difference) -> dict[str, Any]:
    """Terms and the rest, which add up to the whole difference."""
    return {
        "first_s": step.first_s,
        "second_s": step.second_s,
        "more_s": step.more_s,
        "terms": [{**asdict(t), "more_s": t.more_s} for t in step.terms],
        "rest_s": step.rest_s,
    }


def _faster(faster: Faster) -> dict[str, Any]:
    """Every part of the step with its remedies, and the effect of doubling every resource."""
    return {
        "next": faster.next and faster.next.group,
        "sentence": next_sentence(faster),
        "step_s": faster.step_s,
        "bottlenecks": faster.bottlenecks,
        "levers": faster.levers,
    }


def _named(named: Named) -> dict[str, Any]:
    """A named layout: the verdict, the obstacles, and the changes that fit."""
    lacks = named.shortage
    return {
        "layout_text": named.text,
        "layout": named.layout,
        "verdict": named.verdict,
        "sentences": named_sentences(named),
        "obstacles": [
            {"reason": o.reason, "sentence": o.sentence, "figures": dict(o.figures)}
            for o in named.obstacles
        ],
        "shortage": lacks and {**asdict(lacks), "over_bytes": lacks.over_bytes},
        "figures": named.figures,
        "changes_tried": _looked_at(named.changes),
        "changes": [_change(c) for c in named.changes.ranked],
    }


def _change(change: Change) -> dict[str, Any]:
    found = {k: v for k, v in asdict(change).items() if k not in ("layout", "changed")}
    knobs = {k: {"from": a, "to": b} for k, (a, b) in change.changed.items()}
    return {**found, "changed": knobs, "layout": change.layout}


def _sensitivity(found: Sensitivity, again: tuple[Again, ...]) -> dict[str, Any]:
    """The effect of each input, and the unknowns that make up the interval."""
    return {
        "change": found.change,
        "effects": found.effects,
        "searched_again": again,
        "sigma": found.sigma,
        "unknowns": found.unknowns,
        "unknowns_sentence": unknowns_sentence(found.unknowns),
    }


def _looked_at(changes: Changes) -> dict[str, Any]:
    return {"tried": changes.num_tried, "legal": changes.num_legal, "fit": changes.num_fit}


def _plain(value: Any) -> Json:
    """A value for JSON: records by their fields, null for a number that JSON cannot hold."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return number(value) if isinstance(value, float) else value

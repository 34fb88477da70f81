"""Explanations as JSON: the keys that docs/explanations.md documents. Add, never rename."""

from __future__ import annotations

from typing import Any

from app.document.as_json import Json, as_json, attributes
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
from app.scenario.link_query import document_head
from core.explain.bottleneck import Faster
from core.explain.changes import Change, Changes
from core.search.plan import Plan

SCHEMA_VERSION = 1


def explanation_json(found: Explanation) -> dict[str, Json]:
    """The document of `runcast explain --json`; null: not asked for."""
    return {
        **document_head(found.scenario, SCHEMA_VERSION),
        "nothing_fits": found.nothing_fits,
        "plan": found.plan and _plan(found.plan),
        "layouts": [_named(n) for n in found.named],
        "difference": found.difference and _against(found.difference),
        "why": found.why and _why(found.why),
        "faster": found.faster and _faster(found.faster),
        "sensitivity": found.sensitivity and _sensitivity(found.sensitivity, found.again),
    }


def _plan(plan: Plan) -> dict[str, Any]:
    """The plan that is explained."""
    names = ("id", "rank", "num_gpus", "layout", "wall_clock_hours")
    step_s = as_json(sum(plan.step_s.values()))
    paths = {"accelerator": "offer.accelerator", "usd": "usd.p50"}
    return {**attributes(plan, *names, **paths), "step_s": step_s}


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
    step = against.step
    costs = {f"{name}_usd": f"cost.{name}_usd" for name in ("more", "by_gpu_hours", "by_price")}
    return {
        **attributes(against, "name", "label", more_hours="hours", **costs),
        "step": {
            **attributes(step, "first_s", "second_s", "more_s", "rest_s"),
            "terms": [{**as_json(t), "more_s": as_json(t.more_s)} for t in step.terms],
        },
        "sentence": difference_sentence(step, against.label),
        "run_sentence": run_sentence(against),
    }


def _faster(faster: Faster) -> dict[str, Any]:
    """Every part of the step with its remedies, and the effect of doubling every resource."""
    return {
        **attributes(faster, "step_s", "bottlenecks", "levers", next="next.group"),
        "sentence": next_sentence(faster),
    }


def _named(named: Named) -> dict[str, Any]:
    """A named layout: the verdict, the obstacles, and the changes that fit."""
    lacks = named.shortage
    return {
        **attributes(named, "layout", "verdict", "figures", layout_text="text"),
        "sentences": as_json(named_sentences(named)),
        "obstacles": [
            {**attributes(o, "reason", "sentence"), "figures": as_json(dict(o.figures))}
            for o in named.obstacles
        ],
        "shortage": lacks and {**as_json(lacks), "over_bytes": as_json(lacks.over_bytes)},
        "changes_tried": _looked_at(named.changes),
        "changes": [_change(c) for c in named.changes.ranked],
    }


def _change(change: Change) -> dict[str, Any]:
    knobs = {k: {"from": as_json(a), "to": as_json(b)} for k, (a, b) in change.changed.items()}
    return {**as_json(change), "changed": knobs}


def _sensitivity(found: Sensitivity, again: tuple[Again, ...]) -> dict[str, Any]:
    """The effect of each input, and the unknowns that make up the interval."""
    return {
        **attributes(found, "change", "effects", "sigma", "unknowns"),
        "searched_again": as_json(again),
        "unknowns_sentence": unknowns_sentence(found.unknowns),
    }


def _looked_at(changes: Changes) -> dict[str, Any]:
    return attributes(changes, tried="num_tried", legal="num_legal", fit="num_fit")

"""One answer as JSON: the documented, versioned schema of `runcast plan --json`.

docs/plan-json.md documents every key; keys are stable: add, never rename, and raise
SCHEMA_VERSION when the meaning of one changes. Numbers are in the unit at the end of their name
and are not rounded; null: not known or not finite.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from app.document.as_json import Json, attributes, number, plain
from app.document.vocabulary import MEMORY_PARTS, STEP_PARTS
from app.forecast.alternatives import Pick, picks_of
from app.forecast.fixed_layout import Verdict
from app.forecast.price_book import price_day
from app.forecast.whole_layout import layout_forecast
from app.plan.decided import recommended_sentence
from app.plan.inputs_json import inputs_json, made_with_json, plan_inputs_json
from app.plan.words import batch_advice
from app.scenario.link_query import link_query
from core.cost.uncertain import Uncertain
from core.scenario import Scenario
from core.scenario.task_size import BatchAdvice
from core.search.plan import Answer, NearbyRuns, Plan
from pricing.book.offers import is_quote
from pricing.offers import snapshot

SCHEMA_VERSION = 1
HOURS_PER_DAY = 24.0
QUANTILES = ("p10", "p50", "p90")
OUTCOMES = {"expected": "mean", "p50": "p50", "p90": "p90"}
LAYOUT_KEYS = (
    "tp", "pp", "virtual_stages", "cp", "ep", "dp_replicate", "dp_shard", "sharding",
    "micro_batch_size", "num_microbatches", "recompute", "etp", "schedule", "context_parallel",
    "reshard_after_forward", "offload_optimizer", "offload_params",
)  # fmt: skip


def plan_json(scenario: Scenario, answer: Answer, *, with_inputs: bool = True) -> dict[str, Json]:
    """The whole answer. `scenario` is the resolved one, so its names are canonical.

    `with_inputs`: include what the numbers are computed from, a millisecond per plan.
    """
    prices = snapshot(scenario.prices)
    asked = {name: plain(value) for name, value in scenario.model_dump(mode="json").items()}
    plans: list[dict[str, Json]] = [_plan(p) for p in answer.plans]
    inputs: dict[str, Json] = {}
    if with_inputs:
        inputs = {"made_with": made_with_json(), "inputs": inputs_json(scenario, answer.plans)}
        for plan, own in zip(plans, plan_inputs_json(answer.plans), strict=True):
            plan["inputs"] = own
    return {
        "schema_version": SCHEMA_VERSION,
        "scenario": asked,
        "link": link_query(scenario, prices.id),
        "price_snapshot": {
            "id": prices.id,
            "newest": prices.newest,
            "oldest": prices.oldest,
            "judged_on": price_day(scenario).isoformat(),
        },
        "batch": _batch(batch_advice(scenario)),
        "num_candidates": answer.num_candidates,
        "search": _search(answer),
        "num_plans": answer.num_plans,
        "nothing_fits": answer.nothing_fits,
        "excluded": [attributes(e, "reason", "count", "sentence") for e in answer.excluded],
        "recommended": _recommended(scenario, answer),
        "also": [_pick(p) for p in picks_of(scenario, answer)],
        "plans": list(plans),
        **inputs,
    }


def estimate_json(scenario: Scenario, answer: Answer, verdict: Verdict) -> dict[str, Json]:
    """The answer for one named layout: the document of `plan_json`, the layout's verdict, and the
    forecast of a layout and machine that are given whole."""
    whole = layout_forecast(scenario)
    return {
        **plan_json(scenario, answer),
        "layout_forecast": None
        if whole is None
        else {
            "uncorrected_tokens_per_s_per_gpu": number(whole.tokens_per_s_per_gpu),
            "needed_memory_gib": number(whole.memory_gib),
        },
        "verdict": verdict.word,
        "verdict_sentence": verdict.sentence,
    }


def _recommended(scenario: Scenario, answer: Answer) -> dict[str, Json] | None:
    """The first plan, why it is the first, and what it had to pass."""
    found = answer.recommendation
    if found is None or not answer.plans:
        return None
    return {
        "id": answer.plans[0].id,
        "sentence": recommended_sentence(scenario, answer),
        "num_passing": found.num_passing,
        "gates": [asdict(gate) for gate in found.gates],
    }


def _search(answer: Answer) -> dict[str, Json]:
    """The outcome for all candidates: the other counts add up to `num_candidates`."""
    c = answer.counts
    return {
        "num_candidates": c.candidates,
        "num_removed": c.removed,
        "num_pruned_by_memory": c.pruned_by_memory,
        "num_pruned_by_time": c.pruned_by_time,
        "num_evaluated": c.evaluated,
        "num_cut": c.cut,
        "not_searched": answer.not_searched or None,
    }


def _pick(pick: Pick) -> dict[str, Json]:
    """An alternative question, and the plan that answers it."""
    point = pick.point
    return {
        "question": pick.question,
        "limit": number(pick.limit),
        "sentence": pick.sentence,
        "id": str(point["id"]),
        "rank": int(point["rank"]),
        "num_gpus": int(point["num_gpus"]),
        "accelerator": str(point["accelerator"]),
        "usd": number(point["usd"]),
        "expected_usd": number(point["expected_usd"]),
        "paid_usd": number(point["paid_usd"]),
        "expected_hours": number(point["expected_hours"]),
        "wall_clock_hours": number(point["wall_clock_hours"]),
        "startup_hours": number(point["startup_hours"]),
    }


def _batch(advice: BatchAdvice) -> dict[str, Json]:
    names = ("tokens_per_step", "num_steps", "critical_tokens_early", "critical_tokens_late")
    return {**_numbers(advice, *names), **attributes(advice, "verdict", "sentence")}


def _nearby_json(runs: NearbyRuns) -> Json:
    return {
        **_numbers(runs, "moved_by_runs", "explained", "distance"),
        "sentence": runs.sentence,
        "runs": [
            {
                "run_id": run.run_id,
                "residual": run.residual,
                **attributes(run, "weight", "distance"),
            }
            for run in runs.runs
        ],
    }


def _numbers(record: object, *names: str) -> dict[str, Json]:
    """These attributes of a record, null where one is not finite."""
    return {name: number(value) for name, value in attributes(record, *names).items()}


def _plan(plan: Plan) -> dict[str, Json]:
    offer, usd = plan.offer, plan.usd
    return {
        **attributes(plan, "id", "rank"),
        **attributes(offer, "accelerator", "provider", "instance_type", "region", "purchase"),
        "is_quote": is_quote(offer),
        **attributes(plan, "num_gpus", "num_nodes"),
        "layout": attributes(plan.layout, *LAYOUT_KEYS),
        **attributes(plan, "stack", "precision", "compiled", "cuda_graphs"),
        "tokens_per_s": number(plan.tokens_per_s.p50),
        "tokens_per_s_p10": number(plan.tokens_per_s.p10),
        "tokens_per_s_p90": number(plan.tokens_per_s.p90),
        **_numbers(plan, "tokens_per_s_per_gpu", "mfu", "hfu", "model_flops_per_s_per_gpu"),
        "num_steps": number(plan.num_steps),
        "step_s": _parts(plan.step_s, STEP_PARTS),
        "memory_bytes": {
            **_parts(plan.memory_bytes, MEMORY_PARTS),
            "capacity": number(plan.memory_capacity_bytes),
        },
        **{f"memory_{k}_gb": number(v / 1e9) for k, v in plan.memory_counted_bytes.items()},
        **_numbers(plan, "probability_oom", "gpu_hours", "wall_clock_hours"),
        **_numbers(plan, "startup_hours", "billed_hours"),
        "usd": number(usd.p50) if usd else None,
        "usd_p10": number(usd.p10) if usd else None,
        "usd_p90": number(usd.p90) if usd else None,
        "usd_per_gpu_hour": number(plan.usd_per_gpu_hour),
        "term_usd": number(plan.term_usd),
        **total_json(plan),
        "cost": _cost(plan),
        "with_failures": _with_failures(plan),
        "chosen_correction": _chosen(plan),
        "price": {
            "usd_per_hour": number(offer.usd_per_hour),
            **attributes(offer, "observed_at", "source", "quality"),
        },
        "network": None if plan.network is None else asdict(plan.network),
        "supply": None if plan.supply is None else asdict(plan.supply),
        "at_half_network": None if plan.at_half_network is None else asdict(plan.at_half_network),
        "nearby": None if plan.nearby is None else _nearby_json(plan.nearby),
        "meets_deadline": bool(plan.meets_deadline),
        "meets_budget": bool(plan.meets_budget),
        "frontier": bool(plan.frontier),
        "not_recommended_for": list(plan.against),
        "no_launch_file": plan.no_launch or None,
        "calibration": plan.calibration or None,
        "assumptions": list(plan.assumptions),
    }


def total_json(plan: Plan) -> dict[str, Json]:
    """What a plan takes and costs; null: it never ends, has no price, or there is no limit."""
    cost = plan.cost
    hours, days = cost.hours, cost.hours.mean / HOURS_PER_DAY
    return {
        "expected_usd": number(plan.expected_usd),
        **_quantiles("expected_usd", cost.total),
        "paid_usd": number(plan.paid_usd),
        **_quantiles("paid_usd", cost.paid),
        "expected_hours": number(hours.mean),
        "expected_days": number(days),
        **_quantiles("expected_hours", hours),
        "chance_on_time": number(plan.chance_on_time),
        "chance_in_budget": number(plan.chance_in_budget),
    }


def _quantiles(name: str, figures: Uncertain) -> dict[str, Json]:
    return {f"{name}_{q}": number(getattr(figures, q)) for q in ("p10", "p50", "p90")}


def _cost(plan: Plan) -> dict[str, Json]:
    """The terms of the cost and the causes of the time: means add up to expected_usd and
    expected_hours. `failures_only` is at the forecast speed and the price as seen."""
    cost = plan.cost
    terms = cost.terms if cost.terms is not None and cost.has_price else None
    return {
        "usd": None
        if terms is None
        else {
            name: {"mean": number(term.mean), **{q: number(getattr(term, q)) for q in QUANTILES}}
            for name, term in terms.items()
        },
        "hours": {cause: number(hours) for cause, hours in cost.hour_terms.items()},
        **_numbers(
            cost, "failures_only_usd", "failures_only_hours", "uncorrected_usd",
            "uncorrected_hours", "paid_hours", "failures", "goodput", "num_terms", "window_hours",
        ),
    }  # fmt: skip


def _with_failures(plan: Plan) -> dict[str, Json]:
    """Time and cost with failures: those of the plan."""
    hours, usd = plan.cost.hours, plan.cost.total
    return {
        "goodput": number(plan.cost.goodput),
        **{f"hours_{key}": number(getattr(hours, name)) for key, name in OUTCOMES.items()},
        **{f"usd_{key}": number(getattr(usd, name)) for key, name in OUTCOMES.items()},
    }


def _chosen(plan: Plan) -> dict[str, Json] | None:
    """What choosing the plan by its forecast took off; null: it leads nothing, or it was
    measured."""
    if (correction := plan.chosen_correction) is None:
        return None
    return {
        **_numbers(correction, "num_machines", "lead", "shrink"),
        "expected_usd": number(plan.expected_usd),
        "expected_hours": number(plan.expected_hours),
        "chance_on_time": number(plan.chance_on_time),
    }


def brief_json(plan: Plan) -> dict[str, Json]:
    """The few keys with which other documents identify a plan."""
    return {
        "id": plan.id,
        "accelerator": plan.offer.accelerator,
        "num_gpus": plan.num_gpus,
        "wall_clock_hours": plan.wall_clock_hours,
        "usd": None if plan.usd is None else plan.usd.p50,
        "expected_usd": number(plan.expected_usd),
        "paid_usd": number(plan.paid_usd),
        "expected_hours": number(plan.expected_hours),
    }


def _parts(parts: Mapping[str, float], known: Iterable[str]) -> dict[str, Json]:
    """Every known part in order, 0 if the plan lacks it, then the sum of all parts."""
    whole = {**dict.fromkeys(known, 0.0), **parts}
    return {**{n: number(v) for n, v in whole.items()}, "total": number(sum(whole.values()))}

"""What each command, page and file shows of one plan: tests/whole/test_one_cost.py compares them.

A medium is a function of a `Shown` that returns values by the names that `runcast plan --json` has
for them (`memory_bytes.total`): numbers where the medium has numbers, texts where it has only
texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from app.api import questions
from app.bill.as_json import bill_json
from app.buy.as_json import purchases_json
from app.command.given import Given
from app.command.values import layout_scenario
from app.explain.as_json import explanation_json
from app.explain.question import explanation
from app.forecast.answer import answer as forecast_answer
from app.forecast.fixed_layout import judged
from app.forecast.resolve import resolve_strict
from app.options import document as options_document
from app.options import side_by_side
from app.plan import document as plan_document
from app.plan.as_json import estimate_json
from app.programme.as_json import programme_json
from app.programme.programme import programme_of
from app.provenance.as_json import provenance_json
from app.provenance.records import provenance_of
from app.risk.as_json import risk_json
from app.scale.as_json import scale_json
from app.scenario.layout import layout_text
from app.sweep.cell import row_of
from tests.support.media.shown import TODAY, Shown, Values, as_json, numbers, own_way
from tests.support.media.texts import TEXTS

DAY_H = 24.0
GIB = 2.0**30
CENT = 0.01


def of_same_plan(document: object, plan_id: str) -> Iterator[dict[str, Any]]:
    """Every object at any depth that names the plan."""
    if isinstance(document, dict):
        if document.get("id") == plan_id:
            yield document
        for inner in document.values():
            yield from of_same_plan(inner, plan_id)
    elif isinstance(document, list):
        for inner in document:
            yield from of_same_plan(inner, plan_id)


def _alike(s: Shown, document: object) -> Values:
    """The numbers of every object that names the plan, under keys that `plan --json` has, too."""
    values: Values = {}
    for found in of_same_plan(document, s.plan.id):
        for path, value in numbers(found):
            if path in s.reference and values.get(path, s.reference[path]) == s.reference[path]:
                values[path] = value
    return values


# --- JSON ----------------------------------------------------------------------------------------


def _spread(name: str, spread: Mapping[str, float] | None) -> Values:
    """Expected value and quantiles with all that is uncertain, of risk and of a way to buy."""
    if spread is None:
        return {}
    return {
        f"expected_{name}": spread["expected"],
        **{f"expected_{name}_{p}": spread[f"{p}_all"] for p in ("p10", "p50", "p90")},
    }


def _on_time(misses: float | None) -> Values:
    return {} if misses is None else {"chance_on_time": 1 - misses}


def plan_also(s: Shown) -> Values:
    return _alike(s, s.document["also"])


def plan_with_failures(s: Shown) -> Values:
    failing = s.document["plans"][0]["with_failures"]
    return {
        **{f"expected_usd{q}": failing[f"usd{n}"] for n, q in _QUANTILES.items()},
        **{f"expected_hours{q}": failing[f"hours{n}"] for n, q in _QUANTILES.items()},
    }


_QUANTILES = {"_expected": "", "_p50": "_p50", "_p90": "_p90"}


def risk_document(s: Shown) -> Values:
    found = as_json(risk_json(s.scenario, s.risk))
    return {
        **_alike(s, found), **_spread("hours", found["hours"]), **_spread("usd", found["usd"]),
        **_on_time(found["misses_deadline_probability"]),
    }  # fmt: skip


def buy_document_json(s: Shown) -> Values:
    found = as_json(purchases_json(s.scenario, s.purchases))
    way = next(w for w in found["ways"] if w["name"] == own_way(s))
    term = {r["kind"]: r["term_usd"] for r in found["reservations"]}.get(way["kind"])
    return {
        **_alike(s, found), **_spread("hours", way["hours"]), **_spread("usd", way["usd"]),
        **_on_time(way["misses_deadline_probability"]),
        "usd_per_gpu_hour": way["machine"]["usd_per_gpu_hour"],
        "wall_clock_hours": way["machine"]["wall_clock_hours"],
        **({} if term is None else {"term_usd": term}),
    }  # fmt: skip


def bill_document_json(s: Shown) -> Values:
    found = as_json(bill_json(s.scenario, s.bill))
    priced = [line["usd"]["expected"] for line in found["lines"] if line["usd"] is not None]
    total = found["total_usd"] and found["total_usd"]["expected"]
    if total is not None:
        difference = math.fsum(priced) - total
        assert abs(difference) <= CENT / 2, f"the lines of the bill miss its total by {difference}"
    return {
        **_alike(s, found), "expected_usd": total,
        "expected_hours": found["hours"]["total"]["expected"],
        "cost.hours.training": found["hours"]["training"]["expected"],
        "startup_hours": found["hours"]["startup"]["expected"],
    }  # fmt: skip


def scale_row(s: Shown) -> Values:
    return _alike(s, as_json(scale_json(s.scenario, s.scale)))


def scale_row_failing(s: Shown) -> Values:
    """The hours and dollars of the row, whose `expected` is under a key of its own."""
    points = as_json(scale_json(s.scenario, s.scale))["points"]
    own = next(p for p in points if p["id"] == s.plan.id)
    usd = own["usd"] or {}
    return {
        "wall_clock_hours": own["hours"]["steady"], "expected_hours": own["hours"]["expected"],
        "expected_hours_p90": own["hours"]["p90_all"],
        **{k: usd[n] for k, n in _SCALE_USD.items() if n in usd},
    }  # fmt: skip


_SCALE_USD = {"usd": "steady", "expected_usd": "expected", "expected_usd_p90": "p90_all"}


def explain_document(s: Shown) -> Values:
    found = as_json(explanation_json(explanation(s.scenario, s.answer)))
    own = found["plan"]
    names = ("wall_clock_hours", "usd", "num_gpus", "rank")
    return {"step_s.total": own["step_s"], **{n: own[n] for n in names}}


# What `runcast where` calls a number that `plan --json` has by another name.
_WHERE = {
    "run_usd": "usd", "run_usd_p10": "usd_p10", "run_usd_p90": "usd_p90",
    "total_usd": "expected_usd", "total_hours": "expected_hours", "step_s": "step_s.total",
    "peak_memory_bytes": "memory_bytes.total", "memory_capacity_bytes": "memory_bytes.capacity",
    "goodput": "with_failures.goodput", "failures_only_usd": "cost.failures_only_usd",
    "failures_only_hours": "cost.failures_only_hours",
}  # fmt: skip


def where_document(s: Shown) -> Values:
    found = provenance_json(s.scenario, s.plan, provenance_of(s.scenario, s.plan), TODAY)
    values: Values = {}
    for record in as_json(found)["numbers"]:
        key = str(record["key"])
        parts = re.fullmatch(r"(step|memory)_(\w+?)_(s|bytes)", key)
        path = f"{parts[1]}_{parts[3]}.{parts[2]}" if parts else key
        path = _WHERE.get(key, path)
        # Two records may be of one number: one that differs must not be covered.
        is_covered = path in values and values[path] != s.reference[path]
        if path in s.reference and record["value"] is not None and not is_covered:
            values[path] = record["value"]
    return values


def api_plan(s: Shown) -> Values:
    found = as_json(questions.plan({**s.scenario.to_query(), "top": "1"}))["plans"][0]
    return {**dict(numbers(found))}


def programme_document(s: Shown) -> Values:
    """The contract on the plan's machines, of a programme that is one run."""
    if s.scenario.stages != ("name=main",):
        return {}
    contracts = as_json(programme_json(s.scenario, programme_of(s.scenario)))["contracts"]
    own = next(c for c in contracts if c["id"] == s.plan.id)
    (stage,) = own["stages"]
    names = ("mfu", "probability_oom", "tokens_per_s", "num_gpus")
    return {
        **{_renamed("usd", n): v for n, v in own["usd"].items()},
        **{_renamed("hours", n): v for n, v in own["hours"].items()},
        **{n: own[n] for n in ("chance_on_time", "startup_hours")},
        **{n: stage[n] for n in names},
    }


def _renamed(quantity: str, name: str) -> str:
    return f"expected_{quantity}" + ("" if name == "expected" else f"_{name}")


def sweep_row(s: Shown) -> Values:
    row = as_json(row_of(s.document))
    columns = {f"best_{path.replace('.', '_')}": path for path in s.reference}
    return {path: row[name] for name, path in columns.items() if name in row}


def estimate_of_its_layout(s: Shown) -> Values:
    """`runcast estimate` of the plan's layout on its machines, by its stack."""
    plan = s.plan
    asked = {"gpu": plan.offer.accelerator, "num_gpus": str(plan.num_gpus), "stack": plan.stack}
    link = f"?{urlencode(s.scenario.to_query())}"
    scenario, keys, _ = layout_scenario(Given(options=asked, link=link), layout_text(plan.layout))
    scenario = resolve_strict(scenario)
    found, verdict = judged(forecast_answer(scenario, top=1000), keys)
    plans = as_json(estimate_json(scenario, found, verdict))["plans"]
    own = next(p for p in plans if p["id"] == plan.id)
    return {k: v for k, v in numbers(own) if k in s.reference and k not in _OF_THE_ANSWER}


# Of a plan among others, so not of the same plan alone.
_OF_THE_ANSWER = ("rank",)


# --- tables and columns --------------------------------------------------------------------------


def points(s: Shown) -> Values:
    """The columns behind charts, downloads and tooltips."""
    columns = s.answer.points
    row = int((columns["id"] == s.plan.id).argmax())
    hours = float(columns["hours"][row])
    values: Values = {
        name: float(columns[name][row])
        for name in s.reference
        if name in columns and columns[name].dtype.kind in "fi"
    }
    if s.scenario.deadline_days is None:
        values.pop("chance_on_time", None)  # 1 then: no plan is late
    if s.scenario.budget_usd is None:
        values.pop("chance_in_budget", None)
    return {
        **{k: None if isinstance(v, float) and math.isnan(v) else v for k, v in values.items()},
        "memory_bytes.total": float(columns["peak_memory_bytes"][row]),
        "memory_bytes.capacity": float(columns["memory_capacity_bytes"][row]),
        "wall_clock_hours": hours - float(columns["startup_hours"][row]),
    }


def frontier_chart(s: Shown) -> Values:
    """The point of the chart, and so its tooltip."""
    drawn = plan_document.points(s.answer)
    (row,) = drawn[drawn["id"] == s.plan.id].to_dict("records")
    return {
        "paid_usd": float(row["usd"]), "expected_days": float(row["days"]),
        "num_gpus": float(row["num_gpus"]),
    }  # fmt: skip


_TABLE = {  # column of the ranked table and its CSV: name in JSON, times
    plan_document.PAID: ("paid_usd", 1), plan_document.EXPECTED_COST: ("expected_usd", 1),
    plan_document.COST: ("usd", 1),
    plan_document.EXPECTED_TIME: ("expected_days", 1), plan_document.ON_TIME: ("chance_on_time", 1),
    plan_document.EXPECTED_LOW: ("expected_usd_p10", 1),
    plan_document.EXPECTED_HIGH: ("expected_usd_p90", 1),
    plan_document.TIME_LOW: ("expected_hours_p10", DAY_H),
    plan_document.TIME_HIGH: ("expected_hours_p90", DAY_H),
    plan_document.COST_LOW: ("usd_p10", 1), plan_document.COST_HIGH: ("usd_p90", 1),
    plan_document.PRICE: ("usd_per_gpu_hour", 1), plan_document.GPU_HOURS: ("gpu_hours", 1),
    plan_document.MFU: ("mfu", 1), plan_document.SPEED: ("tokens_per_s", 1),
    plan_document.MEMORY: ("memory_bytes.total", GIB), "GPUs": ("num_gpus", 1),
    options_document.OOM: ("probability_oom", 1),
}  # fmt: skip


def _of_table(row: Mapping[Any, Any]) -> Values:
    found = {path: row[head] * times for head, (path, times) in _TABLE.items() if head in row}
    return {
        path: None if isinstance(v, float) and math.isnan(v) else float(v)
        for path, v in found.items()
    }


def ranked_csv(s: Shown) -> Values:
    frame = plan_document.ranked(s.scenario, s.answer.plans).frame()
    (row,) = frame[frame["#"] == s.plan.rank].to_dict("records")
    return _of_table(row)


def compare_csv(s: Shown) -> Values:
    every = options_document.every(s.scenario, s.answer)
    (row,) = every[every[options_document.ID] == s.plan.id].to_dict("records")
    return _of_table({**row, "GPUs": row[options_document.GPUS]})


_SIDE = {  # row of two plans side by side
    "Expected cost": "paid_usd", "Cost, P10": "paid_usd_p10",
    "Cost, P90": "paid_usd_p90", "Expected time": "expected_hours",
    "Time, P10": "expected_hours_p10", "Time, P90": "expected_hours_p90",
    "Chance on time": "chance_on_time", "Cost without failures": "usd",
    "Tokens/s": "tokens_per_s", "Tokens/s of a GPU": "tokens_per_s_per_gpu", "MFU": "mfu",
    "One step": "step_s.total", "GPUs": "num_gpus", "Instances": "num_nodes",
    "GPU-hours": "gpu_hours", "Memory, peak": "memory_bytes.total",
    "Out of memory": "probability_oom", "Price, GPU-hour": "usd_per_gpu_hour",
}  # fmt: skip


def compare_side_by_side(s: Shown) -> Values:
    rows = side_by_side.rows(side_by_side.subjects(s.scenario, [s.plan]), TODAY)
    numbers = {r.label: r.numbers[0] for r in rows}
    values = {path: numbers[label] for label, path in _SIDE.items()}
    return {path: None if math.isnan(v) else v for path, v in values.items()}


MEDIA: Mapping[str, Callable[[Shown], Values]] = {
    "plan --json, also": plan_also,
    "plan --json, with_failures": plan_with_failures,
    "risk --json": risk_document,
    "buy --json": buy_document_json,
    "bill --json": bill_document_json,
    "scale --json": scale_row,
    "scale --json, hours and usd": scale_row_failing,
    "explain --json": explain_document,
    "where --json": where_document,
    "programme --json": programme_document,
    "API": api_plan,
    "sweep": sweep_row,
    "estimate": estimate_of_its_layout,
    "columns of points": points,
    "tooltip": frontier_chart,
    "ranked table and its CSV": ranked_csv,
    "Compare's list and its CSV": compare_csv,
    "Compare side by side": compare_side_by_side,
    **TEXTS,
}

"""One cell of a sweep: a scenario in, its row out. Every worker imports this module.

It is not in runners/, because an answer is made in app/forecast/answer.py and runners may not
import app: app/sweep/run.py passes this function to runners/sweeps.py. A process reads the facts at
its first cell and keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

from app.document.as_json import Json
from app.document.vocabulary import MEMORY_PARTS, STEP_PARTS
from app.forecast import price_book
from app.forecast.answer import answer
from app.forecast.resolve import resolve_strict
from app.plan.as_json import plan_json
from app.scenario.version import made_with
from core.errors import ModelError, ScenarioError
from core.scenario import Scenario
from core.search.plan import Layout
from pricing.offers import snapshot_ids

# Keys of a plan in docs/plan-json.md -> type; column best_layout_tp holds key layout.tp.
PLAN_KEYS: dict[str, type] = {
    **dict.fromkeys(
        ("id", "accelerator", "provider", "instance_type", "region", "purchase"), str
    ),
    "num_gpus": int,
    "num_nodes": int,
    **{f"layout.{name}": kind for name, kind in get_type_hints(Layout).items()},
    **dict.fromkeys(
        (
            "tokens_per_s", "tokens_per_s_p10", "tokens_per_s_p90", "tokens_per_s_per_gpu", "mfu",
            "hfu", "num_steps", *(f"step_s.{part}" for part in (*STEP_PARTS, "total")),
            *(f"memory_bytes.{part}" for part in (*MEMORY_PARTS, "total", "capacity")),
            "probability_oom", "gpu_hours", "wall_clock_hours", "usd", "usd_p10", "usd_p90",
            "usd_per_gpu_hour", "price.usd_per_hour", "expected_usd", "expected_usd_p10",
            "expected_usd_p90", "expected_hours", "expected_hours_p10", "expected_hours_p90",
            "chance_on_time",
        ),
        float,
    ),
    **dict.fromkeys(("price.observed_at", "price.source", "price.quality"), str),
    "meets_deadline": bool,
    "meets_budget": bool,
    "assumptions": str,
}  # fmt: skip
COLUMNS: dict[str, type] = {
    "num_candidates": int,
    "num_pruned": int,
    "num_evaluated": int,
    "num_plans": int,
    "no_plan": str,  # the sentence with the reason
    **{f"best_{key.replace('.', '_')}": kind for key, kind in PLAN_KEYS.items()},
    "link": str,
}


def cell(query: Mapping[str, str]) -> dict[str, Any]:
    """The row of one scenario, and what it was made with. A combination of values that cannot be a
    run also gives a row, without a plan. If the named prices are missing, there is no row."""
    asked = Scenario.parse({name: text for name, text in query.items() if name != "v"})
    if asked.prices and asked.prices not in snapshot_ids():
        return {"row": None, "made_with": made_with(), "price_book": ""}
    try:
        scenario = resolve_strict(asked)
        row = row_of(plan_json(scenario, answer(scenario, top=1), with_inputs=False))
    except (ScenarioError, ModelError) as e:
        row = {**dict.fromkeys(COLUMNS), "no_plan": str(e)}
    # Read after the answer, so that a change during the computation is noticed.
    book = price_book.content_id(asked.price_book)
    return {"row": row, "made_with": made_with(), "price_book": book}


def row_of(found: Mapping[str, Any]) -> dict[str, Json]:
    """The columns of one answer of `runcast plan --json`."""
    search = found["search"]
    row: dict[str, Json] = {
        **dict.fromkeys(COLUMNS),
        "num_candidates": search["num_candidates"],
        "num_pruned": search["num_candidates"] - search["num_evaluated"],
        "num_evaluated": search["num_evaluated"],
        "num_plans": found["num_plans"],
        "no_plan": found["nothing_fits"],
        "link": found["link"],
    }
    for key in PLAN_KEYS if found["plans"] else ():
        value: Any = found["plans"][0]
        for part in key.split("."):
            value = value[part]
        if isinstance(value, list):  # sentences
            value = " ".join(value)
        row[f"best_{key.replace('.', '_')}"] = value
    return row

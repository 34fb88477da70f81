"""Every plan as columns, for ranking, charts, tables and downloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.document import format as fmt
from app.forecast.choosing.lead import Corrections, corrections
from app.forecast.costs import Costs, costs_of
from app.forecast.half_network import at_half
from app.forecast.plans import sigmas, skews
from app.forecast.rows.row import Row
from app.forecast.search import Found
from core.cost.run_cost import RunCost
from core.money.cost import billed_hours
from core.scenario import Scenario
from core.search import ranking
from pricing.book.offers import is_quote

QUANTILES = ("p10", "p50", "p90")


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """The rows of an answer with their costs."""

    points: dict[str, NDArray[Any]]  # columns by name, as in Answer.points
    costs: Costs
    corrections: Corrections


def priced(scenario: Scenario, rows: Sequence[Row], found: Found) -> Priced:
    """The columns of these rows by name, and their costs."""
    columns = _columns(rows, found)
    columns["half_network"] = half = at_half(found, rows) if rows else np.zeros(0)
    columns["sigma"] = sigmas(rows, found, half) if rows else np.zeros(0)
    columns["skew"] = skews(rows, found) if rows else np.zeros(0)
    leads = corrections(found, rows)
    costs = costs_of(scenario, rows, columns | {"correction": leads.factor})
    columns["usd_per_gpu_hour"] = costs.basis.run.usd_per_hour / (
        columns["num_nodes"] * columns["gpus_per_node"]
    )
    return Priced(
        points=columns | _cost_columns(costs.cost, len(rows)), costs=costs, corrections=leads
    )


def _columns(rows: Sequence[Row], found: Found) -> dict[str, NDArray[Any]]:
    best = found.best
    offers, supplies = [r.machine.offer for r in rows], [r.machine.supply for r in rows]
    at = np.array([r.best_row for r in rows], dtype=np.int64)
    # Offers share layouts: each layout text is built once.
    layouts = found.layouts_of(at.tolist())
    texts = {n: fmt.layout_short(layouts[n]) for n in set(at.tolist())}
    memory = np.sum(list(best.memory.values()), axis=0)

    def numbers(values: list[Any], kind: Any = float) -> NDArray[Any]:
        return np.array(values, dtype=kind)

    columns = {
        "id": numbers([r.id for r in rows], object),
        "wall_clock_hours": numbers([r.run_hours for r in rows]),
        "startup_hours": numbers([s.startup_hours for s in supplies]),
        "least_billed_hours": numbers([s.least_billed_hours for s in supplies]),
        "num_gpus": numbers([r.num_gpus for r in rows], np.int64),
        "num_nodes": numbers([r.num_nodes for r in rows], np.int64),
        "gpus_per_node": numbers([o.gpu_count for o in offers], np.int64),
        "tokens_per_s": numbers([r.tokens_per_s for r in rows]),
        "stack": numbers([r.stack for r in rows], object),
        "accelerator": numbers([o.accelerator for o in offers], object),
        "provider": numbers([o.provider for o in offers], object),
        "instance_type": numbers([o.instance_type for o in offers], object),
        "region": numbers([o.region for o in offers], object),
        "purchase": numbers([o.purchase for o in offers], object),
        "mfu": np.asarray(best.step.mfu, dtype=float)[at],
        "peak_memory_bytes": np.asarray(memory, dtype=float)[at],
        "memory_capacity_bytes": numbers([r.machine.accelerator.memory_bytes for r in rows]),
        "probability_oom": np.asarray(best.probability_oom, dtype=float)[at],
        "layout": numbers([texts[n] for n in at.tolist()], object),
        "observed_at": numbers([o.observed_at for o in offers], object),
        "is_quote": numbers([is_quote(o) for o in offers], bool),
    }
    columns["billed_hours"] = np.asarray(
        billed_hours(
            run_hours=columns["wall_clock_hours"],
            startup_hours=columns["startup_hours"],
            least_hours=columns["least_billed_hours"],
        )
    )
    rented = columns["num_nodes"] * columns["gpus_per_node"]
    columns["gpu_hours"] = columns["billed_hours"] * rented
    return columns


def _cost_columns(cost: RunCost, count: int) -> dict[str, NDArray[Any]]:
    """The columns of the costs. A chance is 1 without the limit that it is of."""

    def chance(values: Any) -> NDArray[np.float64]:
        column = np.broadcast_to(np.asarray(values, dtype=float), (count,))
        return np.where(np.isnan(column), 1.0, column)

    columns = {
        "usd": cost.failure_free.p50,
        "hours": cost.failure_free_hours.p50,
        "expected_hours": cost.hours.mean,
        "expected_usd": cost.total.mean,
        "paid_usd": cost.paid.mean,
        **{f"total_hours_{q}": getattr(cost.hours, q) for q in QUANTILES},
        **{f"total_usd_{q}": getattr(cost.total, q) for q in QUANTILES},
        **{f"paid_usd_{q}": getattr(cost.paid, q) for q in QUANTILES},
        "goodput": cost.goodput,
    }
    return {name: np.broadcast_to(np.asarray(x), (count,)) for name, x in columns.items()} | {
        "chance_on_time": chance(cost.chance_on_time),
        "chance_in_budget": chance(cost.chance_in_budget),
    }


def within_limits(
    scenario: Scenario, points: Mapping[str, NDArray[Any]]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows end by the deadline as surely as asked, and which cost at most the budget: the
    mean of what is paid."""
    sure = None if scenario.deadline_days is None else scenario.deadline_confidence
    return (
        ranking.surely(points["chance_on_time"], sure),
        ranking.within(points["paid_usd"], scenario.budget_usd),
    )

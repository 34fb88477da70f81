"""Every plan as columns, for ranking, charts, tables and downloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.document import format as fmt
from app.forecast.expected import total
from app.forecast.half_network import at_half
from app.forecast.plans import sigmas, skews
from app.forecast.price_book import price_day
from app.forecast.rows.row import Row
from app.forecast.search import Found
from core.scenario import Scenario
from core.search import ranking
from core.search.plan import Total
from pricing.book.offers import is_quote


def points_of(scenario: Scenario, rows: Sequence[Row], found: Found) -> dict[str, NDArray[Any]]:
    """The columns of these rows by name, totals among them."""
    best = found.best
    offers = [r.machine.offer for r in rows]
    at = np.array([r.best_row for r in rows], dtype=np.int64)
    # Offers share layouts: each layout text is built once.
    layouts = found.layouts_of(at.tolist())
    texts = {n: fmt.layout_short(layouts[n]) for n in set(at.tolist())}
    memory = np.sum(list(best.memory.values()), axis=0)
    columns = {
        "id": np.array([r.id for r in rows], dtype=object),
        "usd": np.array([r.usd for r in rows], dtype=float),
        "hours": np.array([r.hours for r in rows], dtype=float),
        "wall_clock_hours": np.array([r.run_hours for r in rows], dtype=float),
        "startup_hours": np.array([r.machine.supply.startup_hours for r in rows], dtype=float),
        "billed_hours": np.array([r.billed_hours for r in rows], dtype=float),
        "least_billed_hours": np.array(
            [r.machine.supply.least_billed_hours for r in rows], dtype=float
        ),
        "instances_usd": np.array([r.instances_usd for r in rows], dtype=float),
        "num_gpus": np.array([r.num_gpus for r in rows], dtype=np.int64),
        "num_nodes": np.array([r.num_nodes for r in rows], dtype=np.int64),
        "gpus_per_node": np.array([o.gpu_count for o in offers], dtype=np.int64),
        "tokens_per_s": np.array([r.tokens_per_s for r in rows], dtype=float),
        "stack": np.array([r.stack for r in rows], dtype=object),
        "accelerator": np.array([o.accelerator for o in offers], dtype=object),
        "provider": np.array([o.provider for o in offers], dtype=object),
        "instance_type": np.array([o.instance_type for o in offers], dtype=object),
        "region": np.array([o.region for o in offers], dtype=object),
        "purchase": np.array([o.purchase for o in offers], dtype=object),
        "gpu_hours": np.array([r.gpu_hours for r in rows], dtype=float),
        "mfu": np.asarray(best.step.mfu, dtype=float)[at],
        "peak_memory_bytes": np.asarray(memory, dtype=float)[at],
        "memory_capacity_bytes": np.array(
            [r.machine.accelerator.memory_bytes for r in rows], dtype=float
        ),
        "probability_oom": np.asarray(best.probability_oom, dtype=float)[at],
        "layout": np.array([texts[n] for n in at.tolist()], dtype=object),
        "observed_at": np.array([o.observed_at for o in offers], dtype=object),
        "is_quote": np.array([is_quote(o) for o in offers], dtype=bool),
    }
    if not rows:
        return columns | {
            name: np.zeros(0)
            for name in (*total.NAMES, "other_usd", "half_network", "sigma", "skew", "price_sigma")
        }
    columns["other_usd"] = np.array([r.other_usd for r in rows], dtype=float)
    columns["half_network"] = half = at_half(found, rows)
    columns["sigma"], columns["skew"] = sigmas(rows, found, half), skews(rows, found)
    columns["price_sigma"] = total.price_sigmas(offers, price_day(scenario))
    return columns | total.totals(scenario, columns, num_steps=rows[0].num_steps)


def within_limits(
    scenario: Scenario, points: Mapping[str, NDArray[Any]]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows end by the deadline as surely as asked, and cost at most the budget as
    expected."""
    sure = None if scenario.deadline_days is None else scenario.deadline_confidence
    return (
        ranking.surely(points["chance_on_time"], sure),
        ranking.within(points["expected_usd"], scenario.budget_usd),
    )


def total_at(scenario: Scenario, points: Mapping[str, NDArray[Any]], row: int) -> Total:
    """The totals of one row of these columns."""
    chance = None if scenario.deadline_days is None else float(points["chance_on_time"][row])
    usd = total.at(points, "usd", row)
    return Total(
        hours=total.at(points, "hours", row),
        usd=None if isnan(usd.expected) else usd,
        chance_on_time=chance,
    )

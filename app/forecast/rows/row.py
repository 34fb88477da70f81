"""One machine at one GPU count with its best layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.forecast.search import Found
from core.money import cost as money_cost
from core.search.job import Machine
from core.search.plan import ChosenCorrection
from core.units import HOUR_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One machine at one GPU count with its best layout (row `best_row` of `Best`)."""

    id: str
    machine: Machine
    best_row: int
    num_gpus: int
    num_nodes: int
    num_steps: float
    run_hours: float  # steady state
    tokens_per_s: float
    stack: str
    rank: int = 0
    meets_deadline: bool = True
    meets_budget: bool = True
    frontier: bool = False
    against: tuple[str, ...] = ()  # stable words of app/forecast/standing.py
    no_launch: str = ""  # as in Plan
    chosen_correction: ChosenCorrection | None = None


def rows_of(pairs: Sequence[tuple[Machine, int]], found: Found, *, num_steps: float) -> list[Row]:
    """Machines, each with its row of the search."""
    at = np.array([n for _, n in pairs], dtype=np.intp)
    best, offers = found.best, [m.offer for m, _ in pairs]
    run = num_steps * np.asarray(best.step.step_s, dtype=float)[at] / HOUR_S
    counts = np.asarray(best.layouts.num_gpus, dtype=float)[at]
    of_instance = np.array([o.gpu_count for o in offers], dtype=float)
    nodes = money_cost.num_instances(num_gpus=counts, gpus_per_instance=of_instance)
    stacks = [v.stack for v in found.variants]
    numbers = (best.asked[at], counts, nodes, run, np.asarray(best.step.tokens_per_s)[at])
    rows = zip(pairs, *(np.asarray(x).tolist() for x in numbers), strict=True)
    return [
        Row(
            id="~".join(
                (m.offer.provider, m.offer.instance_type, m.offer.accelerator, m.offer.region,
                 m.offer.purchase, str(m.unit_gpus), str(int(count)))
            ),
            machine=m, best_row=n, num_gpus=int(count), num_nodes=int(node), num_steps=num_steps,
            run_hours=hours, tokens_per_s=speed, stack=stacks[question],
        )
        for (m, n), question, count, node, hours, speed in rows
    ]  # fmt: skip

"""One machine at one GPU count with its best layout, priced."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.forecast.search import Found
from core.money import cost as money_cost
from core.money import other_costs
from core.numeric import as_float
from core.search.job import Machine
from core.search.plan import ChosenCorrection, Total
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
    billed_hours: float
    gpu_hours: float
    usd: float  # total of everything that is priced; NaN: no price
    tokens_per_s: float
    stack: str
    instances_usd: float = math.nan
    total: Total | None = None
    rank: int = 0
    meets_deadline: bool = True
    meets_budget: bool = True
    frontier: bool = False
    against: tuple[str, ...] = ()  # stable words of app/forecast/standing.py
    no_launch: str = ""  # as in Plan
    chosen_correction: ChosenCorrection | None = None

    @property
    def hours(self) -> float:
        """Start-up and run."""
        return self.machine.supply.startup_hours + self.run_hours

    @property
    def other_usd(self) -> float:
        """Storage and traffic less credits, which may be more than the run costs."""
        terms = self.machine.terms
        return terms.usd_per_hour * self.hours + terms.usd - terms.credit_usd


def rows_of(pairs: Sequence[tuple[Machine, int]], found: Found, *, num_steps: float) -> list[Row]:
    """Machines, each with its row of the search, priced."""
    at = np.array([n for _, n in pairs], dtype=np.intp)
    best, offers = found.best, [m.offer for m, _ in pairs]
    run = num_steps * np.asarray(best.step.step_s, dtype=float)[at] / HOUR_S
    startup = np.array([m.supply.startup_hours for m, _ in pairs], dtype=float)
    billed = money_cost.billed_hours(
        run_hours=run,
        startup_hours=startup,
        least_hours=np.array([m.supply.least_billed_hours for m, _ in pairs]),
    )
    counts = np.asarray(best.layouts.num_gpus, dtype=float)[at]
    of_instance = np.array([o.gpu_count for o in offers], dtype=float)
    nodes = money_cost.num_instances(num_gpus=counts, gpus_per_instance=of_instance)
    prices = [math.nan if o.usd_per_hour is None else o.usd_per_hour for o in offers]
    instances_usd = money_cost.run_usd(
        wall_clock_hours=billed,
        num_instances=nodes,
        usd_per_instance_hour=np.array(prices, dtype=float),
    )
    paid = money_cost.gpu_hours(
        wall_clock_hours=billed, num_instances=nodes, gpus_per_instance=of_instance
    )
    usd = other_costs.run_total_usd(
        instances_usd=instances_usd,
        storage_usd_per_hour=np.array([m.terms.usd_per_hour for m, _ in pairs], dtype=float),
        hours=startup + run,
        egress_usd=np.array([m.terms.usd for m, _ in pairs], dtype=float),
        credit_usd=np.array([m.terms.credit_usd for m, _ in pairs], dtype=float),
    )
    numbers = (counts, nodes, run, billed, paid, instances_usd, usd, best.step.tokens_per_s[at])
    stacks = [v.stack for v in found.variants]
    asked = np.asarray(best.asked)[at].tolist()
    rows = zip(pairs, asked, *(np.asarray(x).tolist() for x in numbers), strict=True)
    return [
        Row(
            id="~".join(
                (m.offer.provider, m.offer.instance_type, m.offer.accelerator, m.offer.region,
                 m.offer.purchase, str(m.unit_gpus), str(int(count)))
            ),
            machine=m, best_row=n, num_gpus=int(count), num_nodes=int(node), num_steps=num_steps,
            run_hours=hours, billed_hours=bill, gpu_hours=gpu_hours, instances_usd=instances,
            usd=total, tokens_per_s=speed, stack=stacks[question],
        )
        for (m, n), question, count, node, hours, bill, gpu_hours, instances, total, speed in rows
    ]  # fmt: skip


def _total_usd(m: Machine, instances_usd: float, hours: float) -> float:
    """Dollars of instances with storage, traffic and credits of the price book; NaN stays NaN."""
    return as_float(
        other_costs.run_total_usd(
            instances_usd=instances_usd,
            storage_usd_per_hour=m.terms.usd_per_hour,
            hours=hours,
            egress_usd=m.terms.usd,
            credit_usd=m.terms.credit_usd,
        )
    )


def usd_at(row: Row, stretch: float) -> float:
    """Dollars of the run if its training takes `stretch` times as long."""
    m, hours = row.machine, row.run_hours * stretch
    start, least = m.supply.startup_hours, m.supply.least_billed_hours
    billed = money_cost.billed_hours(run_hours=hours, startup_hours=start, least_hours=least)
    instances_usd = money_cost.run_usd(
        wall_clock_hours=billed,
        num_instances=row.num_nodes,
        usd_per_instance_hour=math.nan if m.offer.usd_per_hour is None else m.offer.usd_per_hour,
    )
    return _total_usd(m, as_float(instances_usd), start + hours)

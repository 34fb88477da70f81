"""One answer for a programme: every stage on one set of machines, or each on its own."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.forecast import price_book, standing
from app.forecast.choosing import launchable
from app.forecast.points import within_limits
from app.forecast.search_memory import SearchMemory
from app.programme.contract import Contract, contract_of, cost_of, legs_of
from app.programme.search import Searched, shared_rows, stage_searched
from app.programme.stages import StageRun, stage_runs
from core.errors import ScenarioError, shown
from core.scenario import Scenario
from core.search import ranking, recommended

TOP = 10
# Dollars that an hour less is worth, over the cheapest programme's dollars an hour: the choices
# between cost and time that are tried where stages may move.
WORTHS = (0.0, *np.geomspace(0.02, 50.0, 24).tolist())


@dataclass(frozen=True, slots=True, kw_only=True)
class Programme:
    """The answer to a scenario with stages."""

    runs: tuple[StageRun, ...]
    contracts: tuple[Contract, ...]  # ranked, the recommended one first; () if nothing fits
    num_contracts: int
    may_move: bool
    failed: tuple[str, ...] = ()  # gates that the first contract does not pass
    nothing_fits: str = ""

    @property
    def best(self) -> Contract:
        """The recommended contract."""
        return self.contracts[0]


def programme_of(
    scenario: Scenario, *, top: int = TOP, memory: SearchMemory | None = None
) -> Programme:
    """The stages of a resolved scenario on every offer, and what all of them cost."""
    runs = stage_runs(scenario)
    flops = sum(r.flops for r in runs)
    stages = [stage_searched(r, flops=flops, memory=memory) for r in runs]
    may_move = scenario.stages_may_move and len(stages) > 1
    for stage in stages:
        if not stage.rows:
            return Programme(
                runs=runs, contracts=(), num_contracts=0, may_move=may_move,
                nothing_fits=_fits_nowhere(stage),
            )  # fmt: skip
    if may_move:
        return _moving(scenario, runs, stages)
    shared = shared_rows(stages)
    if not shared[0].rows:
        return Programme(
            runs=runs, contracts=(), num_contracts=0, may_move=False,
            nothing_fits=_no_shared(stages),
        )  # fmt: skip
    return _on_one_set(scenario, runs, shared, top)


def contract_or_error(scenario: Scenario) -> Contract:
    """The recommended contract of a resolved scenario; ScenarioError if there is none."""
    found = programme_of(scenario)
    if not found.contracts:
        raise ScenarioError(found.nothing_fits)
    return found.best


def _on_one_set(
    scenario: Scenario, runs: tuple[StageRun, ...], stages: Sequence[Searched], top: int
) -> Programme:
    """Every offer and count that takes all stages, ranked as single runs are."""
    legs = legs_of(stages)
    totals = cost_of(scenario, stages, legs)
    rows = stages[0].rows
    day = price_book.price_day(scenario)
    against = [standing.against(scenario, r, day) for r in rows]
    points = {
        "paid_usd": np.asarray(totals.paid.mean),
        "expected_hours": np.asarray(totals.hours.mean),
        "chance_on_time": np.nan_to_num(totals.chance_on_time * np.ones(len(rows)), nan=1.0),
        "probability_oom": np.max([s.probability_oom for s in stages], axis=0),
    }
    refused = [
        launchable.refusals(s.found, [(r.best_row, r.machine) for r in s.rows]) for s in stages
    ]
    no_launch = [next(filter(None, each), "") for each in zip(*refused, strict=True)]
    gates = standing.gates(scenario, points, against, no_launch)
    usd, hours = points["paid_usd"], points["expected_hours"]
    on_time, in_budget = within_limits(scenario, points)
    ranked = ranking.order(
        usd=usd, hours=hours, meets_limits=on_time & in_budget, by=scenario.rank_by,
        faults=np.array([len(reasons) for reasons in against], dtype=np.intp),
    )  # fmt: skip
    first = recommended.recommended(
        usd=usd, hours=hours, gates=gates, by=scenario.rank_by,
        complexity=np.max([s.complexity for s in stages], axis=0),
    )  # fmt: skip
    if first is not None:
        ranked = ranking.with_first(ranked, first.row)
    contracts = tuple(
        replace(contract_of(scenario, stages, legs, n), against=against[n])
        for n in ranked[:top].tolist()
    )
    best = int(ranked[0])
    return Programme(
        runs=runs,
        contracts=contracts,
        num_contracts=len(rows),
        may_move=False,
        failed=tuple(name for name, shortfall in gates.items() if shortfall[best] > 0),
    )


def _moving(
    scenario: Scenario, runs: tuple[StageRun, ...], stages: Sequence[Searched]
) -> Programme:
    """Each stage on the machines that suit it: of several worths of an hour the cheapest programme
    that ends in time, else the surest."""
    day = price_book.price_day(scenario)
    alone = [cost_of(scenario, [s], legs_of([s])) for s in stages]
    passing = [_passing(scenario, s, day) for s in stages]
    usd = [np.nan_to_num(np.asarray(t.paid.mean), nan=np.inf) for t in alone]
    hours = [np.asarray(t.hours.mean) for t in alone]
    cheapest = [np.where(ok, u, np.inf).argmin() for ok, u in zip(passing, usd, strict=True)]
    rate = sum(u[n] for u, n in zip(usd, cheapest, strict=True)) / sum(
        h[n] for h, n in zip(hours, cheapest, strict=True)
    )
    if not math.isfinite(rate):
        rate = 1.0
        usd = [np.where(np.isfinite(u), u, 0.0) for u in usd]
    tried: dict[tuple[int, ...], Contract] = {}
    for worth in WORTHS:
        chosen = tuple(
            int(np.where(ok, u + worth * rate * h, np.inf).argmin())
            for ok, u, h in zip(passing, usd, hours, strict=True)
        )
        if chosen not in tried:
            taken = [
                s.take(np.array([n], dtype=np.intp)) for s, n in zip(stages, chosen, strict=True)
            ]
            legs = legs_of(taken, moved=True)
            tried[chosen] = contract_of(scenario, taken, legs, 0)
    sure = scenario.deadline_confidence if scenario.deadline_days is not None else 0.0
    contracts = list(tried.values())
    in_time = [c for c in contracts if c.chance_on_time >= sure]
    best = (
        min(in_time, key=lambda c: c.cost.hours.mean if scenario.rank_by == "time" else c.usd)
        if in_time
        else max(contracts, key=lambda c: c.chance_on_time)
    )
    return Programme(
        runs=runs, contracts=(best,), num_contracts=len(contracts), may_move=True,
        failed=() if in_time else ("deadline",),
    )  # fmt: skip


def _passing(scenario: Scenario, stage: Searched, day: dt.date) -> NDArray[np.bool_]:
    """Rows of one stage that pass what does not depend on the other stages; all, if none does."""
    against = [standing.against(scenario, r, day) for r in stage.rows]
    faults = np.array([bool(reasons) for reasons in against])
    ok = ~faults & (stage.probability_oom <= recommended.MOST_PROBABILITY_OOM)
    return ok if ok.any() else np.ones(len(stage.rows), dtype=bool)


def _fits_nowhere(stage: Searched) -> str:
    return f"Stage {shown(stage.run.name)} fits nowhere. {stage.nothing_fits}"


def _no_shared(stages: Sequence[Searched]) -> str:
    """Which stage has the fewest machines, where no machine takes all."""
    fewest = min(stages, key=lambda s: len(s.rows))
    return (
        f"No machines take every stage: {shown(fewest.run.name)} fits the fewest, "
        f"{len(fewest.rows):,} offers and counts. Let stages rent machines of their own "
        "(stages_may_move), give more GPU counts, or change that stage."
    )

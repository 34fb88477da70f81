"""A programme on its machines: each stage with its time and cost, and the whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.programme.search import Searched
from app.programme.stages import StageRun
from app.programme.turned import most_main_tokens
from core.cost.run_cost import RunCost
from core.cost.uncertain import Uncertain
from core.explain.explain import record_of
from core.machine.offer import Offer
from core.numeric import Numeric, as_float
from core.programme.total import Leg, boundaries, whole
from core.scenario import Scenario
from core.search.plan import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePlan:
    """One stage of a contract."""

    run: StageRun
    id: str  # of its plan: offer and count
    offer: Offer
    num_gpus: int
    layout: Layout
    stack: str
    precision: str
    tokens_per_s: float
    mfu: float
    probability_oom: float
    steady_hours: float  # of all its runs, had nothing failed
    before_hours: float  # checkpoint read or converted, idle gap
    expected_hours: float  # with failures and what comes before
    gpu_hours: float  # rented, as expected
    usd: float  # as expected; NaN: no price
    end: Uncertain  # hours from the request of the machines
    keeps_layout: bool  # that of the stage whose weights it goes on with: nothing is re-sharded
    without: tuple[float, float]  # change of expected dollars and hours if it is dropped
    halved: tuple[float, float]  # if its tokens are halved


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """All stages on one set of machines, or each on its own."""

    id: str  # of the offer and count; of each stage, where they differ
    stages: tuple[StagePlan, ...]
    startup_hours: float
    cost: RunCost
    against: tuple[str, ...] = ()
    most_main_tokens: float | None = None  # within budget and deadline; None: neither is given

    @property
    def usd(self) -> float:
        """Mean dollars that are paid; infinite without a price."""
        return as_float(self.cost.paid.mean) if self.cost.has_price else math.inf

    @property
    def paid(self) -> Uncertain | None:
        """Dollars that are signed for; None: no price."""
        return self.cost.paid if self.cost.has_price else None

    @property
    def chance_on_time(self) -> float:
        """The chance of the deadline; 1 without one."""
        chance = as_float(self.cost.chance_on_time)
        return 1.0 if math.isnan(chance) else chance

    @property
    def gpu_hours(self) -> float:
        """Rented GPU-hours of all stages, as expected, without start-up."""
        return sum(s.gpu_hours for s in self.stages)

    @property
    def is_one_set(self) -> bool:
        """Whether all stages are on the same machines."""
        return (
            len({(s.offer.provider, s.offer.instance_type, s.num_gpus) for s in self.stages}) == 1
        )


def legs_of(stages: Sequence[Searched], *, moved: bool = False) -> list[Leg]:
    """The stages, each with what comes before it: an idle gap, and the checkpoint that it goes on
    with. Where a layout differs, or the machines do, the checkpoint is read, converted and
    written."""
    found = []
    source: Searched | None = None
    for stage in stages:
        before: Numeric = stage.run.stage.gap_hours
        if source is not None and not stage.run.stage.is_apart:
            converts = 1.0 if moved else 1.0 - keeps_layout(source, stage)
            before = np.add(before, stage.read_hours + converts * source.write_hours)
        found.append(replace(stage.leg, before_hours=before))
        if not stage.run.stage.is_apart:
            source = stage
    return found


def keeps_layout(source: Searched, stage: Searched) -> NDArray[np.float64]:
    """Where every weight of a stage lies as in the stage before, in the same stack."""
    same = (source.placed == stage.placed).all(axis=1)
    return np.asarray(same & (source.points["stack"] == stage.points["stack"]), dtype=float)


def cost_of(scenario: Scenario, stages: Sequence[Searched], legs: Sequence[Leg]) -> RunCost:
    """The cost of the whole on each row, on the machines of the first stage."""
    days = scenario.deadline_days
    return whole(
        legs,
        replace(
            stages[0].terms,
            deadline_hours=None if days is None else days * 24.0,
            budget_usd=scenario.budget_usd,
        ),
    )


def contract_of(
    scenario: Scenario, stages: Sequence[Searched], legs: Sequence[Leg], row: int
) -> Contract:
    """Everything that is shown of one row. Where stages have machines of their own, dollars and
    start-ups add up, and their intervals as if all were wrong in the same direction."""
    at = np.array([row], dtype=np.intp)
    one = [s.take(at) for s in stages]
    mine = [leg.take(at) for leg in legs]
    is_one_set = len({s.ids[0] for s in one}) == 1
    starts = [as_float(s.points["startup_hours"]) for s in one]
    if not is_one_set:
        late = [0.0, *starts[1:]]
        mine = [
            replace(leg, before_hours=np.add(leg.before_hours, more))
            for leg, more in zip(mine, late, strict=True)
        ]
    ends = boundaries(mine, startup_hours=starts[0])
    total = _total(scenario, one, mine, is_one_set=is_one_set)
    plans = []
    for n, (stage, leg, end) in enumerate(zip(one, mine, ends, strict=True)):
        source = next(
            (s for s in reversed(one[:n]) if not s.run.stage.is_apart), None
        )  # the weights it goes on with
        row_, points = stage.rows[0], stage.points
        rate = as_float(stage.terms.usd_per_hour)
        rate *= math.exp(as_float(stage.terms.price_sigma) ** 2 / 2)
        hours = as_float(leg.expected_hours)
        paid = as_float(leg.expected_paid_hours)
        plans.append(
            StagePlan(
                run=stage.run,
                id=stage.ids[0],
                offer=row_.machine.offer,
                num_gpus=row_.num_gpus,
                layout=record_of(stage.found.best.layouts, row_.best_row),
                stack=row_.stack,
                precision=stage.found.variant_of(row_.best_row).precision,
                tokens_per_s=row_.tokens_per_s,
                mfu=as_float(points["mfu"]),
                probability_oom=float(stage.probability_oom[0]),
                steady_hours=float(stage.steady_hours[0]),
                before_hours=as_float(leg.before_hours),
                expected_hours=hours,
                gpu_hours=paid * row_.num_nodes * row_.machine.offer.gpu_count,
                usd=paid * rate,
                end=end.row(0),
                keeps_layout=source is not None
                and not stage.run.stage.is_apart
                and is_one_set
                and bool(keeps_layout(source, stage)[0]),
                without=_change(total, scenario, one, mine, n, 0.0, is_one_set=is_one_set),
                halved=_change(total, scenario, one, mine, n, 0.5, is_one_set=is_one_set),
            )
        )
    return Contract(
        id=one[0].ids[0] if is_one_set else " > ".join(s.ids[0] for s in one),
        stages=tuple(plans),
        startup_hours=starts[0],
        cost=total.row(0),
        most_main_tokens=most_main_tokens(
            scenario,
            [s.run for s in one],
            lambda factors: _at_tokens(scenario, one, mine, factors, is_one_set=is_one_set),
        ),
    )


def _total(
    scenario: Scenario, stages: Sequence[Searched], legs: Sequence[Leg], *, is_one_set: bool
) -> RunCost:
    """The whole of one contract."""
    found = cost_of(scenario, stages, legs)
    if is_one_set:
        return found
    each = [cost_of(scenario, [s], [leg]) for s, leg in zip(stages, legs, strict=True)]
    return replace(
        found,
        total=_sum([cost.total for cost in each]),
        paid=_sum([cost.paid for cost in each]),
    )


def _at_tokens(
    scenario: Scenario, stages: Sequence[Searched], legs: Sequence[Leg],
    factors: Sequence[float], *, is_one_set: bool,
) -> RunCost:  # fmt: skip
    """The whole with this many times the tokens of each stage."""
    return _total(
        scenario,
        [replace(s, steady_hours=s.steady_hours * f) for s, f in zip(stages, factors, strict=True)],
        [leg.times(f) for leg, f in zip(legs, factors, strict=True)],
        is_one_set=is_one_set,
    )


def _change(
    total: RunCost, scenario: Scenario, stages: Sequence[Searched], legs: Sequence[Leg], n: int,
    factor: float, *, is_one_set: bool,
) -> tuple[float, float]:  # fmt: skip
    """Change of expected dollars and hours with this many times the tokens of stage n."""
    if not factor and len(legs) == 1:
        return (math.nan, math.nan)
    kept = [k for k in range(len(legs)) if k != n or factor]
    changed = _at_tokens(
        scenario, [stages[k] for k in kept], [legs[k] for k in kept],
        [factor if k == n else 1.0 for k in kept], is_one_set=is_one_set,
    )  # fmt: skip
    return (
        as_float(changed.total.mean) - as_float(total.total.mean),
        as_float(changed.hours.mean) - as_float(total.hours.mean),
    )


def _sum(parts: Sequence[Uncertain]) -> Uncertain:
    """Add up figures as if all were wrong in the same direction."""
    return Uncertain(
        **{
            name: np.asarray(sum(np.asarray(getattr(part, name)) for part in parts))
            for name in ("mean", "p10", "p50", "p90")
        }
    )

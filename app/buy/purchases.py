"""Every way to buy the machines of one plan, side by side: time, dollars, chance of being late."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from app.buy.kept import Purchase, kept_purchases
from app.buy.market import Markets, markets_of
from app.buy.prices import priced
from app.buy.simulate import Market, SpotRun, spot_run
from app.buy.spot import spot_purchases
from app.forecast.failure_inputs import Input
from app.risk.risk import Risk, risk_of
from core.failures import spot as failures_spot
from core.failures.availability import Trace, TraceStatistics
from core.money import purchase
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Plan
from core.units import DAY_S, HOUR_S

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """Preemptions per day above which a useful hour on spot costs more than on demand. [closed
    form of core/failures/spot.py] 0: spot never pays; infinite: it always does."""

    job_per_day: float
    instance_per_day: float
    spot_usd: float  # cost of the run without preemptions or failures
    on_demand_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """When a reservation pays."""

    kind: str
    break_even_utilisation: float  # above 1: never
    term_usd: float  # cost of the whole term


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """Every spot policy on one market."""

    market: Market
    ways: tuple[Purchase, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchases:
    """All ways to buy one plan."""

    plan: Plan
    ways: tuple[Purchase, ...]  # in a fixed order; spot on the market in use
    markets: tuple[Repeated, ...]  # low, used and high, or the given one
    exponential: Repeated | None  # spot alone with exponential uptimes of the same mean
    trace: TraceStatistics | None
    trace_hours: float  # length of the given trace; 0: none
    break_even: BreakEven | None
    reservations: tuple[Reservation, ...]
    inputs: tuple[Input, ...]

    @property
    def used(self) -> Repeated:
        """Spot on the market in use: that of the trace if one is given."""
        return next(m for m in self.markets if m.market.name in ("used", "trace"))

    def named(self, name: str) -> Purchase:
        """The way with this name; every name has one."""
        return next(w for w in self.ways if w.name == name)

    def grouped(self, of: Callable[[Purchase], T]) -> dict[T, list[Purchase]]:
        """The ways by what `of` gives, in their order, without those for which that is empty."""
        groups: dict[T, list[Purchase]] = {}
        for way in self.ways:
            if key := of(way):
                groups.setdefault(key, []).append(way)
        return groups


def purchases_of(scenario: Scenario, plan: Plan, trace: Trace | None = None) -> Purchases:
    """Every kind and policy for one plan; `trace` replaces the assumptions about spot capacity."""
    prices = {p.kind: p for p in priced(scenario, plan)}
    without_bursts = scenario.model_copy(update={"weibull_shape": None})
    kept = {
        kind: None if p.plan is None else risk_of(without_bursts, p.plan)
        for kind, p in prices.items()
        if kind != "spot"
    }
    of_spot = prices["spot"]
    markets = markets_of(scenario, of_spot.plan or plan, trace)
    run = spot_run(scenario, of_spot, prices["on_demand"].plan)
    on_spot = {m.name: spot_purchases(run, of_spot, m) for m in markets.every}
    ways: list[Purchase] = []
    for kind, price in prices.items():
        if kind == "spot":
            ways += on_spot[markets.used.name]
        else:
            ways += kept_purchases(scenario, price, kept[kind])
    exponential = None
    if (smooth := markets.exponential) is not None:
        only = spot_purchases(run, of_spot, smooth, ("spot_only",))
        exponential = Repeated(market=smooth, ways=only)
    return Purchases(
        plan=plan,
        ways=tuple(ways),
        markets=tuple(Repeated(market=m, ways=on_spot[m.name]) for m in markets.every),
        exponential=exponential,
        trace=markets.statistics,
        trace_hours=0.0 if trace is None else trace.length_s / HOUR_S,
        break_even=None if run is None else _break_even(run, markets),
        reservations=_reservations(kept),
        # Failures, checkpoints and restarts are those of every way.
        inputs=(*markets.inputs, *next((k.inputs for k in kept.values() if k), ())),
    )


def _break_even(run: SpotRun, markets: Markets) -> BreakEven | None:
    """The break-even from the run's cost without preemptions, so a faster machine is cheaper."""
    if not run.spot_usd or not run.on_demand_usd:
        return None
    per_day = DAY_S * as_float(
        failures_spot.break_even_preemptions_per_s(
            spot_usd_per_hour=run.spot_usd,
            on_demand_usd_per_hour=run.on_demand_usd,
            checkpoint_s=run.job.checkpoint_s,
            restart_s=run.job.reload_s + run.job.upload_s,
        )
    )
    hours = run.plan.billed_hours
    return BreakEven(
        job_per_day=per_day,
        instance_per_day=per_day / markets.fleet_factor,
        spot_usd=run.spot_usd * hours,
        on_demand_usd=run.on_demand_usd * hours,
    )


def _reservations(kept: Mapping[str, Risk | None]) -> tuple[Reservation, ...]:
    """Reservations compared with on demand for this run."""
    base = kept["on_demand"]
    found = []
    for kind, term_hours in purchase.TERM_HOURS.items():
        one = kept[kind]
        if base is None or one is None or base.plan.usd is None or one.plan.usd is None:
            continue
        found.append(
            Reservation(
                kind=kind,
                break_even_utilisation=as_float(
                    purchase.break_even_utilisation(
                        reserved_usd=one.plan.usd.p50, on_demand_usd=base.plan.usd.p50
                    )
                ),
                term_usd=(one.plan.usd_per_hour or 0.0) * term_hours,
            )
        )
    return tuple(found)

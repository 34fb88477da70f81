"""Every way to buy the machines of one plan, side by side: time, dollars, chance of being late."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.buy.kept import Kept, Way, block_way, kept_of, lacking, on_demand_way, reserved_ways
from app.buy.market import Markets, markets_of
from app.buy.prices import Priced, priced
from app.buy.simulate import Market, SpotRun, spot_run
from app.buy.spot import spot_ways
from app.forecast.failure_inputs import Input
from core.failures import spot as failures_spot
from core.failures.availability import Trace, TraceStatistics
from core.money import purchase
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Plan
from core.units import DAY_S, HOUR_S

RESERVED = ("reserved_1y", "reserved_3y")


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
    ways: tuple[Way, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchases:
    """All ways to buy one plan."""

    plan: Plan
    ways: tuple[Way, ...]  # in a fixed order; spot on the market in use
    markets: tuple[Repeated, ...]  # low, used and high, or the given one
    exponential: Repeated | None  # spot alone with exponential uptimes of the same mean
    trace: TraceStatistics | None
    trace_hours: float  # length of the given trace; 0: none
    break_even: BreakEven | None
    reservations: tuple[Reservation, ...]
    inputs: tuple[Input, ...]


def purchases_of(scenario: Scenario, plan: Plan, trace: Trace | None = None) -> Purchases:
    """Every kind and policy for one plan; `trace` replaces the assumptions about spot capacity."""
    prices = {p.kind: p for p in priced(scenario, plan)}
    kept = {kind: kept_of(scenario, p) for kind, p in prices.items() if kind != "spot"}
    of_spot = prices["spot"]
    markets = markets_of(scenario, of_spot.plan or plan, trace)
    run = spot_run(scenario, of_spot, prices["on_demand"].plan)
    used = Repeated(market=markets.used, ways=spot_ways(run, of_spot, markets.used))
    return Purchases(
        plan=plan,
        ways=(
            *_on_demand(scenario, prices["on_demand"], kept["on_demand"]),
            *used.ways,
            *(w for kind in RESERVED for w in _reserved(scenario, prices[kind], kept[kind])),
            *_block(scenario, prices["capacity_block"], kept["capacity_block"]),
            *_owned(scenario, prices["owned"], kept["owned"]),
        ),
        markets=_repeated(run, of_spot, markets, used),
        exponential=_exponential(run, of_spot, markets),
        trace=markets.statistics,
        trace_hours=0.0 if trace is None else trace.length_s / HOUR_S,
        break_even=None if run is None else _break_even(run, markets),
        reservations=_reservations(kept),
        inputs=(*markets.inputs, *_machine_inputs(kept)),
    )


def _machine_inputs(kept: Mapping[str, Kept | None]) -> tuple[Input, ...]:
    """Inputs about failures, checkpoints and restarts, which every way shares."""
    return next((k.risk.inputs for k in kept.values() if k), ())


def _on_demand(scenario: Scenario, price: Priced, kept: Kept | None) -> tuple[Way, ...]:
    return (on_demand_way(scenario, kept) if kept else lacking("on_demand", price),)


def _owned(scenario: Scenario, price: Priced, kept: Kept | None) -> tuple[Way, ...]:
    return (on_demand_way(scenario, kept, "owned") if kept else lacking("owned", price),)


def _block(scenario: Scenario, price: Priced, kept: Kept | None) -> tuple[Way, ...]:
    return (block_way(scenario, kept) if kept else lacking("capacity_block", price),)


def _reserved(scenario: Scenario, price: Priced, kept: Kept | None) -> tuple[Way, ...]:
    if kept is None:
        return lacking(price.kind, price), lacking(f"{price.kind}_alone", price)
    return reserved_ways(scenario, kept)


def _repeated(
    run: SpotRun | None, price: Priced, markets: Markets, used: Repeated
) -> tuple[Repeated, ...]:
    return tuple(
        used if m is markets.used else Repeated(market=m, ways=spot_ways(run, price, m))
        for m in markets.every
    )


def _exponential(run: SpotRun | None, price: Priced, markets: Markets) -> Repeated | None:
    if markets.exponential is None:
        return None
    ways = spot_ways(run, price, markets.exponential, ("spot_only",))
    return Repeated(market=markets.exponential, ways=ways)


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
    hours = run.plan.wall_clock_hours
    return BreakEven(
        job_per_day=per_day,
        instance_per_day=per_day / markets.fleet_factor,
        spot_usd=run.spot_usd * hours,
        on_demand_usd=run.on_demand_usd * hours,
    )


def _reservations(kept: Mapping[str, Kept | None]) -> tuple[Reservation, ...]:
    """Reservations compared with on demand for this run."""
    base = kept["on_demand"]
    found = []
    for kind in RESERVED:
        one = kept[kind]
        if base is None or one is None or base.plan.usd is None or one.plan.usd is None:
            continue
        rate = one.plan.usd.p50 / one.plan.wall_clock_hours
        found.append(
            Reservation(
                kind=kind,
                break_even_utilisation=as_float(
                    purchase.break_even_utilisation(
                        reserved_usd=one.plan.usd.p50, on_demand_usd=base.plan.usd.p50
                    )
                ),
                term_usd=rate * purchase.TERM_HOURS[kind],
            )
        )
    return tuple(found)

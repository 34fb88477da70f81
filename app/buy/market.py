"""How often spot machines are preempted: as given, from a trace, else from hardware/spot.csv.

Bands of the Spot Advisor and public traces differ more than a thousandfold, so a rate that was
not given is answered for three markets: the low end, the figure in use, the high end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite

from app.buy.simulate import Market
from app.document import format as fmt
from app.forecast import preemption
from app.forecast.failure_inputs import Input
from core.errors import ScenarioError
from core.failures.availability import Trace, TraceStatistics, statistics
from core.failures.spot import band_hazards_per_s, fleet_preemptions_per_s
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Plan
from core.units import DAY_S, HOUR_S
from hardware.spot import ADVISOR_PERIOD_S, advisor_bands, used

NOT_WITH_A_TRACE = ("preemptions_per_day", "outage_hours", "preemption_cv", "spot_zones")
TYPICAL = "typical"


@dataclass(frozen=True, slots=True, kw_only=True)
class Markets:
    """The markets to simulate, and the inputs they rest on."""

    used: Market
    every: tuple[Market, ...]  # the low end, the one in use, the high end
    exponential: Market | None  # the market in use with exponential uptimes of equal mean
    statistics: TraceStatistics | None  # of a given trace
    fleet_factor: float  # preemptions of the job per preemption of one instance
    inputs: tuple[Input, ...]


def markets_of(scenario: Scenario, plan: Plan, trace: Trace | None) -> Markets:
    """The markets for a plan's machines; ScenarioError if both a trace and numbers are given."""
    common_input = preemption.common_fraction()
    factor = as_float(
        fleet_preemptions_per_s(
            num_instances=float(plan.num_nodes), preemptions_per_s=1.0,
            common_fraction=common_input.value,
        )
    )  # fmt: skip
    if trace is not None:
        return _of_trace(scenario, trace, factor)
    rate, ends = _rates(scenario, plan)
    facts = {field: preemption.fact(scenario, field) for field in preemption.FACTS}
    zones = scenario.spot_zones or 1
    first = Market(
        name="used", preemptions_per_day=rate.value, job_per_day=rate.value * factor,
        outage_hours=facts["outage_hours"].value, cv=facts["preemption_cv"].value, zones=zones,
        source=rate.source,
    )  # fmt: skip
    low, high = (
        (replace(first, name=n, preemptions_per_day=x, job_per_day=x * factor, source=why),)
        if (end := ends.get(n)) and (x := end[0]) != rate.value and (why := end[1])
        else ()
        for n in ("low", "high")
    )
    of_zones = Input(
        name="spot_zones", value=zones, basis="given" if scenario.spot_zones else "assumed",
        source="" if scenario.spot_zones else "one market",
    )  # fmt: skip
    return Markets(
        used=first,
        every=(*low, first, *high),
        exponential=None if first.cv == 1 else replace(first, name="exponential", cv=1.0),
        statistics=None,
        fleet_factor=factor,
        inputs=(rate, *facts.values(), of_zones, common_input),
    )


def _of_trace(scenario: Scenario, trace: Trace, factor: float) -> Markets:
    """The market of a trace, which covers all machines of the job: no factor for their number."""
    for field in NOT_WITH_A_TRACE:
        if getattr(scenario, field) is not None:
            option = f"--{field.replace('_', '-')}"
            raise ScenarioError(f"The trace says what {option} says, too: leave one of them out.")
    found = statistics(trace)
    if not found.available_fraction:
        raise ScenarioError("Capacity is never up in the trace: nothing can be played on it.")
    first = Market(
        name="trace",
        preemptions_per_day=found.preemptions_per_day,
        job_per_day=found.preemptions_per_day,
        outage_hours=found.down_mean_s / HOUR_S if isfinite(found.down_mean_s) else 0.0,
        cv=found.up_cv,
        zones=1,
        source="the trace",
        trace=trace,
    )
    values = {
        "preemptions_per_day": first.preemptions_per_day, "outage_hours": first.outage_hours,
        "preemption_cv": first.cv,
    }  # fmt: skip
    span = fmt.days(trace.length_s / HOUR_S)
    source = f"{fmt.count(found.num_spells)} uptimes in {span}, of all machines of the job at once"
    return Markets(
        used=first,
        every=(first,),
        exponential=replace(first, name="exponential", cv=1.0, trace=None),
        statistics=found,
        fleet_factor=factor,
        inputs=tuple(
            Input(name=n, value=x, basis="trace", source=source) for n, x in values.items()
        ),
    )


def _rates(scenario: Scenario, plan: Plan) -> tuple[Input, dict[str, tuple[float, str]]]:
    """Preemptions per day of one instance, and the low and high ends with their sources."""
    rate = preemption.rate(scenario)
    if rate.basis == "given":
        return rate, {}
    fact = used("preemptions_per_day")
    high = (fact.high or rate.value, "the median of public traces of single instances")
    return rate, {"low": _low(plan, fact.low or rate.value), "high": high}


def _low(plan: Plan, otherwise: float) -> tuple[float, str]:
    """The middle of the Spot Advisor's band for this machine and region, if it has one."""
    offer = plan.offer
    bands = advisor_bands(offer.accelerator, offer.provider, offer.region) or advisor_bands(
        offer.accelerator, offer.provider, TYPICAL
    )
    band = next(iter(bands), None)
    if band is None or band.low is None or band.high is None:
        return otherwise, "5% of capacity interrupted in a month; no band of this machine is known"
    _, middle, _ = band_hazards_per_s(
        low_fraction=band.low, high_fraction=band.high, period_s=ADVISOR_PERIOD_S
    )
    return middle * DAY_S, (
        f"the middle of its Spot Advisor band, {band.printed} in a month ({band.region}, "
        f"{band.source_date}; {band.source})"
    )

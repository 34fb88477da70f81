"""The power that machines draw and what it costs their owner."""

from __future__ import annotations

from dataclasses import dataclass

from app.forecast.machines import accelerator_of
from app.forecast.price_book import book_of, today
from core.machine.offer import Offer
from core.money import energy as money_energy
from core.numeric import as_float
from core.scenario import Scenario
from hardware import carbon, power
from hardware.carbon import RegionFigure
from pricing.book.offers import is_booked
from pricing.book.rows import Owned

KW = 1e-3  # kilowatts of a watt


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Kilowatts at the plug of the machines of a plan."""

    training_kw: float  # GPUs of the job at work, the other rented ones idle
    idle_kw: float  # all of them idle
    full_kw: float  # all of them at full power
    limit_watts: float  # of one accelerator
    host_watts: float  # of its share of the host


def draw_of(scenario: Scenario, offer: Offer, *, num_gpus: int, num_nodes: int) -> Draw | None:
    """The power of the machines at measured shares of what they are rated at; None: no source
    prints the full power of their accelerator."""
    full = accelerator_of(offer.accelerator, scenario).tdp_watts
    if full is None:
        return None
    limit = min(scenario.power_cap_watts or full, full)
    host = power.used("host_over_gpu").value
    busy, idle = power.used("training_draw").value, power.used("idle_draw").value
    rated_kw = KW * as_float(
        money_energy.rated_watts_per_gpu(gpu_watts=limit, full_gpu_watts=full, host_over_gpu=host)
    )
    rented = num_nodes * offer.gpu_count
    return Draw(
        training_kw=rated_kw * (num_gpus * busy + (rented - num_gpus) * idle),
        idle_kw=rated_kw * rented * idle,
        full_kw=rated_kw * rented,
        limit_watts=limit,
        host_watts=host * full,
    )


def owned_row(scenario: Scenario, offer: Offer) -> Owned | None:
    """The row of a price book for owned machines; its price includes power."""
    if offer.purchase != "owned" or not is_booked(offer):
        return None
    book = book_of(scenario)
    rows = () if book is None else book.valid(Owned, today())
    return next((r for r in rows if r.name == offer.instance_type), None)


def pue_of(scenario: Scenario, offer: Offer) -> tuple[float, str]:
    """PUE as given, else of the owner's building, the region or the seller's mean, else assumed;
    and its source."""
    if scenario.pue is not None:
        return scenario.pue, "given"
    if (owned := owned_row(scenario, offer)) is not None:
        return float(owned.pue), f"given by the price book {scenario.price_book}"
    region = carbon.region_of(offer.provider, offer.region)
    if region is not None and region.pue is not None:
        return region.pue.value, f"published for {region.location}: {_source(region.pue)}"
    if (fleet := carbon.fleet_pue(offer.provider)) is not None:
        return fleet.value, f"published, the mean of {offer.provider}: {_source(fleet)}"
    fact = power.used("pue")
    return fact.value, f"{fact.note}; {fact.source}"


def electricity_usd_per_hour(
    scenario: Scenario, offer: Offer, *, num_gpus: int, num_nodes: int
) -> tuple[float, float]:
    """Dollars of electricity an hour while machines train and while they wait; 0 where the price of
    the machines includes it, or nobody says what a kilowatt-hour costs."""
    pays = offer.purchase == "owned" and owned_row(scenario, offer) is None
    if not pays or scenario.usd_per_kwh is None:
        return 0.0, 0.0
    draw = draw_of(scenario, offer, num_gpus=num_gpus, num_nodes=num_nodes)
    if draw is None:
        return 0.0, 0.0
    usd_per_kwh = scenario.usd_per_kwh * pue_of(scenario, offer)[0]
    return draw.training_kw * usd_per_kwh, draw.idle_kw * usd_per_kwh


def _source(figure: RegionFigure) -> str:
    # The note of a row gives the year of its PUE if it differs.
    year = figure.note if figure.note.startswith("PUE of") else figure.year
    return f"{figure.source}{f', {year}' if year else ''}"

"""Energy of a plan at the plug and at the meter, and the carbon of its region's grid.

The plug is the machines alone; the meter includes the building (PUE).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite

from app.bill.line import Line, not_known
from app.document import format as fmt
from app.document import vocabulary
from app.forecast.power import draw_of, owned_row, pue_of
from core.cost.uncertain import Uncertain
from core.money import energy as money_energy
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Plan
from hardware import carbon, power
from pricing.book.rows import Owned

EMBODIED = (
    "Carbon is of the electricity alone: what making the machines and buildings emitted "
    "(embodied carbon) is out of scope."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Kilowatt-hours, and kilograms of CO2e."""

    lines: tuple[Line, ...]  # in kWh
    total: Uncertain | None  # at the meter
    pue: float
    pue_basis: str  # given, published or assumed, with its source
    carbon: Line  # in kg CO2e, at the grid's average emissions
    marginal: Line  # in kg CO2e, at the emissions of one more kWh
    sentences: tuple[str, ...]
    owned_row: Owned | None = None  # row of a price book; its price includes power


def energy_of(scenario: Scenario, plan: Plan) -> Energy:
    """The energy of one plan; not known if no power is published or the run never ends."""
    owned = owned_row(scenario, plan.offer)
    pue, basis = pue_of(scenario, plan.offer)
    machines = _machines(scenario, plan)
    if machines.figure is None:
        missing = not_known("carbon", "the energy is not known")
        return Energy(
            lines=(machines,), total=None, pue=pue, pue_basis=basis, carbon=missing,
            marginal=missing, sentences=(f"Energy is not known: {machines.how}.",), owned_row=owned,
        )  # fmt: skip
    building = Line(
        name="building",
        figure=machines.figure.times(money_energy.building_kwh(drawn_kwh=1.0, pue=pue)),
        status="assumed" if basis.startswith("assumed") else "known",
        how=f"PUE {pue:g} ({basis})",
    )
    of_run, share = machines.figure.times(pue), scenario.experiment_share
    experiments = Line(
        name="experiments",
        figure=of_run.times(share or 0.0),
        status="assumed" if share is None else "known",
        how="none are assumed" if share is None else f"{share:g} times the energy of the run",
    )
    total = of_run.times(1 + (share or 0.0))
    mean, marginal = _carbon(scenario, plan, total)
    return Energy(
        lines=(machines, building, experiments), total=total, pue=pue, pue_basis=basis,
        carbon=mean, marginal=marginal, sentences=_sentences(total, mean), owned_row=owned,
    )  # fmt: skip


def _machines(scenario: Scenario, plan: Plan) -> Line:
    """Energy at the plug: busy and idle GPUs at measured draws; P90: all at full power."""
    offer, hours = plan.offer, plan.cost.hours
    draw = draw_of(scenario, offer, num_gpus=plan.num_gpus, num_nodes=plan.num_nodes)
    if draw is None:
        return not_known("machines", f"no source prints the full power of {offer.accelerator}")
    if not isfinite(plan.expected_hours):
        return not_known("machines", "the run never ends")
    # Spot that is away draws nothing.
    mean = as_float(hours.mean)
    share = min(as_float(plan.cost.paid_hours) / mean, 1.0) if offer.purchase == "spot" else 1.0
    idle = sum(as_float(plan.cost.hour_terms[cause]) for cause in ("waiting", "startup"))
    kwh = draw.training_kw * max(share * mean - idle, 0.0) + draw.idle_kw * idle
    figure = replace(hours.times(kwh / mean), mean=kwh, p90=draw.full_kw * share * hours.p90)
    host, busy, at_rest = map(power.used, ("host_over_gpu", "training_draw", "idle_draw"))
    rented = plan.num_nodes * offer.gpu_count
    how = (
        f"{fmt.count(rented)} GPUs of {draw.limit_watts:g} W and {draw.host_watts:,.0f} W of host "
        f"each (assumed: {host.scope}; {host.source}), drawing {fmt.percent(busy.value)} of that "
        f"while they train ({busy.source}) and {fmt.percent(at_rest.value)} while they wait "
        f"({at_rest.source}); P90 is all of them at full power for the P90 of the hours"
    )
    return Line(name="machines", figure=figure, status="assumed", how=how)


def _carbon(scenario: Scenario, plan: Plan, kwh: Uncertain) -> tuple[Line, Line]:
    """Carbon at the average emissions of the region's grid, and at those of one more kWh."""
    offer = plan.offer
    region = carbon.region_of(offer.provider, offer.region)
    where = f"{offer.provider} {vocabulary.stated_region(offer.region)}".strip()
    unknown = f"unknown for the grid at {where}: --grid-g-co2e-per-kwh gives its emissions"
    given = scenario.grid_g_co2e_per_kwh
    mean, marginal = not_known("carbon", unknown), not_known("marginal_carbon", unknown)
    if given is not None:
        mean = _emitted("carbon", kwh, given, "given")
    elif region is not None and (grid := region.grid_g_co2e_per_kwh) is not None:
        free = region.carbon_free_fraction
        bought = f"; the seller counts {fmt.percent(free.value)} carbon-free" if free else ""
        year = f", {grid.year}" if grid.year else ""
        basis = f"{region.location}, mean of the grid: {grid.source}{year}{bought}"
        mean = _emitted("carbon", kwh, grid.value, basis)
    if region is not None and (more := region.marginal_g_co2e_per_kwh) is not None:
        basis = f"{region.location}, of one more kWh: {more.source}, {more.year}"
        marginal = _emitted("marginal_carbon", kwh, more.value, basis)
    return mean, marginal


def _emitted(name: str, kwh: Uncertain, g_per_kwh: float, basis: str) -> Line:
    per_kwh = as_float(money_energy.carbon_kg(kwh=1.0, g_co2e_per_kwh=g_per_kwh))
    how = f"{g_per_kwh:g} g CO2e per kWh ({basis})"
    return Line(name=name, figure=kwh.times(per_kwh), status="known", how=how)


def _sentences(total: Uncertain, emitted: Line) -> tuple[str, ...]:
    low, mean, high = (energy_text(as_float(x)) for x in (total.p10, total.mean, total.p90))
    head = f"It takes about {mean} at the meter on average, between {low} and {high}"
    if emitted.figure is None:
        return (f"{head}; its carbon is not known: {emitted.how}.", EMBODIED)
    kg = as_float(emitted.figure.mean)
    return (f"{head}, and emits about {tonnes(kg)} of CO2e: {emitted.how}.", EMBODIED)


def energy_text(kwh: float) -> str:
    """Energy with a readable unit: 950 kWh, 321 MWh, 39.1 GWh.

    >>> energy_text(950.0), energy_text(321_000.0), energy_text(39.1e6)
    ('950 kWh', '321 MWh', '39.1 GWh')
    """
    for size, unit in ((1e6, "GWh"), (1e3, "MWh")):
        if abs(kwh) >= size:
            return f"{fmt.tokens(kwh / size)} {unit}"
    return f"{fmt.tokens(kwh)} kWh"


def tonnes(kg: float) -> str:
    """A mass with a readable unit: 950 kg, 12.4 t.

    >>> tonnes(950.0), tonnes(12_400.0)
    ('950 kg', '12.4 t')
    """
    return f"{fmt.tokens(kg)} kg" if kg < 1000 else f"{fmt.tokens(kg / 1000)} t"

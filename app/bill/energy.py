"""Energy of a plan at the plug and at the meter, and the carbon of its region's grid.

The plug is the machines alone; the meter includes the building (PUE).
"""

from __future__ import annotations

from dataclasses import dataclass

from app.bill.line import Line, not_known
from app.document import format as fmt
from app.document import vocabulary
from app.forecast.machines import accelerator_of
from app.forecast.price_book import book_of, today
from core.money import bill as lines
from core.money import energy as money_energy
from core.money.bill import Figure, Hours
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Plan
from hardware import carbon, power
from hardware.carbon import RegionFigure
from pricing.book.offers import is_booked
from pricing.book.rows import Owned

EMBODIED = (
    "Carbon is of the electricity alone: what making the machines and buildings emitted "
    "(embodied carbon) is out of scope."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Kilowatt-hours, and kilograms of CO2e."""

    lines: tuple[Line, ...]  # in kWh
    total: Figure | None  # at the meter
    pue: float
    pue_basis: str  # given, published or assumed, with its source
    carbon: Line  # in kg CO2e, at the grid's average emissions
    marginal: Line  # in kg CO2e, at the emissions of one more kWh
    sentences: tuple[str, ...]
    owned_row: Owned | None = None  # row of a price book; its price includes power


def energy_of(scenario: Scenario, plan: Plan, hours: Hours) -> Energy:
    """The energy of one plan; not known if no power is published."""
    owned = _owned_row(scenario, plan)
    pue, basis = _pue(scenario, plan, owned)
    machines = _machines(scenario, plan, hours)
    if machines.figure is None:
        missing = not_known("carbon", "the energy is not known")
        return Energy(
            lines=(machines,), total=None, pue=pue, pue_basis=basis, carbon=missing,
            marginal=missing, sentences=(f"Energy is not known: {machines.how}.",), owned_row=owned,
        )  # fmt: skip
    losses = machines.figure.times(money_energy.building_kwh(drawn_kwh=1.0, pue=pue))
    building = Line(
        name="building",
        figure=losses,
        status="assumed" if basis.startswith("assumed") else "known",
        how=f"PUE {pue:g} ({basis})",
    )
    of_run = lines.total((machines.figure, losses))
    share = scenario.experiment_share
    experiments = Line(
        name="experiments",
        figure=of_run.times(share or 0.0),
        status="assumed" if share is None else "known",
        how="none are assumed" if share is None else f"{share:g} times the energy of the run",
    )
    found = (machines, building, experiments)
    total = lines.total(line.figure for line in found if line.figure is not None)
    mean, marginal = _carbon(scenario, plan, total)
    return Energy(
        lines=found, total=total, pue=pue, pue_basis=basis, carbon=mean, marginal=marginal,
        sentences=_sentences(total, mean), owned_row=owned,
    )  # fmt: skip


def _machines(scenario: Scenario, plan: Plan, hours: Hours) -> Line:
    """Energy at the plug: busy and idle GPUs at measured draws; upper: all at full power."""
    full = accelerator_of(plan.offer.accelerator, scenario).tdp_watts
    if full is None:
        how = f"no source prints the full power of {plan.offer.accelerator}"
        return not_known("machines", how)
    limit = min(scenario.power_cap_watts or full, full)
    host, busy, idle = map(power.used, ("host_over_gpu", "training_draw", "idle_draw"))
    rated = as_float(
        money_energy.rated_watts_per_gpu(
            gpu_watts=limit, full_gpu_watts=full, host_over_gpu=host.value
        )
    )  # fmt: skip
    rented, total = plan.num_nodes * plan.offer.gpu_count, hours.total

    def kwh(column: str, busy_draw: float, idle_draw: float) -> float:
        all_hours = as_float(getattr(total, column))
        waiting = sum(as_float(getattr(x, column)) for x in (hours.waiting, hours.startup))
        busy_hours = plan.num_gpus * (all_hours - waiting)
        return as_float(
            money_energy.drawn_kwh(
                busy_gpu_hours=busy_hours,
                idle_gpu_hours=rented * all_hours - busy_hours,
                rated_watts_per_gpu=rated,
                busy_draw=busy_draw,
                idle_draw=idle_draw,
            )
        )

    figure = Figure(
        lower=kwh("lower", busy.value, idle.value),
        expected=kwh("expected", busy.value, idle.value),
        upper=kwh("upper", 1.0, 1.0),
    )
    how = (
        f"{fmt.count(rented)} GPUs of {limit:g} W and {host.value * full:,.0f} W of host each "
        f"(assumed: {host.scope}; {host.source}), drawing {fmt.percent(busy.value)} of that "
        f"while they train ({busy.source}) and {fmt.percent(idle.value)} while they wait "
        f"({idle.source}); upper is all of them at full power all the time"
    )
    return Line(name="machines", figure=figure, status="assumed", how=how)


def _owned_row(scenario: Scenario, plan: Plan) -> Owned | None:
    """The row of a price book for the plan's machines."""
    book = book_of(scenario)
    if book is None or not is_booked(plan.offer) or plan.offer.purchase != "owned":
        return None
    rows = book.valid(Owned, today())
    return next((r for r in rows if r.name == plan.offer.instance_type), None)


def _pue(scenario: Scenario, plan: Plan, owned: Owned | None) -> tuple[float, str]:
    """PUE as given, else of the owner's building, the region or the seller's mean, else assumed."""
    if scenario.pue is not None:
        return scenario.pue, "given"
    if owned is not None:
        return float(owned.pue), f"given by the price book {scenario.price_book}"
    region = carbon.region_of(plan.offer.provider, plan.offer.region)
    if region is not None and region.pue is not None:
        return region.pue.value, f"published for {region.location}: {_from(region.pue)}"
    if (fleet := carbon.fleet_pue(plan.offer.provider)) is not None:
        return fleet.value, f"published, the mean of {plan.offer.provider}: {_from(fleet)}"
    fact = power.used("pue")
    return fact.value, f"{fact.note}; {fact.source}"


def _from(figure: RegionFigure) -> str:
    # The note of a row gives the year of its PUE if it differs.
    year = figure.note if figure.note.startswith("PUE of") else figure.year
    return f"{figure.source}{f', {year}' if year else ''}"


def _carbon(scenario: Scenario, plan: Plan, kwh: Figure) -> tuple[Line, Line]:
    """Carbon at the average emissions of the region's grid, and at those of one more kWh."""
    offer = plan.offer
    region = carbon.region_of(offer.provider, offer.region)
    where = f"{offer.provider} {vocabulary.stated_region(offer.region)}".strip()
    unknown = f"nobody's figure of the grid at {where} is at hand: --grid-g-co2e-per-kwh gives one"
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


def _emitted(name: str, kwh: Figure, g_per_kwh: float, basis: str) -> Line:
    per_kwh = as_float(money_energy.carbon_kg(kwh=1.0, g_co2e_per_kwh=g_per_kwh))
    how = f"{g_per_kwh:g} g CO2e per kWh ({basis})"
    return Line(name=name, figure=kwh.times(per_kwh), status="known", how=how)


def _sentences(total: Figure, emitted: Line) -> tuple[str, ...]:
    low, mean, high = (energy_text(as_float(x)) for x in (total.lower, total.expected, total.upper))
    head = f"It is expected to take {mean} at the meter, between {low} and {high}"
    if emitted.figure is None:
        return (f"{head}; its carbon is not known: {emitted.how}.", EMBODIED)
    kg = as_float(emitted.figure.expected)
    return (f"{head}, and to emit {tonnes(kg)} of CO2e: {emitted.how}.", EMBODIED)


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

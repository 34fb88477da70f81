"""Where energy and carbon of a plan come from: the figures of its bill."""

from __future__ import annotations

from app.bill.bill import bill_of
from app.bill.energy import energy_text, tonnes
from app.forecast.case import Case
from app.provenance.record import Record, by_topic, record
from core.errors import ScenarioError
from core.machine.accelerator import Source
from core.money.bill import Figure
from core.numeric import as_float
from hardware import power

POWER = {
    "host_over_gpu": "Power of a host over that of its GPUs",
    "training_draw": "Draw while training, of what a machine is rated at",
    "idle_draw": "Draw while waiting",
}


def energy_records(case: Case) -> tuple[Record, ...]:
    """Expected kWh at the meter and CO2e; empty if power is unknown or the run never ends."""
    try:
        energy = bill_of(case.scenario, case.plan).energy
    except ScenarioError:  # the run never ends
        return ()
    if energy.total is None:
        return ()
    topic = by_topic("Energy and carbon")
    parts = tuple(
        record(f"{line.name}_kwh", line.label, _expected(line.figure), "kWh", "computed",
               topic=topic, note=line.how, inputs=_power() if line.name == "machines" else ())
        for line in energy.lines if line.figure is not None
    )  # fmt: skip
    total = as_float(energy.total.expected)
    kwh = record(
        "energy_kwh", "Energy at the meter, expected", total, "kWh", "computed", topic=topic,
        formula=" + ".join(p.key for p in parts), inputs=parts, text=energy_text(total),
    )  # fmt: skip
    if energy.carbon.figure is None:
        return (kwh,)
    kg = _expected(energy.carbon.figure)
    given = case.scenario.grid_g_co2e_per_kwh is not None
    grid = record(
        "grid_g_per_kwh", "Grid: grams of CO2e per kWh", kg / total * 1000, "g/kWh",
        "given" if given else "published",
        source=Source(ref=energy.carbon.how, date="", printed=""),
    )  # fmt: skip
    carbon = record(
        "carbon_kg", "Carbon of the electricity (CO2e), expected", kg, "kg", "computed",
        formula="energy_kwh * grid_g_per_kwh / 1000", inputs=(kwh, grid), topic=topic,
        text=tonnes(kg),
    )  # fmt: skip
    return kwh, carbon


def _power() -> tuple[Record, ...]:
    found = []
    for quantity, label in POWER.items():
        fact = power.used(quantity)
        source = Source(ref=fact.source, date=fact.source_date, printed=fact.printed)
        kind = "assumed" if fact.role == "assumed" else "published"
        found.append(
            record(quantity, label, fact.value, "share",
                   "assumed" if kind == "assumed" else "published", source=source, note=fact.note)
        )  # fmt: skip
    return tuple(found)


def _expected(figure: Figure | None) -> float:
    return 0.0 if figure is None else as_float(figure.expected)

"""Where energy and carbon of a plan come from: the figures of its bill."""

from __future__ import annotations

from app.bill.bill import bill_of
from app.bill.energy import energy_text, tonnes
from app.forecast.case import Case
from app.provenance.record import Record, record, undated
from core.errors import ScenarioError
from core.machine.accelerator import Source
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
    topic = "Energy and carbon"
    parts = tuple(
        record(f"{line.name}_kwh", line.label, line.figure.mean, "kWh", topic=topic,
               note=line.how, inputs=_power() if line.name == "machines" else ())
        for line in energy.lines if line.figure is not None
    )  # fmt: skip
    total = as_float(energy.total.mean)
    kwh = record(
        "energy_kwh", "Energy at the meter, expected", total, "kWh", topic=topic,
        formula=" + ".join(p.key for p in parts), inputs=parts, text=energy_text(total),
    )  # fmt: skip
    if energy.carbon.figure is None:
        return (kwh,)
    kg = as_float(energy.carbon.figure.mean)
    given = case.scenario.grid_g_co2e_per_kwh is not None
    grid = record(
        "grid_g_per_kwh", "Grid: grams of CO2e per kWh", kg / total * 1000, "g/kWh",
        "given" if given else "published", source=undated(energy.carbon.how),
    )  # fmt: skip
    carbon = record(
        "carbon_kg", "Carbon of the electricity (CO2e), expected", kg, "kg", topic=topic,
        formula="energy_kwh * grid_g_per_kwh / 1000", inputs=(kwh, grid), text=tonnes(kg),
    )  # fmt: skip
    return kwh, carbon


def _power() -> tuple[Record, ...]:
    facts = {label: power.used(quantity) for quantity, label in POWER.items()}
    return tuple(
        record(fact.quantity, label, fact.value, "share",
               "assumed" if fact.role == "assumed" else "published", note=fact.note,
               source=Source(ref=fact.source, date=fact.source_date, printed=fact.printed))
        for label, fact in facts.items()
    )  # fmt: skip

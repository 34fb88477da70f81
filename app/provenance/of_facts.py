"""The inputs of a plan's numbers as records: facts with their sources."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from app.document.vocabulary import FACT_WORDS, Kind, measured_constant
from app.forecast.calibrations import chosen
from app.forecast.failure_inputs import Input
from app.forecast.machines import CUSTOM, Machine
from app.provenance.record import Record, record
from core.machine.accelerator import Accelerator, Source
from core.machine.cluster import ASSUMED_CEILING
from core.machine.offer import Offer
from core.model.presets import preset
from core.scenario import Scenario
from core.search.plan import Plan
from core.units import TO_SI
from hardware.efficiency import GENERIC, Entry, read_entries, stacks
from hardware.reliability import used
from pricing.book.offers import is_booked

TYPED = "typed in by the user"
DEFAULT = "the default of this field (core/scenario/fields.py): nobody gave another one"
LAYOUT = "found by the search, or given: the degrees of the plan's layout"
CEILING = "the median of the accelerators of hardware/accelerators.csv that have both figures"


@cache
def _entries() -> dict[tuple[str, str], Entry]:
    return {(e.stack, e.quantity): e for e in read_entries()}


def of_scenario(scenario: Scenario, field: str, label: str, unit: str) -> Record:
    """A field of the scenario: `given`, or `assumed` if it has its default value."""
    value = getattr(scenario, field)
    is_default = value == Scenario.model_fields[field].default
    return record(
        field, label, float(value), unit, "assumed" if is_default else "given",
        source=Source(ref=DEFAULT if is_default else TYPED, date="", printed=str(value)),
    )  # fmt: skip


def model_source(scenario: Scenario) -> Source:
    """The source of the dimensions of the scenario's model."""
    if scenario.model.strip().lower() == CUSTOM:
        return Source(ref=TYPED, date="", printed="")
    return preset(scenario.model).source


def of_model(scenario: Scenario, key: str, label: str, value: float | None, unit: str) -> Record:
    """A dimension of the model, or all of them if `value` is None."""
    custom = scenario.model.strip().lower() == CUSTOM
    return record(
        key, label, value, unit, "given" if custom else "published",
        source=model_source(scenario), text="" if value is not None else scenario.model,
    )  # fmt: skip


def of_accelerator(
    accelerator: Accelerator, quantity: str, unit: str, *, key: str = "", label: str = ""
) -> Record:
    """A figure of the accelerator with the source that publishes it."""
    source = accelerator.sources.get(quantity)
    kind: Kind = "published"
    if accelerator.vendor == "custom":
        kind = "given"
    elif source is not None and source.assumed:
        kind = "assumed"
    elif quantity == "matmul_flops_per_s":
        kind = "measured"
    said = FACT_WORDS.get(quantity, quantity).removeprefix("the ")
    return record(
        key or quantity, label or f"{accelerator.name}: {said}", getattr(accelerator, quantity),
        unit, kind, source=source,
    )  # fmt: skip


def ceiling_of(machine: Machine, value: float) -> Record:
    """The rate of the best measured matmul over the peak; `assumed` if none was measured."""
    label, a = "Best measured matmul over the peak", machine.accelerator
    peak = of_accelerator(a, "bf16_flops_per_s", "FLOP/s", key="peak_flops_per_s")
    if "matmul" in machine.measured:
        return record(
            "matmul_ceiling", label, value, "", "measured", inputs=(peak,),
            source=calibration_source(machine),
        )  # fmt: skip
    if a.matmul_flops_per_s is None:
        return record(
            "matmul_ceiling", label, value, "", "assumed",
            source=Source(ref=CEILING, date="", printed=f"{ASSUMED_CEILING}"),
        )  # fmt: skip
    measured = of_accelerator(a, "matmul_flops_per_s", "FLOP/s")
    return record(
        "matmul_ceiling", label, value, "", "computed",
        formula="matmul_flops_per_s / peak_flops_per_s", inputs=(measured, peak),
        topic="Matrix products",
    )  # fmt: skip


def calibration_source(machine: Machine) -> Source:
    """The saved result of `runcast calibrate` as a source, named by its id."""
    return Source(ref=f"calibration {machine.calibration}", date="", printed="")


def fraction(stack: str, quantity: str, *, label: str = "") -> Record:
    """The row of hardware/efficiency.csv that the stack uses, with what it was fitted on."""
    family = stacks()[stack].family
    entry = next(e for s in (stack, family, GENERIC) if (e := _entries().get((s, quantity))))
    kind: Kind = "fitted" if entry.basis.startswith("fitted") else "assumed"
    spread = "" if entry.p10 is None else f"P10 to P90 {entry.p10:.4g} to {entry.p90:.4g}"
    of = "every stack" if entry.stack == GENERIC else entry.stack
    name = quantity.replace("_", " ")
    unit = {"s": "s", "GB/s": "B/s", "MB": "B", "GiB": "B"}.get(entry.unit, "")
    return record(
        f"efficiency_{quantity}", label or f"Fraction: {name} ({of})", entry.value,
        unit, kind,
        source=Source(
            ref=f"hardware/efficiency.csv: {entry.basis}",
            date=entry.date,
            printed=f"{entry.value / TO_SI.get(entry.unit, 1.0):.4g} {entry.unit}",
        ),
        note="; ".join(x for x in (entry.note, spread) if x),
    )  # fmt: skip


def fractions(stack: str, *quantities: str) -> tuple[Record, ...]:
    """Several fractions of hardware/efficiency.csv that the stack uses."""
    return tuple(fraction(stack, q) for q in quantities)


def price_of(offer: Offer) -> Record:
    """The price of one whole instance."""
    typed = offer.provider == CUSTOM or is_booked(offer)
    quality = f"quality {offer.quality}" if offer.quality else ""
    return record(
        "usd_per_instance_hour", "Price of one instance", offer.usd_per_hour, "USD/h",
        "given" if typed else "published",
        source=Source(
            ref=offer.source,
            date=offer.observed_at,
            printed="" if offer.usd_per_hour is None else f"{offer.usd_per_hour:g} USD/h",
        ),
        note="; ".join(x for x in (quality, offer.note) if x),
    )  # fmt: skip


def network_of(scenario: Scenario, machine: Machine) -> Record:
    """The network between machines: given, stated by the offer, documented for its product, usual
    for its accelerator (assumed), or none."""
    key, label, found = "network_bytes_per_s", "Network of one machine", machine.network
    gbit = scenario.network_gbit_per_gpu
    if gbit is not None:
        source = Source(ref=TYPED, date="", printed=f"{gbit:g} Gbit/s a GPU")
        return _network(key, label, gbit * found.gpus_per_machine, "given", source)
    if found.gbit_per_s is None:
        return record(
            key, label, None, "B/s", "assumed", source=found.source, text="not sold as a cluster"
        )
    if machine.offer.provider == CUSTOM:
        return _network(key, label, found.gbit_per_s, "given", found.source)
    kind = "published" if found.is_known else "assumed"
    return _network(key, label, found.gbit_per_s, kind, found.source)


def _network(key: str, label: str, gbit: float, kind: str, source: Source) -> Record:
    found: Kind = "given" if kind == "given" else "assumed" if kind == "assumed" else "published"
    return record(
        key, label, gbit * TO_SI["Gbit/s"], "B/s", found, source=source, text=f"{gbit:,.4g} Gbit/s"
    )


def measured_constants(scenario: Scenario, machine: Machine) -> tuple[Record, ...]:
    """The machine constants that the scenario's calibration measured, with host and date."""
    found = chosen(scenario).get(machine.accelerator.name) if machine.calibration else None
    if found is None:
        return ()
    return tuple(
        record(
            f"measured_{c.name}", f"Measured: {measured_constant(c.name)}, over what was assumed",
            c.factor, "", "measured",
            source=Source(
                ref=f"calibration {found.id}: {found.origin.label}",
                date=found.origin.day if found.origin.measured_on else "",
                printed=f"{c.measured:.4g} {c.unit}",
            ),
            note="; ".join(
                x for x in (f"P10 to P90 {c.low:.3g} to {c.high:.3g}", c.note) if x
            ),
        )
        for c in found.fitted.constants
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Risk:
    label: str
    unit: str


_RISK = {
    "failures_per_node_day": _Risk("Failures per node-day (8 GPUs)", ""),
    "job_failures_per_day": _Risk("Further stops of the job a day", ""),
    "detection_s": _Risk("Failure to restart", "s"),
    "restart_s": _Risk("Restart and reload", "s"),
    "wait_s": _Risk("Wait for a machine", "s"),
    "node_start_s": _Risk("Start of a machine", "s"),
    "slow_probability": _Risk("Chance that a node is slow", "probability"),
    "slow_fraction": _Risk("How much slower", "share"),
    "checkpoint_s": _Risk("Training stopped by a checkpoint", "s"),
    "upload_s": _Risk("Its upload behind training", "s"),
    "spares": _Risk("Spare machines", ""),
    "repair_s": _Risk("Until a machine is a spare again", "s"),
}
_BASIS: dict[str, Kind] = {"given": "given", "default": "published", "assumed": "assumed"}


def of_risk(item: Input) -> Record:
    """An input of the failure model with its source in hardware/reliability.csv."""
    told, kind = _RISK[item.name], _BASIS[item.basis]
    date, ref = "", item.source or TYPED
    if kind == "published":
        fact = used(item.name)
        date, ref = fact.source_date, fact.source
    elif kind == "assumed":
        ref = item.source
    return record(
        item.name, told.label, item.value, told.unit, kind,
        source=Source(ref=ref, date=date, printed=""), note=item.source if date else "",
    )  # fmt: skip


def of_layout(plan: Plan, degree: str, label: str) -> Record:
    """A degree of the plan's layout, which the search chose."""
    value = float(getattr(plan.layout, degree))
    return record(
        degree, label, value, "", "computed", note=LAYOUT, topic="",
    )  # fmt: skip

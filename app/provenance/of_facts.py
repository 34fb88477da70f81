"""The inputs of a plan's numbers as records: facts with their sources."""

from __future__ import annotations

from functools import cache

from app.document.vocabulary import FACT_WORDS, FAILURE_INPUTS, Kind, measured_constant
from app.forecast.calibrations import chosen
from app.forecast.case import Case
from app.forecast.failure_inputs import Input, fact_of
from app.forecast.machines import CUSTOM, Machine
from app.provenance.record import Record, record, undated
from core.machine.accelerator import Accelerator, Source
from core.machine.cluster import ASSUMED_CEILING
from core.machine.offer import Offer
from core.model.presets import preset
from core.scenario import Scenario
from core.search.plan import Plan
from core.units import TO_SI
from hardware.efficiency import GENERIC, Entry, read_entries
from hardware.habits.built_on import stack_named
from pricing.book.offers import is_booked

TYPED = "typed in by the user"
DEFAULT = "the default of this field (core/scenario/fields.py): nobody gave another one"
LAYOUT = "found by the search, or given: the degrees of the plan's layout"
CEILING = "the median of the accelerators of hardware/accelerators.csv that have both figures"

FIELDS = {
    "seq_len": ("Tokens per sequence", "tokens"),
    "global_batch_size": ("Sequences per step", "sequences"),
    "num_tokens": ("Training tokens", "tokens"),
}
DEGREES = {
    "tp": "Tensor-parallel degree",
    "pp": "Pipeline stages",
    "virtual_stages": "Virtual stages",
    "cp": "Context-parallel degree",
    "dp_shard": "Ranks that share states",
    "micro_batch_size": "Sequences per micro-batch",
}


@cache
def _entries() -> dict[tuple[str, str], Entry]:
    return {(e.stack, e.quantity): e for e in read_entries()}


def of_scenario(scenario: Scenario, field: str) -> Record:
    """A field of the scenario: `given`, or `assumed` if it has its default value."""
    (label, unit), value = FIELDS[field], getattr(scenario, field)
    is_default = value == Scenario.model_fields[field].default
    return record(
        field, label, value, unit, "assumed" if is_default else "given",
        source=undated(DEFAULT if is_default else TYPED, f"{value}"),
    )  # fmt: skip


def of_model(scenario: Scenario, key: str, label: str, value: float | None, unit: str) -> Record:
    """A dimension of the model, or all of them if `value` is None."""
    custom = scenario.model.strip().lower() == CUSTOM
    return record(
        key, label, value, unit, "given" if custom else "published",
        source=undated(TYPED) if custom else preset(scenario.model).source,
        text="" if value is not None else scenario.model,
    )  # fmt: skip


def dimensions_of(case: Case) -> Record:
    """All dimensions of the model together."""
    return of_model(
        case.scenario, "model_dimensions", f"Dimensions of {case.model.label}", None, ""
    )


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
    words = FACT_WORDS.get(quantity, quantity).removeprefix("the ")
    return record(
        key or quantity, label or f"{accelerator.name}: {words}", getattr(accelerator, quantity),
        unit, kind, source=source,
    )  # fmt: skip


def ceiling_of(machine: Machine, value: float) -> Record:
    """The rate of the best measured matmul over the peak; `assumed` if none was measured."""
    label, a = "Best measured matmul over the peak", machine.accelerator
    peak = of_accelerator(a, "bf16_flops_per_s", "FLOP/s", key="peak_flops_per_s")
    if "matmul" in machine.measured:
        return record(
            "matmul_ceiling", label, value, "", "measured", inputs=(peak,),
            source=undated(f"calibration {machine.calibration}"),
        )  # fmt: skip
    if a.matmul_flops_per_s is None:
        return record(
            "matmul_ceiling", label, value, "", "assumed",
            source=undated(CEILING, f"{ASSUMED_CEILING}"),
        )  # fmt: skip
    measured = of_accelerator(a, "matmul_flops_per_s", "FLOP/s")
    return record(
        "matmul_ceiling", label, value, "", topic="Matrix products",
        formula="matmul_flops_per_s / peak_flops_per_s", inputs=(measured, peak),
    )  # fmt: skip


def fraction(stack: str, quantity: str, *, label: str = "") -> Record:
    """The row of hardware/efficiency.csv that the stack uses, with what it was fitted on."""
    own = stack_named(stack)
    entry = next(e for s in (own.name, own.family, GENERIC) if (e := _entries().get((s, quantity))))
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
    found, source = machine.network, machine.network.source
    kind: Kind = "published" if found.is_known else "assumed"
    gbit = found.gbit_per_s
    if (of_gpu := scenario.network_gbit_per_gpu) is not None:
        gbit, kind = of_gpu * found.gpus_per_machine, "given"
        source = undated(TYPED, f"{of_gpu:g} Gbit/s a GPU")
    elif machine.offer.provider == CUSTOM:
        kind = "given"
    text = "not sold as a cluster" if gbit is None else f"{gbit:,.4g} Gbit/s"
    rate = None if gbit is None else gbit * TO_SI["Gbit/s"]
    return record(
        "network_bytes_per_s", "Network of one machine", rate, "B/s", kind, source=source, text=text
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
        for c in found.constants_for(scenario.stack)
    )  # fmt: skip


_RISK_UNITS = {"slow_probability": "probability", "slow_fraction": "share"}


def of_risk(item: Input, accelerator: str) -> Record:
    """An input of the failure model with its source in hardware/reliability.csv, or of the
    accelerator."""
    name = FAILURE_INPUTS[item.name]
    unit = "s" if item.name.endswith("_s") else _RISK_UNITS.get(item.name, "")
    kind: Kind = "given" if item.basis == "given" else "assumed"
    source, note = undated(item.source or TYPED), ""
    if item.basis == "default":
        fact, kind = fact_of(item.name, accelerator), "published"
        source, note = Source(ref=fact.source, date=fact.source_date, printed=""), item.source
    return record(
        item.name, f"{name[0].upper()}{name[1:]}", item.value, unit, kind, source=source, note=note
    )


def of_layout(plan: Plan, *degrees: str) -> tuple[Record, ...]:
    """Degrees of the plan's layout, which the search chose."""
    return tuple(
        record(name, DEGREES[name], getattr(plan.layout, name), "", note=LAYOUT) for name in degrees
    )

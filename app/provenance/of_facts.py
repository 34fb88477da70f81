"""What the numbers of a plan rest on, as records: facts, prices and fitted fractions with their
sources."""

from __future__ import annotations

from functools import cache

from app.document.vocabulary import FACT_WORDS, FAILURE_INPUTS, Kind, measured_constant
from app.forecast.calibrations import chosen
from app.forecast.failure_inputs import Input, fact_of
from app.forecast.machines import CUSTOM, GIVEN
from app.provenance.record import Record, record, undated
from core.machine.accelerator import Accelerator, Source
from core.machine.cluster import ASSUMED_CEILING
from core.machine.rented import NO_TERMS
from core.model.presets import preset
from core.scenario import Scenario
from core.search.job import Machine, PlanJob
from core.units import TO_SI
from hardware import power
from hardware.efficiency import GENERIC, Entry, read_entries
from hardware.habits.built_on import stack_named
from pricing.book.offers import is_booked

TYPED = "typed in by the user"
DEFAULT = "the default of this field (core/scenario/fields.py): nobody gave another one"
CEILING = "the median of the accelerators of hardware/accelerators.csv that have both figures"
FIELDS = {
    "seq_len": ("Tokens per sequence", "tokens"),
    "global_batch_size": ("Sequences per step", "sequences"),
    "num_tokens": ("Training tokens", "tokens"),
}
POWER = {
    "host_over_gpu": "Power of a host over that of its GPUs",
    "training_draw": "Draw while training, of what a machine is rated at",
    "idle_draw": "Draw while waiting",
}
RISK_UNITS = {"slow_probability": "probability", "slow_fraction": "share"}


@cache
def _entries() -> dict[tuple[str, str], Entry]:
    return {(e.stack, e.quantity): e for e in read_entries()}


def of_field(scenario: Scenario, field: str) -> Record:
    """A field of the scenario: `given`, or `assumed` if it has its default value."""
    (label, unit), value = FIELDS[field], getattr(scenario, field)
    is_default = value == Scenario.model_fields[field].default
    source = undated(DEFAULT if is_default else TYPED, f"{value}")
    return record(field, label, value, unit, "assumed" if is_default else "given", source=source)


def run_tokens(job: PlanJob) -> Record:
    """Tokens of the run: given, or of examples, epochs and packing."""
    asked, of = job.scenario, "num_tokens"
    is_default = (
        asked.num_examples is None and asked.num_tokens == Scenario.model_fields[of].default
    )
    return record(
        "run_tokens", "Tokens of the run, padding included", job.num_tokens, "tokens",
        "assumed" if is_default else "given", source=undated(DEFAULT if is_default else TYPED),
    )  # fmt: skip


def of_model(scenario: Scenario) -> Record:
    """All dimensions of the model together."""
    custom = scenario.model.strip().lower() == CUSTOM
    return record(
        "model_dimensions", "Dimensions of the model", None, "", "given" if custom else "published",
        source=undated(TYPED) if custom else preset(scenario.model).source, text=scenario.model,
    )  # fmt: skip


def of_accelerator(a: Accelerator, quantity: str, unit: str, *, key: str = "") -> Record:
    """A figure of the accelerator with the source that publishes it."""
    source, kind = a.sources.get(quantity), "published"
    if a.vendor == "custom":
        kind = "given"
    elif source is not None and source.assumed:
        kind = "assumed"
    elif quantity == "matmul_flops_per_s":
        kind = "measured"
    label = f"{a.name}: {FACT_WORDS.get(quantity, quantity).removeprefix('the ')}"
    return record(key or quantity, label, getattr(a, quantity), unit, kind, source=source)  # type: ignore[arg-type]


def peak_of(a: Accelerator) -> Record:
    """The dense 16-bit peak."""
    return of_accelerator(a, "bf16_flops_per_s", "FLOP/s", key="peak_flops_per_s")


def ceiling_of(job: PlanJob) -> Record:
    """The rate of the best measured matmul over the peak; `assumed` if none was measured."""
    machine, a = job.machine, job.machine.accelerator
    kind: Kind = "computed"
    source: Source | None = None
    inputs: tuple[Record, ...] = (peak_of(a),)
    if "matmul" in machine.measured:
        kind, source = "measured", undated(f"calibration {machine.calibration}")
    elif a.matmul_flops_per_s is None:
        kind, source, inputs = "assumed", undated(CEILING, f"{ASSUMED_CEILING}"), ()
    else:
        inputs = (of_accelerator(a, "matmul_flops_per_s", "FLOP/s"), *inputs)
    return record(
        "matmul_ceiling", "Best measured matmul over the peak", job.cluster.ceiling, "", kind,
        source=source, inputs=inputs, topic="Matrix products" if kind == "computed" else "",
    )  # fmt: skip


def fractions(stack: str, *quantities: str) -> tuple[Record, ...]:
    """Rows of hardware/efficiency.csv that the stack uses, with what they were fitted on."""
    return tuple(_fraction(stack, q) for q in quantities)


@cache
def _fraction(stack: str, quantity: str) -> Record:
    own = stack_named(stack)
    names = (own.name, own.family, GENERIC)
    entry = next(e for name in names if (e := _entries().get((name, quantity))))
    spread = "" if entry.p10 is None else f"P10 to P90 {entry.p10:.4g} to {entry.p90:.4g}"
    of = "every stack" if entry.stack == GENERIC else entry.stack
    unit = {"s": "s", "GB/s": "B/s", "MB": "B", "GiB": "B"}.get(entry.unit, "")
    return record(
        f"efficiency_{quantity}", f"Fraction: {quantity.replace('_', ' ')} ({of})", entry.value,
        unit, "fitted" if entry.basis.startswith("fitted") else "assumed",
        source=Source(
            ref=f"hardware/efficiency.csv: {entry.basis}",
            date=entry.date,
            printed=f"{entry.value / TO_SI.get(entry.unit, 1.0):.4g} {entry.unit}",
        ),
        note="; ".join(x for x in (entry.note, spread) if x),
    )  # fmt: skip


def rent_of(machine: Machine, book: str) -> tuple[Record, ...]:
    """The price of one whole instance, its GPUs, the start-up, the least that is billed, and what
    the price book adds."""
    offer, supply = machine.offer, machine.supply
    typed = offer.provider == CUSTOM or is_booked(offer)
    price = "" if offer.usd_per_hour is None else f"{offer.usd_per_hour:g} USD/h"
    source = Source(ref=offer.source, date=offer.observed_at, printed=price)
    kind: Kind = "given" if typed else "published"
    found = [
        record("usd_per_instance_hour", "Price of one instance", offer.usd_per_hour, "USD/h", kind,
               source=source, note=offer.note),
        record("gpus_per_instance", "GPUs of one instance", offer.gpu_count, "GPUs", kind,
               source=source),
    ]  # fmt: skip
    for key, label, value, source in (
        ("startup_hours", "Start-up, until training begins", supply.startup_hours, supply.startup),
        ("least_billed_hours", "Billed at least", supply.least_billed_hours, supply.billing),
    ):
        kind = "given" if source == GIVEN else "assumed" if source.assumed else "published"
        found.append(record(key, label, value, "h", kind, source=source, note=source.printed))
    if (terms := machine.terms) != NO_TERMS:
        source = undated(f"price book {book}")
        found += [
            record("storage_usd_per_hour", "Storage", terms.storage_usd_per_hour, "USD/h", "given",
                   source=source),
            record("egress_usd", "Traffic out of the cloud, once", terms.egress_usd, "USD", "given",
                   source=source),
            record("credit_usd", "Credits", terms.credit_usd, "USD", "given", source=source),
        ]  # fmt: skip
    return tuple(found)


def network_of(job: PlanJob) -> Record:
    """The network between machines: given, stated by the offer, documented for its product, usual
    for its accelerator (assumed), or none."""
    network = job.machine.network
    gbit = network.gbit_per_s
    kind: Kind = "published" if network.is_known else "assumed"
    if network.basis == "given" or job.offer.provider == CUSTOM:
        kind = "given"
    return record(
        "network_bytes_per_s", "Network of one machine",
        None if gbit is None else gbit * TO_SI["Gbit/s"], "B/s", kind, source=network.source,
        text="not sold as a cluster" if gbit is None else f"{gbit:,.4g} Gbit/s",
    )  # fmt: skip


def measured_constants(job: PlanJob) -> tuple[Record, ...]:
    """The machine constants that the scenario's calibration measured, with host and date."""
    machine = job.machine
    found = chosen(job.scenario).get(machine.accelerator.name) if machine.calibration else None
    if found is None:
        return ()
    return tuple(
        record(
            f"measured_{c.name}", f"Measured: {measured_constant(c.name)}, over what was assumed",
            c.factor, "", "measured",
            source=Source(
                ref=f"calibration {found.id}: {found.source}",
                date=found.day if found.measured_on else "",
                printed=f"{c.measured:.4g} {c.unit}",
            ),
            note="; ".join(filter(None, (f"P10 to P90 {c.low:.3g} to {c.high:.3g}", c.note))),
        )
        for c in found.constants_for(job.scenario.stack)
    )  # fmt: skip


def of_risk(item: Input, accelerator: str) -> Record:
    """An input of the failure model with its source in hardware/reliability.csv, or of the
    accelerator."""
    name = FAILURE_INPUTS[item.name]
    unit = "s" if item.name.endswith("_s") else RISK_UNITS.get(item.name, "")
    kind: Kind = "given" if item.basis == "given" else "assumed"
    source, note = undated(item.source or TYPED), ""
    if item.basis == "default":
        fact, kind = fact_of(item.name, accelerator), "published"
        source, note = Source(ref=fact.source, date=fact.source_date, printed=""), item.source
    label = f"{name[0].upper()}{name[1:]}"
    return record(item.name, label, item.value, unit, kind, source=source, note=note)


def power_facts() -> tuple[Record, ...]:
    """What of its rating a machine draws."""
    facts = {label: power.used(quantity) for quantity, label in POWER.items()}
    return tuple(
        record(
            fact.quantity, label, fact.value, "share",
            "assumed" if fact.role == "assumed" else "published", note=fact.note,
            source=Source(ref=fact.source, date=fact.source_date, printed=fact.printed),
        )
        for label, fact in facts.items()
    )  # fmt: skip

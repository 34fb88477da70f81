"""Where a forecast takes each rate of a machine from: measured here, measured by others, assumed.

A value is a rate of the machine times the fraction of it that software reaches. Its kind is one of:

measured            by a calibration in use, from `runcast calibrate` or imported
measured elsewhere  in a published measurement of this accelerator
fitted              the fraction was fitted to published runs
published           the rate is published, the fraction was only set
given               the user entered the rate
assumed             the rate itself is an assumption

Except for `measured elsewhere`, these are the kinds of app/document/vocabulary.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.calibration.document import constant_name, number
from app.document import format as fmt
from app.document.table import Table, text_column
from app.forecast import calibrations
from app.forecast.machines import CUSTOM, accelerator_of
from app.forecast.stack_limits import software
from core.machine.accelerator import Accelerator
from core.machine.calibration import PRIOR_SIGMA
from core.machine.cluster import ASSUMED_CEILING, ASSUMED_HOST_LINK_BYTES_PER_S
from core.scenario import Scenario
from hardware.efficiency import GENERIC, Entry, read_entries
from hardware.habits.built_on import stack_named

KINDS = "measured", "measured elsewhere", "fitted", "published", "given", "assumed"  # by trust
MEASURED, ELSEWHERE, FITTED, PUBLISHED, GIVEN, ASSUMED = KINDS

# The rate of an accelerator and the fraction of efficiency.csv that make up each constant.
PARTS = {
    "matmul": ("matmul_flops_per_s", "matmul"),
    "matmul_fp8": ("fp8_flops_per_s", "fp8_of_peak_ratio"),
    "attention": ("bf16_flops_per_s", "attention_forward"),
    "memory": ("memory_bytes_per_s", "memory"),
    "elementwise": ("memory_bytes_per_s", "elementwise"),
    "host_link": ("host_link_bytes_per_s", "host_link"),
    "scale_up": ("scale_up_bytes_per_s", "scale_up"),
    "scale_up_hop": ("", "hop"),
    "scale_out": ("scale_out_bytes_per_s", "scale_out"),
    "scale_out_hop": ("", "hop"),
}
HOST_LINK = f"{fmt.in_unit(ASSUMED_HOST_LINK_BYTES_PER_S, 'GB/s')} GB/s, as no source prints it"
USUAL = {"matmul": f"{ASSUMED_CEILING:.0%} of the peak", "host_link": HOST_LINK}
TABLE_OF_HOPS = "a printed latency of the fabric (hardware/fabrics.csv)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueSource:
    """A constant of a machine and where the forecast takes it from."""

    name: str
    kind: str
    label: str  # the kind, with host and date if it was measured
    text: str  # the figures behind it, with their sources


def sources_of(scenario: Scenario, accelerator_name: str) -> tuple[ValueSource, ...]:
    """The source of each constant of an accelerator in the forecast of a scenario."""
    accelerator = accelerator_of(accelerator_name, scenario)
    c = calibrations.chosen(scenario).get(accelerator.name)
    measured = {x.name: x for x in c.constants_for(scenario.stack)} if c else {}
    entries = {(e.stack, e.quantity): e for e in read_entries()}
    stack = stack_named(software(scenario))
    rows = []
    for name in PRIOR_SIGMA:
        if name == "matmul_fp8" and accelerator.fp8_flops_per_s is None:
            continue
        if c is not None and (x := measured.get(name)) is not None:
            kind, label = MEASURED, c.source
            text = (
                f"{number(x.measured, x.unit)}, assumed was {number(x.assumed, x.unit)}; the "
                f"forecast uses {x.factor:.3f} times that"
            )
        else:
            names = ((n, PARTS[name][1]) for n in (stack.name, stack.family, GENERIC))
            entry = next(e for n in names if (e := entries.get(n)) is not None)
            kind, text = _unmeasured(name, accelerator, entry)
            label = kind
        rows.append(ValueSource(name=name, kind=kind, label=label, text=text))
    return tuple(rows)


def _unmeasured(name: str, accelerator: Accelerator, fraction: Entry) -> tuple[str, str]:
    """The kind of a constant that no calibration in use has, and the figures behind it."""
    rate = PARTS[name][0]
    source = accelerator.sources.get(rate)
    basis = FITTED if fraction.basis.startswith("fitted") else PUBLISHED
    share = f"x {fraction.value:.3g} ({fraction.basis}, {fraction.date})"
    if not rate:
        return basis, f"{TABLE_OF_HOPS} {share}"
    if accelerator.name == CUSTOM:
        if name not in USUAL:
            return GIVEN, f"the data sheet as typed in {share}"
        typed = " that was typed in" if name == "matmul" else ""
        return ASSUMED, f"{USUAL[name]}{typed} {share}"
    if source is None:
        text = USUAL.get(name, "what the price offer says, as no source prints it")
        return ASSUMED, f"{text} {share}"
    kind = ASSUMED if source.assumed else ELSEWHERE if name == "matmul" else basis
    return kind, f"{source.printed} ({source.ref}, {source.date}) {share}"


def summary(rows: tuple[ValueSource, ...]) -> str:
    """The number of constants of each kind, the most trusted kind first."""
    counts = {kind: sum(s.kind == kind for s in rows) for kind in KINDS}
    listed = ", ".join(f"{fmt.count(n)} {kind}" for kind, n in counts.items() if n)
    return f"Of {fmt.count(len(rows))} constants: {listed}."


def table(rows: tuple[ValueSource, ...]) -> Table[ValueSource]:
    """Where each constant of an accelerator comes from."""
    columns = (
        text_column("Constant", lambda s: constant_name(s.name)),
        text_column("Source", lambda s: s.label),
        text_column("Value", lambda s: s.text),
    )
    return Table(caption="Constants", columns=columns, rows=rows)

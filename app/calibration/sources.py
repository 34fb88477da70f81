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
from hardware.efficiency import GENERIC, Entry, read_entries, stacks
from runners.calibration.fit import Constant

KINDS = MEASURED, ELSEWHERE, FITTED, PUBLISHED, GIVEN, ASSUMED = (
    "measured",
    "measured elsewhere",
    "fitted",
    "published",
    "given",
    "assumed",
)  # the most trusted first

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
USUAL_HOST_LINK = (
    f"{fmt.in_unit(ASSUMED_HOST_LINK_BYTES_PER_S, 'GB/s')} GB/s, as no source prints it"
)
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
    known = {x.name: x for x in c.constants_for(scenario.stack)} if c else {}
    entries = {(e.stack, e.quantity): e for e in read_entries()}
    found = []
    for name in PRIOR_SIGMA:
        if name == "matmul_fp8" and accelerator.fp8_flops_per_s is None:
            continue
        if c is not None and name in known:
            kind, label, text = MEASURED, c.source, _measured(known[name])
        else:
            rate, fraction = PARTS[name]
            entry = _entry(entries, software(scenario), fraction)
            kind, text = _unmeasured(name, accelerator, rate, entry)
            label = kind
        found.append(ValueSource(name=name, kind=kind, label=label, text=text))
    return tuple(found)


def _measured(x: Constant) -> str:
    return (
        f"{number(x.measured, x.unit)}, assumed was {number(x.assumed, x.unit)}; the forecast uses "
        f"{x.factor:.3f} times that"
    )


def _entry(entries: dict[tuple[str, str], Entry], stack: str, quantity: str) -> Entry:
    """The fraction for a stack: its own, else that of its family, else the generic one."""
    names = (stack, stacks()[stack].family, GENERIC)
    return next(e for n in names if (e := entries.get((n, quantity))) is not None)


def _unmeasured(name: str, accelerator: Accelerator, rate: str, fraction: Entry) -> tuple[str, str]:
    """The kind of a constant that no calibration in use has, and the figures behind it."""
    source = accelerator.sources.get(rate)
    basis = FITTED if fraction.basis.startswith("fitted") else PUBLISHED
    share = f"x {fraction.value:.3g} ({fraction.basis}, {fraction.date})"
    usual = {"matmul": f"{ASSUMED_CEILING:.0%} of the peak", "host_link": USUAL_HOST_LINK}
    if not rate:
        return basis, f"{TABLE_OF_HOPS} {share}"
    if accelerator.name == CUSTOM:
        if name == "matmul":
            return ASSUMED, f"{usual[name]} that was typed in {share}"
        if name == "host_link":
            return ASSUMED, f"{usual[name]} {share}"
        return GIVEN, f"the data sheet as typed in {share}"
    if source is None:
        what = usual.get(name, "what the price offer says, as no source prints it")
        return ASSUMED, f"{what} {share}"
    kind = ASSUMED if source.assumed else ELSEWHERE if name == "matmul" else basis
    return kind, f"{source.printed} ({source.ref}, {source.date}) {share}"


def summary(found: tuple[ValueSource, ...]) -> str:
    """The number of constants of each kind, the most trusted kind first."""
    counts = {kind: sum(s.kind == kind for s in found) for kind in KINDS}
    listed = ", ".join(f"{fmt.count(n)} {kind}" for kind, n in counts.items() if n)
    return f"Of {fmt.count(len(found))} constants: {listed}."


def table(rows: tuple[ValueSource, ...]) -> Table[ValueSource]:
    """Where each constant of an accelerator comes from."""
    columns = (
        text_column("Constant", lambda s: constant_name(s.name)),
        text_column("Source", lambda s: s.label),
        text_column("Value", lambda s: s.text),
    )
    return Table(caption="Constants", columns=columns, rows=rows)

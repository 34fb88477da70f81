"""Validity of a calibration result: gates, each with a sentence for the reader.

A result is `invalid` if it cannot be a measurement of what it claims, `suspect` if the measurement
was disturbed, else `ok`; a note changes nothing. docs/calibration.md has the gates in one
table. Facts about the hardware are arguments: only names are looked up here.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from core.errors import RuncastError, shown
from hardware.names import canonical, canonical_from_feed
from runners.calibration.result import CalibResult, Device, Row

ROOF = 1.02  # of the datasheet: boost clocks may be slightly above its clocks
MAX_ERROR = {"bf16": 1e-2, "fp16": 1e-2, "fp8": 0.1, "fp32": 1e-3}  # fp32 may run as TF32
MIN_ENTROPY_BITS = 6.5  # N(0, 1) has 7.05; a uniform distribution 5, zeros 0
# A CPU is shared with other processes on the machine.
MAX_SPREAD = {"gpu": 0.05, "cpu": 0.5}
MAX_DRIFT = {"gpu": 0.05, "cpu": 0.25}
# Networks, disks and the host's memory are shared with others also on a GPU's machine.
SPREAD_FACTOR = {"collectives": 6.0, "overlap": 6.0, "checkpoint": 20.0, "host_device": 4.0}
SLOW_NODE = 1.05
# Bits of nvidia-smi's clocks_throttle_reasons.active (nvml.h, nvmlClocksEventReasons).
THROTTLE = {
    0x8: "hardware slowdown", 0x20: "software thermal slowdown", 0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}  # fmt: skip
POWER_CAP = 0x4  # how large matmuls run on most data-centre parts, in training too

Severity = Literal["invalid", "suspect", "note"]
Status = Literal["ok", "suspect", "invalid"]

# The severity of each gate, what it means to the reader, and what to do.
GATES: dict[str, tuple[Severity, str]] = {
    "roof": ("invalid", "Faster than the hardware can be: another device, a wrong count, or a "
             "wrong clock."),
    "roof_unchecked": ("note", "Nothing bounds these rates from above: an impossible one would "
                       "pass."),
    "control_missing": ("invalid", "Without the control operation a change of the machine would go "
                        "unnoticed."),
    "numerics": ("invalid", "The operation computed something else, so its time says nothing."),
    "data_entropy": ("invalid", "Zeros or patterns draw less power and run faster than training "
                     "data."),
    "loss": ("invalid", "Steps that do not train may have skipped work."),
    "collective": ("invalid", "The ranks did not get what the operation promises."),
    "sku": ("invalid", "The result is of another accelerator than it claims."),
    "drift": ("suspect", "The same matmul took longer at one time than at another: something else "
              "ran, or the clocks moved. Every constant gets less weight. Measure again on "
              "a quiet machine."),
    "spread": ("suspect", "Samples of one operation differ: its constant gets less weight."),
    "throttle": ("suspect", "The device was slowed by heat or its power supply, as it may be in "
                 "training. If other nodes are not, look at the cooling."),
    "load": ("suspect", "Other programs used the CPU: measure again when it is idle."),
    "slow_node": ("suspect", "In a synchronous job every node waits for this one. Take it out, or "
                  "have it looked at, before a long run."),
    "incomplete": ("suspect", "The budget ended first: what is missing stays as assumed."),
    "mixed_devices": ("suspect", "The constants are of the slowest of different devices."),
    "sku_unknown": ("suspect", "The name could not be checked against the accelerator that was "
                    "meant."),
    "sku_untold": ("note", "It is used for gpu=custom only, with typed-in figures."),
    "sku_by_name": ("note", "It is used for that accelerator; --gpu says otherwise."),
    "power_cap": ("note", "Usual for large matmuls; training runs at this limit, too."),
    "reduced": ("note", "Meant for a CPU, or a quick check: constants of large shapes need a full "
                "run."),
    "imported": ("note", ""),
    "switch_adds": ("note", ""),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Flag:
    """One gate that failed; `rows` are the indices of the affected results."""

    code: str
    sentence: str
    rows: tuple[int, ...] = ()

    @property
    def severity(self) -> Severity:
        """How much the gate matters."""
        return GATES[self.code][0]

    @property
    def meaning(self) -> str:
        """What the gate means to the reader, and what to do."""
        return GATES[self.code][1]


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on a result and the reasons for it."""

    flags: tuple[Flag, ...] = ()
    drift: float | None = None  # highest control time over the lowest, minus 1; None with under two

    @property
    def status(self) -> Status:
        """The worst severity; notes change nothing."""
        severities = {flag.severity for flag in self.flags}
        if "invalid" in severities:
            return "invalid"
        return "suspect" if "suspect" in severities else "ok"

    @property
    def is_usable(self) -> bool:
        """Whether a calibration may be fitted to it."""
        return self.status != "invalid"

    def refusal(self) -> str:
        """Why the result is invalid, as one text; empty if it is not."""
        return " ".join(f.sentence for f in self.flags if f.severity == "invalid")


def judged(
    result: CalibResult,
    *,
    peak_flops_by_dtype: Mapping[str, float],
    memory_bandwidth: float | None,
) -> Judged:
    """Apply every gate to a result.

    Peaks are dense datasheet FLOP/s of one device by dtype (bf16, fp8, ...), the bandwidth its
    bytes/s. A dtype without a peak, or a missing bandwidth, is not checked, with a note.
    """
    flags = (
        *_roof(result, peak_flops_by_dtype, memory_bandwidth),
        *_control(result),
        *_rows(result),
        *_device(result),
        *_state(result),
        *_nodes(result),
    )
    return Judged(flags, control_drift(result))


def control_drift(result: CalibResult) -> float | None:
    """Highest time of the control operation over its lowest, minus 1."""
    times = [control.t_med_s for control in result.control]
    return max(times) / min(times) - 1 if len(times) > 1 else None


def _kind(result: CalibResult) -> str:
    return "cpu" if result.provenance.device.kind == "cpu" else "gpu"


def _flag(code: str, rows: dict[int, Row], sentence: str) -> Flag:
    """A flag of several rows, which its sentence names."""
    labels = (f"{r.probe} {r.label} {r.dtype or ''}".strip() for r in rows.values())
    names = list(dict.fromkeys(labels))
    rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return Flag(code, f"{', '.join(names[:3])}{rest}: {sentence}", tuple(rows))


def _roof(
    result: CalibResult, peaks: Mapping[str, float], bandwidth: float | None
) -> Iterator[Flag]:
    """Rates above what the hardware can do."""
    rows: dict[int, Row] = {}
    worst = 0.0
    unchecked: set[str] = set()
    name: str
    for i, row in enumerate(result.results):
        if row.flops_per_s is not None and row.dtype is not None:
            name, rate, peak = row.dtype, row.flops_per_s, peaks.get(row.dtype)
        elif row.bytes_per_s is not None and row.probe in ("memory_bandwidth", "optimizer"):
            name, rate, peak = "memory", row.bytes_per_s, bandwidth
        else:
            continue
        if not peak:
            unchecked.add(name)
        elif rate / peak > ROOF:
            rows[i] = row
            worst = max(worst, rate / peak)
    if rows:
        sentence = f"{worst:.0%} of the datasheet peak, and at most {ROOF:.0%} can be true."
        yield _flag("roof", rows, sentence)
    if unchecked:
        names = ", ".join(sorted(unchecked))
        yield Flag("roof_unchecked", f"No peak is known for {names}: those rates are not checked.")


def _control(result: CalibResult) -> Iterator[Flag]:
    drift = control_drift(result)
    watched = {control.after_group for control in result.control}
    if drift is None or "start" not in watched:
        yield Flag(
            "control_missing",
            "The control operation was not timed at the start and after the measurements, so "
            "nothing says whether the machine stayed the same.",
        )
        return
    if unwatched := sorted({row.probe for row in result.results} - watched):
        yield Flag(
            "control_missing", f"The control operation is missing after {', '.join(unwatched)}."
        )
    if drift > (limit := MAX_DRIFT[_kind(result)]):
        yield Flag(
            "drift",
            f"The control operation moved by {drift:.0%} during the run (at most {limit:.0%}): the "
            "machine was not the same throughout.",
        )


def _rows(result: CalibResult) -> Iterator[Flag]:
    """Rows that computed something wrong, or whose samples differ."""

    def where(is_bad: Callable[[Row], bool]) -> dict[int, Row]:
        return {i: row for i, row in enumerate(result.results) if is_bad(row)}

    if rows := where(lambda r: (r.rel_err or 0.0) > MAX_ERROR[r.dtype or "fp32"]):
        error = max(row.rel_err or 0.0 for row in rows.values())
        yield _flag(
            "numerics", rows,
            f"the result differs from float64 by up to {error:.2g}, so this is not that operation.",
        )  # fmt: skip
    if rows := where(
        lambda r: r.data_entropy_bits is not None and r.data_entropy_bits < MIN_ENTROPY_BITS
    ):
        sentence = "the inputs were not N(0, 1), and simpler numbers run faster."
        yield _flag("data_entropy", rows, sentence)
    if rows := where(
        lambda r: r.loss_first is not None and (r.loss_last is None or r.loss_last >= r.loss_first)
    ):
        sentence = "the loss did not fall on a fixed batch, so the steps do not train."
        yield _flag("loss", rows, sentence)
    if rows := where(lambda r: bool(r.wrong)):
        yield _flag("collective", rows, "the result of the operation is wrong.")
    limit = MAX_SPREAD[_kind(result)]
    if rows := where(lambda r: r.rel_iqr > limit * SPREAD_FACTOR.get(r.probe, 1.0)):
        widest = max(row.rel_iqr for row in rows.values())
        sentence = f"half of the samples spread over up to {widest:.0%} of the median."
        yield _flag("spread", rows, sentence)


def _state(result: CalibResult) -> Iterator[Flag]:
    """The device slowed down, or shared."""
    bits = 0
    for group in result.groups:
        for state in (group.state_before, group.state_during, group.state_after):
            bits |= int(state.get("throttle_bits", 0))
    if reasons := sorted(reason for bit, reason in THROTTLE.items() if bits & bit):
        yield Flag("throttle", f"The device was slowed down: {', '.join(reasons)}.")
    if bits & POWER_CAP:
        yield Flag("power_cap", "The device ran at its power limit.")
    cpus = result.provenance.num_cpus
    load = max((group.state_before.get("load_1min", 0.0) for group in result.groups), default=0.0)
    # The probe itself counts as one to a few running processes.
    if _kind(result) == "cpu" and cpus and load > 2 * cpus:
        yield Flag("load", f"The load average was {load:.1f} on {cpus} cores.")
    if not result.complete:
        yield Flag("incomplete", "The run did not reach all of its groups: some are missing.")
    if result.provenance.reduced:
        yield Flag("reduced", "The shapes were reduced: rates of small matrices are low.")


def _nodes(result: CalibResult) -> Iterator[Flag]:
    for index, ratio in slow_nodes(result).items():
        host = shown(result.nodes[index].host)
        yield Flag(
            "slow_node", f"Node {index} ({host}) is {ratio - 1:.0%} slower than the median node."
        )


def slow_nodes(result: CalibResult) -> dict[int, float]:
    """Nodes whose matmuls take over 5% longer than those of the median node: index -> ratio, the
    median over all matmuls."""
    ratios: dict[int, list[float]] = {}
    for row in result.rows("matmul"):
        times = row.t_med_by_node_s or []
        for index, time_s in enumerate(times if len(times) > 1 else []):
            ratios.setdefault(index, []).append(time_s / statistics.median_low(times))
    medians = {index: statistics.median(values) for index, values in ratios.items()}
    return {index: ratio for index, ratio in medians.items() if ratio > SLOW_NODE}


def _device(result: CalibResult) -> Iterator[Flag]:
    device = result.provenance.device
    name = shown(device.name)
    if others := sorted({n.device_name for n in result.nodes} - {device.name}):
        sentence = f"The nodes have different devices: {name} and {shown(others[0])}."
        yield Flag("mixed_devices", sentence)
    if device.sku_key is None:
        untold = "The result does not say which accelerator was meant"
        known = accelerator_of(device)
        if known is None:
            yield Flag("sku_untold", f"{untold}.")
        else:
            sentence = f"{untold}; its device calls itself {name}, which is {known}."
            yield Flag("sku_by_name", sentence)
        return
    try:
        wanted = canonical(device.sku_key)
    except RuncastError as e:
        yield Flag("sku", str(e))
        return
    actual = None if device.kind == "cpu" else _canonical_device(device.name, device.memory_bytes)
    if device.kind == "cpu" or (actual is not None and actual != wanted):
        yield Flag(
            "sku",
            f"The result is meant for {wanted} but was measured on {shown(actual or device.name)}.",
        )
    elif actual is None:
        yield Flag(
            "sku_unknown", f"The device calls itself {name}, which is no known name of {wanted}."
        )


def accelerator_of(device: Device) -> str | None:
    """The accelerator that a result is of: as it says, else by the name of its device where that
    name is known; None for a CPU and for a name that no table has."""
    if device.sku_key is not None:
        return canonical(device.sku_key)
    return None if device.kind == "cpu" else _canonical_device(device.name, device.memory_bytes)


def _canonical_device(name: str, memory_bytes: float) -> str | None:
    """The accelerator of a device by its own name, or None; memory distinguishes variants."""
    try:
        return canonical(name)
    except RuncastError:
        return canonical_from_feed(name, memory_bytes / 2**30)

"""Validity of a calibration result: gates, each with a sentence for the reader.

A result is `invalid` if it cannot be a measurement of what it claims, `suspect` if the measurement
was disturbed, else `ok`; a note changes nothing. docs/calibration.md has the gates in one
table. Facts about the hardware are arguments: only names are looked up here.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
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


@dataclass(frozen=True, slots=True)
class Flag:
    """One gate that failed; `rows` are the indices of the affected results."""

    code: str
    severity: Severity
    sentence: str
    rows: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on a result and the reasons for it."""

    status: Status
    flags: tuple[Flag, ...]
    drift: float | None  # highest control time over the lowest, minus 1; None with fewer than two

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
        *_numerics(result),
        *_training(result),
        *_collectives(result),
        *_device(result),
        *_spread(result),
        *_state(result),
        *_nodes(result),
        *_completeness(result),
    )
    found = {flag.severity for flag in flags}
    status: Status = "invalid" if "invalid" in found else "suspect" if "suspect" in found else "ok"
    return Judged(status, flags, control_drift(result))


def control_drift(result: CalibResult) -> float | None:
    """Highest time of the control operation over its lowest, minus 1."""
    times = [control.t_med_s for control in result.control]
    return max(times) / min(times) - 1 if len(times) > 1 else None


def _kind(result: CalibResult) -> str:
    return "cpu" if result.provenance.device.kind == "cpu" else "gpu"


def _listed(rows: list[tuple[int, Row]]) -> tuple[str, tuple[int, ...]]:
    """The names of rows for a sentence, and their indices."""
    names = list(dict.fromkeys(f"{r.probe} {r.label} {r.dtype or ''}".strip() for _, r in rows))
    rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + rest, tuple(i for i, _ in rows)


# --- more than the hardware can do ---------------------------------------------------------------


def _roof(
    result: CalibResult, peaks: Mapping[str, float], bandwidth: float | None
) -> Iterator[Flag]:
    over: list[tuple[int, Row]] = []
    worst = 0.0
    unchecked: set[str] = set()
    for i, row in enumerate(result.results):
        share = None
        if row.flops_per_s is not None and row.dtype is not None:
            if peak := peaks.get(row.dtype):
                share = row.flops_per_s / peak
            else:
                unchecked.add(row.dtype)
        elif row.bytes_per_s is not None and row.probe in ("memory_bandwidth", "optimizer"):
            if bandwidth:
                share = row.bytes_per_s / bandwidth
            else:
                unchecked.add("memory")
        if share is not None and share > ROOF:
            over.append((i, row))
            worst = max(worst, share)
    if over:
        names, rows = _listed(over)
        yield Flag(
            "roof", "invalid",
            f"{names}: {worst:.0%} of the datasheet peak, and at most {ROOF:.0%} can be true.",
            rows,
        )  # fmt: skip
    if unchecked:
        yield Flag(
            "roof_unchecked", "note",
            f"No peak is known for {', '.join(sorted(unchecked))}: those rates are not checked.",
        )  # fmt: skip


# --- disturbed ------------------------------------------------------------------------------------


def _control(result: CalibResult) -> Iterator[Flag]:
    drift = control_drift(result)
    measured = {row.probe for row in result.results}
    watched = {control.after_group for control in result.control}
    if drift is None or "start" not in watched:
        yield Flag(
            "control_missing", "invalid",
            "The control operation was not timed at the start and after the measurements, so "
            "nothing says whether the machine stayed the same.",
        )  # fmt: skip
        return
    if unwatched := sorted(measured - watched):
        yield Flag(
            "control_missing", "invalid",
            f"The control operation is missing after {', '.join(unwatched)}.",
        )  # fmt: skip
    if drift > (limit := MAX_DRIFT[_kind(result)]):
        yield Flag(
            "drift", "suspect",
            f"The control operation moved by {drift:.0%} during the run (at most {limit:.0%}): the "
            "machine was not the same throughout.",
        )  # fmt: skip


def _spread(result: CalibResult) -> Iterator[Flag]:
    limit = MAX_SPREAD[_kind(result)]
    wide = [
        (i, row)
        for i, row in enumerate(result.results)
        if row.rel_iqr > limit * SPREAD_FACTOR.get(row.probe, 1.0)
    ]
    if wide:
        names, rows = _listed(wide)
        widest = max(row.rel_iqr for _, row in wide)
        yield Flag(
            "spread", "suspect",
            f"{names}: half of the samples spread over up to {widest:.0%} of the median.", rows,
        )  # fmt: skip


def _state(result: CalibResult) -> Iterator[Flag]:
    reasons: set[str] = set()
    capped = False
    for group in result.groups:
        for state in (group.state_before, group.state_during, group.state_after):
            bits = int(state.get("throttle_bits", 0))
            reasons |= {reason for bit, reason in THROTTLE.items() if bits & bit}
            capped |= bool(bits & POWER_CAP)
    if reasons:
        yield Flag(
            "throttle", "suspect", f"The device was slowed down: {', '.join(sorted(reasons))}."
        )
    if capped:
        yield Flag("power_cap", "note", "The device ran at its power limit.")
    cpus = result.provenance.num_cpus
    loads = [group.state_before.get("load_1min", 0.0) for group in result.groups]
    # The probe itself counts as one to a few running processes.
    if _kind(result) == "cpu" and cpus and loads and max(loads) > 2 * cpus:
        yield Flag("load", "suspect", f"The load average was {max(loads):.1f} on {cpus} cores.")


def _nodes(result: CalibResult) -> Iterator[Flag]:
    for index, ratio in slow_nodes(result).items():
        node = result.nodes[index]
        yield Flag(
            "slow_node", "suspect",
            f"Node {index} ({shown(node.host)}) is {ratio - 1:.0%} slower than the median node.",
        )  # fmt: skip


def slow_nodes(result: CalibResult) -> dict[int, float]:
    """Nodes whose matmuls take over 5% longer than those of the median node: index -> ratio, the
    median over all matmuls."""
    ratios: dict[int, list[float]] = {}
    for row in result.rows("matmul"):
        times = row.t_med_by_node_s or []
        for index, time_s in enumerate(times if len(times) > 1 else []):
            ratios.setdefault(index, []).append(time_s / statistics.median_low(times))
    medians = {index: statistics.median(found) for index, found in ratios.items()}
    return {index: ratio for index, ratio in medians.items() if ratio > SLOW_NODE}


def _completeness(result: CalibResult) -> Iterator[Flag]:
    if not result.complete:
        yield Flag(
            "incomplete", "suspect", "The run did not reach all of its groups: some are missing."
        )
    if result.provenance.reduced:
        yield Flag("reduced", "note", "The shapes were reduced: rates of small matrices are low.")


# --- wrong ---------------------------------------------------------------------------------------


def _numerics(result: CalibResult) -> Iterator[Flag]:
    rows = list(enumerate(result.results))
    wrong = [
        (i, row)
        for i, row in rows
        if row.rel_err is not None and row.rel_err > MAX_ERROR.get(row.dtype or "fp32", 0.0)
    ]
    if wrong:
        names, indices = _listed(wrong)
        yield Flag(
            "numerics", "invalid",
            f"{names}: the result differs from float64 by up to "
            f"{max(row.rel_err or 0.0 for _, row in wrong):.2g}, so this is not that operation.",
            indices,
        )  # fmt: skip
    poor = [
        (i, row)
        for i, row in rows
        if row.data_entropy_bits is not None and row.data_entropy_bits < MIN_ENTROPY_BITS
    ]
    if poor:
        names, indices = _listed(poor)
        yield Flag(
            "data_entropy", "invalid",
            f"{names}: the inputs were not N(0, 1), and simpler numbers run faster.", indices,
        )  # fmt: skip


def _training(result: CalibResult) -> Iterator[Flag]:
    stuck = [
        (i, row)
        for i, row in enumerate(result.results)
        if row.loss_first is not None and (row.loss_last is None or row.loss_last >= row.loss_first)
    ]
    if stuck:
        names, indices = _listed(stuck)
        yield Flag(
            "loss", "invalid",
            f"{names}: the loss did not fall on a fixed batch, so the steps do not train.", indices,
        )  # fmt: skip


def _collectives(result: CalibResult) -> Iterator[Flag]:
    bad = [(i, row) for i, row in enumerate(result.results) if row.wrong]
    if bad:
        names, indices = _listed(bad)
        yield Flag(
            "collective", "invalid", f"{names}: the result of the operation is wrong.", indices
        )


def _device(result: CalibResult) -> Iterator[Flag]:
    device = result.provenance.device
    others = sorted({n.device_name for n in result.nodes} - {device.name})
    if others:
        yield Flag(
            "mixed_devices", "suspect",
            f"The nodes have different devices: {shown(device.name)} and {shown(others[0])}.",
        )  # fmt: skip
    if device.sku_key is None:
        told = "The result does not say which accelerator was meant"
        known = accelerator_of(device)
        if known is None:
            yield Flag("sku_untold", "note", f"{told}.")
        else:
            by_name = f"its device calls itself {shown(device.name)}, which is {known}"
            yield Flag("sku_by_name", "note", f"{told}; {by_name}.")
        return
    try:
        wanted = canonical(device.sku_key)
    except RuncastError as e:
        yield Flag("sku", "invalid", str(e))
        return
    found = None if device.kind == "cpu" else _canonical_device(device.name, device.memory_bytes)
    if device.kind == "cpu" or (found is not None and found != wanted):
        yield Flag(
            "sku", "invalid",
            f"The result is meant for {wanted} but was measured on {shown(found or device.name)}.",
        )  # fmt: skip
    elif found is None:
        yield Flag(
            "sku_unknown", "suspect",
            f"The device calls itself {shown(device.name)}, which is no known name of {wanted}.",
        )  # fmt: skip


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

"""Traces of the torch profiler (Chrome trace JSON): the time of a step, by kind of kernel.

torch.profiler writes `traceEvents`: spans (`ph` X) with `ts` and `dur` in microseconds, steps as
`ProfilerStep#3`, kernels with `cat` kernel. Communication is exposed while no other kernel of its
process runs. A profiler slows the run, so a step here does not give a throughput.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from statistics import median

import numpy as np
from numpy.typing import NDArray

from core.errors import shown
from hardware.outside.json_text import Bounds, OutsideError, json_value
from runners.imports.text import MAX_BYTES, ImportFileError, unpacked

MAX_EVENTS = 2_000_000
BOUNDS = Bounds(num_bytes=MAX_BYTES, values=6_000_000, lists=MAX_EVENTS)
KINDS = ("communication", "attention", "matmul", "other")
_STEP = re.compile(r"ProfilerStep#(\d{1,9})")
_NAMES = (
    ("communication", re.compile(r"nccl|rccl|msccl|nvshmem|all_?reduce_kernel", re.IGNORECASE)),
    ("attention", re.compile(r"flash|fmha|attention|sdpa|attn", re.IGNORECASE)),
    (
        "matmul",
        re.compile(r"gemm|cutlass|cublas|nvjet|xmma|wgmma|Cijk_|matmul|splitK", re.IGNORECASE),
    ),
)

Spans = NDArray[np.float64]  # (n, 2): from and to, seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The steps of one trace."""

    step_s: float  # median of the steps but the first
    num_steps: int  # number of steps in the median
    shares: dict[str, float]  # of the steps' time: kernels of each kind, overlapping ones once
    exposed: float  # share of the steps' time with communication and no other kernel
    idle: float  # share without any kernel
    num_kernels: int
    num_left_out: int  # events without a finite time
    world_size: int | None
    device: str


def kind_of(name: str) -> str:
    """The kind of a kernel, by its name.

    >>> [kind_of(n) for n in ("ncclDevKernel_AllGather_RING_LL", "nvjet_tst_128x256", "vectorized")]
    ['communication', 'matmul', 'other']
    """
    return next((kind for kind, pattern in _NAMES if pattern.search(name[:300])), "other")


def is_one(content: bytes) -> bool:
    """Whether the content begins like a trace."""
    return content.lstrip()[:1] in (b"{", b"[") and b"traceEvents" in content[: 1 << 20]


def parse(content: bytes, name: str) -> Profile:
    """The steps of a trace, compressed with gzip or not; ImportFileError if there are none."""
    try:
        found = json_value(unpacked(content, name), BOUNDS)
    except OutsideError as e:
        raise ImportFileError(f"{shown(name)} {e.clause}.") from None
    events = found.get("traceEvents") if isinstance(found, dict) else found
    if not isinstance(events, list):
        raise ImportFileError(f"{shown(name)} has no traceEvents: it is no trace of the profiler.")
    if len(events) > MAX_EVENTS:
        raise ImportFileError(
            f"The trace has {len(events):,} events, at most {MAX_EVENTS:,} are read: profile fewer "
            "steps."
        )
    steps: dict[int, tuple[float, float]] = {}
    kernels: dict[str, list[tuple[float, float]]] = defaultdict(list)
    left_out = 0
    for event in events:
        if not isinstance(event, dict) or event.get("ph") != "X":
            continue
        label, kind = str(event.get("name", "")), str(event.get("cat", "")).lower()
        step = _STEP.match(label) if "kernel" not in kind and not kind.startswith("gpu") else None
        if step is None and kind != "kernel":
            continue
        span = _span(event)
        if span is None:
            left_out += 1
        elif step is not None:
            steps[int(step[1])] = span
        else:
            kernels[kind_of(label)].append(span)
    return _profile(steps, kernels, left_out, found if isinstance(found, dict) else {})


def _span(event: dict[str, object]) -> tuple[float, float] | None:
    start, length = event.get("ts"), event.get("dur")
    if not isinstance(start, int | float) or not isinstance(length, int | float):
        return None
    if isinstance(start, bool) or isinstance(length, bool) or length < 0:
        return None
    begin, end = float(start) * 1e-6, (float(start) + float(length)) * 1e-6
    return (begin, end) if isfinite(begin) and isfinite(end) and abs(end) < 1e15 else None


def _profile(
    steps: dict[int, tuple[float, float]],
    kernels: dict[str, list[tuple[float, float]]],
    left_out: int,
    about: dict[str, object],
) -> Profile:
    """The profile of the steps, without the first one, which includes the start of the profiler."""
    numbers = sorted(steps)[1:] or sorted(steps)
    lasted = [steps[n][1] - steps[n][0] for n in numbers]
    if not lasted or min(lasted) <= 0:
        raise ImportFileError(
            "The trace has no step that lasts (ProfilerStep#N): call profiler.step() after every "
            "step of training, and export after some."
        )
    window = np.array([steps[n] for n in numbers])
    whole = float(np.sum(window[:, 1] - window[:, 0]))
    spans = {kind: _within(_union(kernels.get(kind, ())), window) for kind in KINDS}
    compute = _union(s for kind in KINDS[1:] for s in spans[kind])
    every = _union([*compute, *spans["communication"]])
    return Profile(
        step_s=median(lasted),
        num_steps=len(lasted),
        shares={kind: _length(spans[kind]) / whole for kind in KINDS},
        exposed=(_length(every) - _length(compute)) / whole,
        idle=max(0.0, 1.0 - _length(every) / whole),
        num_kernels=sum(map(len, kernels.values())),
        num_left_out=left_out,
        world_size=_world_size(about),
        device=_device(about),
    )


def _union(spans: Iterable[tuple[float, float]] | Spans) -> Spans:
    """The union of the spans, in order."""
    found = np.array(sorted(map(tuple, spans)), dtype=float).reshape(-1, 2)
    if not len(found):
        return found
    reach = np.maximum.accumulate(found[:, 1])
    starts = np.flatnonzero(np.concatenate([[True], found[1:, 0] > reach[:-1]]))
    return np.stack([found[starts, 0], np.append(reach[starts[1:] - 1], reach[-1])], axis=1)


def _within(spans: Spans, windows: Spans) -> Spans:
    """The parts of disjoint spans that lie in the steps."""
    cut = [np.clip(spans[(spans[:, 1] > a) & (spans[:, 0] < b)], a, b) for a, b in _union(windows)]
    return np.concatenate([*cut, np.empty((0, 2))])


def _length(spans: Spans) -> float:
    return float(np.sum(spans[:, 1] - spans[:, 0]))


def _world_size(about: dict[str, object]) -> int | None:
    info = about.get("distributedInfo")
    size = info.get("world_size") if isinstance(info, dict) else None
    return size if isinstance(size, int) and 0 < size <= 2**17 else None


def _device(about: dict[str, object]) -> str:
    devices = about.get("deviceProperties")
    first = devices[0] if isinstance(devices, list) and devices else None
    name = first.get("name") if isinstance(first, dict) else None
    return "".join(c for c in name[:80] if c.isprintable()) if isinstance(name, str) else ""

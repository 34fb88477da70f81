"""Output of mamf-finder: rates of matmuls by shape, and the best of them.

stas00/ml-engineering compute/accelerator/benchmarks/mamf-finder.py, read at 0359db89 (benchmark
version 4) and in the versions before it. Shapes are MxNxK; TFLOPS are 1e12 FLOP/s, 2 M N K a call.
Before version 3, a line per shape has the mean, median and maximum of its iterations; later
versions add two headlines: MAMF, a burst at the boost clock, and MSMF, the sustained rate under
full load. For training the sustained rate counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from runners.imports.text import ImportFileError, positive

DTYPES = {
    "bfloat16": "bf16", "float16": "fp16", "float32": "fp32",
    "float8_e4m3fn": "fp8", "float8_e4m3fnuz": "fp8",
}  # fmt: skip
MAX_SHAPES = 50_000

_FIGURE = r"(\d{1,6}(?:\.\d{1,3})?)"
_SHAPE = r"(\d{1,7})x(\d{1,7})x(\d{1,7})"
_LINE = re.compile(rf"\d+ \| +{_FIGURE}\(mean\) +{_FIGURE}\(median\) +{_FIGURE}\(max\) @ {_SHAPE}")
_SCOUT = re.compile(rf"^\s*\d+\s+{_SHAPE}\s+{_FIGURE}\s+{_FIGURE}\s+{_FIGURE}\s+{_FIGURE}(?:\s|$)")
_BEST = re.compile(rf"\b(mean|median|max): +{_FIGURE} TFLOPS @ {_SHAPE}")
_HEADLINE = re.compile(rf"\b(MAMF|MSMF) \([^)]{{1,60}}\): +{_FIGURE} TFLOPS @ {_SHAPE}")
_DTYPE = re.compile(r"\*\* Dtype: (?:torch\.)?(\w{1,30})")
_DEVICE = re.compile(r"name='([^']{1,100})'")
_STARTED = re.compile(r"Benchmark started on (\d{4}-\d\d-\d\d)")
_SOFTWARE = re.compile(r"^-? ?(torch|cuda|hip)=(\S{1,60}?),?(?:\s|$)")
_VERSION = re.compile(r"benchmark version: (\d{1,4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Matmul:
    """One shape, with the rate of its median iteration, or the rate that its line has instead."""

    m: int
    n: int
    k: int
    flops_per_s: float
    kind: str  # median, best_median, sustained or boost


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamf:
    """One run of mamf-finder."""

    dtype: str  # bf16, fp16, fp8, fp32 or as printed
    device: str
    started: str  # YYYY-MM-DD; '' if the file has none
    software: dict[str, str]
    version: str  # version of the benchmark's method
    shapes: tuple[Matmul, ...]  # every shape once, from its own line
    best: tuple[tuple[str, Matmul], ...]  # printed as the best, by name

    @property
    def usable(self) -> tuple[Matmul, ...]:
        """The shapes from which the rate of a machine may be fitted: every shape of the sweep, else
        the sustained headline, else the best median."""
        if self.shapes:
            return self.shapes
        named = dict(self.best)
        for name in ("msmf", "median", "mean"):
            if name in named:
                return (named[name],)
        return ()


def is_one(lines: Sequence[str]) -> bool:
    """Whether the lines have this format."""
    return any(_BEST.search(x) or _HEADLINE.search(x) or _LINE.search(x) for x in lines)


def parse(lines: Sequence[str]) -> Mamf:
    """The figures of one run; ImportFileError for none, or for two runs."""
    shapes: dict[tuple[int, int, int], Matmul] = {}
    best: dict[str, Matmul] = {}
    dtypes: set[str] = set()
    device = started = version = ""
    software: dict[str, str] = {}
    for line in lines:
        if match := _LINE.search(line):
            _add(shapes, match.groups()[3:], match[2])
        elif match := _SCOUT.match(line):
            _add(shapes, match.groups()[:3], match[5])
        elif match := _BEST.search(line):
            kind = "best_median" if match[1] == "median" else f"best_{match[1]}"
            best |= _one(match[1], match.groups()[2:], match[2], kind)
        elif match := _HEADLINE.search(line):
            kind = "sustained" if match[1] == "MSMF" else "boost"
            best |= _one(match[1].lower(), match.groups()[2:], match[2], kind)
        elif match := _DTYPE.search(line):
            dtypes.add(DTYPES.get(match[1], match[1]))
        elif match := _STARTED.search(line):
            started = match[1]
        elif match := _VERSION.search(line):
            version = match[1]
        elif match := _SOFTWARE.match(line):
            software[match[1]] = match[2]
        if match := _DEVICE.search(line):
            device = match[1]
        if len(shapes) > MAX_SHAPES:
            raise ImportFileError(f"The file has more than {MAX_SHAPES:,} shapes.")
    if len(dtypes) > 1:
        raise ImportFileError(
            f"The file has runs of several number formats ({', '.join(sorted(dtypes))}): import "
            "each on its own."
        )
    if not shapes and not best:
        raise ImportFileError("The file is of mamf-finder, and has no rate above zero.")
    return Mamf(
        dtype=next(iter(dtypes), ""),
        device=device,
        started=started,
        software=software,
        version=version,
        shapes=tuple(shapes.values()),
        best=tuple(best.items()),
    )


def _add(shapes: dict[tuple[int, int, int], Matmul], axes: Sequence[str], tflops: str) -> None:
    made = _one("", axes, tflops, "median")
    for found in made.values():
        shapes.setdefault((found.m, found.n, found.k), found)


def _one(name: str, axes: Sequence[str], tflops: str, kind: str) -> dict[str, Matmul]:
    """The matmul by its name; empty if a figure is zero."""
    m, n, k = (int(axis) for axis in axes[:3])
    rate = positive(tflops)
    if rate is None or min(m, n, k) < 1:
        return {}
    return {name: Matmul(m=m, n=n, k=k, flops_per_s=rate * 1e12, kind=kind)}

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
from typing import Any

from runners.imports.result import MAX_MATMULS, ImportResult, MatmulKind, MatmulRate, import_result
from runners.imports.text import ImportFileError, positive

DTYPES = {
    "bfloat16": "bf16", "float16": "fp16", "float32": "fp32",
    "float8_e4m3fn": "fp8", "float8_e4m3fnuz": "fp8",
}  # fmt: skip
MAX_SHAPES = 50_000
KINDS: dict[str, MatmulKind] = {
    "mean": "best_mean", "median": "best_median", "max": "best_max", "msmf": "sustained",
    "mamf": "boost",
}  # fmt: skip

_FIGURE = r"(\d{1,6}(?:\.\d{1,3})?)"
_SHAPE = r"(\d{1,7})x(\d{1,7})x(\d{1,7})"
_LINE = re.compile(rf"\d+ \| +{_FIGURE}\(mean\) +{_FIGURE}\(median\) +{_FIGURE}\(max\) @ {_SHAPE}")
_SCOUT = re.compile(rf"^\s*\d+\s+{_SHAPE}\s+{_FIGURE}\s+{_FIGURE}\s+{_FIGURE}\s+{_FIGURE}(?:\s|$)")
_BEST = re.compile(
    r"\b(?:(?P<plain>mean|median|max)|(?P<headline>MAMF|MSMF) \([^)]{1,60}\)): +"
    rf"{_FIGURE} TFLOPS @ {_SHAPE}"
)
_DTYPE = re.compile(r"\*\* Dtype: (?:torch\.)?(\w{1,30})")
_DEVICE = re.compile(r"name='([^']{1,100})'")
_STARTED = re.compile(r"Benchmark started on (\d{4}-\d\d-\d\d)")
_SOFTWARE = re.compile(r"^-? ?(torch|cuda|hip)=(\S{1,60}?),?(?:\s|$)")
_VERSION = re.compile(r"benchmark version: (\d{1,4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamf:
    """One run of mamf-finder."""

    dtype: str  # bf16, fp16, fp8, fp32 or as printed
    device: str
    started: str  # YYYY-MM-DD; '' if the file has none
    software: dict[str, str]
    version: str  # version of the benchmark's method
    shapes: tuple[MatmulRate, ...]  # every shape once, from its own line
    best: tuple[tuple[str, MatmulRate], ...]  # printed as the best, by name

    @property
    def usable(self) -> tuple[MatmulRate, ...]:
        """The shapes from which the rate of a machine may be fitted: every shape of the sweep, else
        the sustained headline, else the best median."""
        if self.shapes:
            return self.shapes
        named = dict(self.best)
        for name in ("msmf", "median", "mean"):
            if name in named:
                return (named[name],)
        return ()

    def result(self, *, date: str | None, **origin: Any) -> ImportResult:
        """The document of the file; ImportFileError if it is not usable."""
        if self.dtype not in ("bf16", "fp16", "fp8"):
            formats = f"of {self.dtype}" if self.dtype else (
                "of a number format that it does not name"
            )  # fmt: skip
            raise ImportFileError(
                f"The file has matmuls {formats}; those of bfloat16, float16 and float8 are used."
            )
        return import_result(
            format="mamf-finder", device=self.device, software=self.software,
            measured_on=date or self.started or None, matmul_dtype=self.dtype,
            matmuls=list(self.usable[:MAX_MATMULS]), **origin,
        )  # fmt: skip


def is_one(lines: Sequence[str]) -> bool:
    """Whether the lines have this format."""
    return any(_BEST.search(x) or _LINE.search(x) for x in lines)


def parse(lines: Sequence[str]) -> Mamf:
    """The figures of one run; ImportFileError for none, or for two runs."""
    shapes: dict[tuple[int, int, int], MatmulRate] = {}
    best: dict[str, MatmulRate] = {}
    dtypes: set[str] = set()
    device = started = version = ""
    software: dict[str, str] = {}
    for line in lines:
        if match := _LINE.search(line) or _SCOUT.match(line):
            figures = match.groups()
            is_line = match.re is _LINE
            axes, tflops = (figures[3:], figures[1]) if is_line else (figures[:3], figures[4])
            if (rate := _rate(axes, tflops, "median")) is not None:
                shapes.setdefault((rate.m, rate.n, rate.k), rate)
        elif match := _BEST.search(line):
            name = (match["plain"] or match["headline"]).lower()
            if (rate := _rate(match.groups()[3:], match[3], KINDS[name])) is not None:
                best[name] = rate
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


def _rate(axes: Sequence[str], tflops: str, kind: MatmulKind) -> MatmulRate | None:
    """The rate of a matmul; None if a figure is zero."""
    m, n, k = (int(axis) for axis in axes[:3])
    rate = positive(tflops)
    if rate is None or min(m, n, k) < 1:
        return None
    return MatmulRate(m=m, n=n, k=k, flops_per_s=rate * 1e12, kind=kind)

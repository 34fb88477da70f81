"""Measured rates of single kernels: hardware/measured_kernels.csv."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.errors import FactError
from core.units import to_si

KERNELS_CSV = Path(__file__).with_name("measured_kernels.csv")
KERNELS = ("matmul", "attention_forward", "attention_backward")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredKernels:
    """Columns of one row a measurement; NaN where a column does not concern the kernel."""

    accelerator: NDArray[np.str_]
    kernel: NDArray[np.str_]
    precision: NDArray[np.str_]
    version: NDArray[np.str_]
    source: NDArray[np.str_]
    m: NDArray[np.float64]
    n: NDArray[np.float64]
    k: NDArray[np.float64]
    seq_len: NDArray[np.float64]
    head_dim: NDArray[np.float64]
    flops_per_s: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.kernel)


@cache
def measured_kernels(path: Path = KERNELS_CSV) -> MeasuredKernels:
    """The table. Raises `FactError` for an unknown kernel or a row without source or date."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for line, row in enumerate(rows, start=2):
        if row["kernel"] not in KERNELS or not row["source"] or not row["source_date"]:
            raise FactError(f"{path.name}:{line}: unknown kernel, or no source or date")
    numbers = {
        name: np.array([float(r[name]) if r[name] else np.nan for r in rows])
        for name in ("m", "n", "k", "seq_len", "head_dim")
    }
    texts = ("accelerator", "kernel", "precision", "version", "source")
    return MeasuredKernels(
        **{name: np.array([r[name] for r in rows]) for name in texts},
        **numbers,
        flops_per_s=np.array([to_si(float(r["tflops"]), "TFLOP/s") for r in rows]),
    )

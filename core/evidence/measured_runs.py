"""Runs as measured, with the traits that forecasts are compared with them by."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Words = NDArray[np.str_]

FEW_WORDS = 16  # are compared one by one, more are sorted first
# How far apart two runs are at distance 1, in doublings unless another unit is given.
SCALES = {
    "micro_batch_tokens": 3.0, "hidden_size": 1.5, "num_layers": 1.2, "num_experts": 3.0,
    "num_gpus": 4.0, "tp": 2.0, "pp": 2.5, "cp": 2.5, "ep": 2.5, "virtual_stages": 2.0,
    "num_microbatches": 3.0, "seq_len": 2.5, "peak": 2.5, "matmul_bits": 1.0,
    "software_year": 0.6,  # years
    "recompute": 1.0,  # kinds: none, selective, full
    "cuda_graphs": 0.8,  # of the whole step
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What runs are compared by, as columns; '' for an unknown stack, which is like no other."""

    family: Words
    stack: Words
    accelerator: Words
    number_format: Words
    task: Words
    experts: NDArray[np.bool_]
    numbers: Numbers  # a column for each of SCALES, as logarithms to base 2 where in doublings

    def __len__(self) -> int:
        return len(self.stack)

    def take(self, rows: NDArray[Any]) -> Self:
        """The chosen rows, by mask or by index."""
        return type(self)(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    def joined(self, other: Self) -> Self:
        """These rows, then those of another."""
        names = [f.name for f in fields(self)]
        return type(self)(
            **{n: np.concatenate([getattr(self, n), getattr(other, n)]) for n in names}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRuns:
    """Runs with their residual. Publications are '' where nothing is known of them."""

    run_id: Words
    traits: Traits
    publication: Words
    log_ratio: Numbers  # ln(measured / forecast of the model)
    own: NDArray[np.bool_]  # measured by the user who forecasts

    def __len__(self) -> int:
        return len(self.run_id)

    def joined(self, other: Self) -> Self:
        """These runs, then those of another table."""
        columns = {
            f.name: np.concatenate([getattr(self, f.name), getattr(other, f.name)])
            for f in fields(self)
            if f.name != "traits"
        }
        return type(self)(traits=self.traits.joined(other.traits), **columns)

    def take(self, rows: NDArray[Any]) -> Self:
        """The chosen runs, by mask or by index."""
        columns = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "traits"}
        taken = {name: column[rows] for name, column in columns.items()}
        return type(self)(traits=self.traits.take(rows), **taken)


def same(a: Words, b: Words) -> NDArray[np.bool_]:
    """Whether the words of each pair of rows are equal."""
    words, code = np.unique(a, return_inverse=True)
    found: NDArray[np.bool_]
    if len(words) <= FEW_WORDS:
        found = words[:, None] == b
        return found[code]
    _, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    found = codes[: len(a), None] == codes[len(a) :]
    return found


def same_user(a: Words, b: Words) -> NDArray[np.bool_]:
    """Whether the publications of each pair of rows are one user's; '' is every user's."""
    return same(a, b) | (a == "")[:, None] | (b == "")

"""An uncertain number: its mean and three quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from core.numeric import Numeric, as_float

Value = Any  # a number, or a column of numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertain:
    """Mean, P10, P50 and P90 of an uncertain number, or of a column of them.

    Infinite: the run never ends. NaN: not known. The mean may lie above the P50: delays are longer
    than gains.
    """

    mean: Value
    p10: Value
    p50: Value
    p90: Value

    def times(self, factor: Numeric) -> Uncertain:
        """Multiply every figure by a certain factor."""
        return Uncertain(
            mean=self.mean * factor, p10=self.p10 * factor, p50=self.p50 * factor,
            p90=self.p90 * factor,
        )  # fmt: skip

    def plus(self, amount: Numeric) -> Uncertain:
        """Add a certain amount to every figure."""
        return Uncertain(
            mean=self.mean + amount, p10=self.p10 + amount, p50=self.p50 + amount,
            p90=self.p90 + amount,
        )  # fmt: skip

    def at_least(self, floor: Uncertain) -> Uncertain:
        """Raise every figure to that of a floor."""
        return Uncertain(
            mean=np.maximum(self.mean, floor.mean), p10=np.maximum(self.p10, floor.p10),
            p50=np.maximum(self.p50, floor.p50), p90=np.maximum(self.p90, floor.p90),
        )  # fmt: skip

    def where(self, rows: Numeric, other: Uncertain) -> Uncertain:
        """Take these rows, and all others from another column."""
        return Uncertain(
            mean=np.where(rows, self.mean, other.mean), p10=np.where(rows, self.p10, other.p10),
            p50=np.where(rows, self.p50, other.p50), p90=np.where(rows, self.p90, other.p90),
        )  # fmt: skip

    def row(self, number: int) -> Uncertain:
        """The figures of one row of a column, as plain numbers."""
        return Uncertain(
            mean=number_of_row(self.mean, number), p10=number_of_row(self.p10, number),
            p50=number_of_row(self.p50, number), p90=number_of_row(self.p90, number),
        )  # fmt: skip


def certain(value: Numeric) -> Uncertain:
    """A number that is certain."""
    return Uncertain(mean=value, p10=value, p50=value, p90=value)


def number_of_row(values: Numeric, number: int) -> float:
    """One number of a column, or the number that all rows share."""
    column = np.asarray(values, dtype=float)
    value = as_float(column) if column.ndim == 0 else float(column[number])
    return value if value == value else nan  # the one NaN, which equals itself in a record

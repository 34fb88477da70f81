"""Shapes in which chips of a torus are rented: hardware/slices.csv."""

from __future__ import annotations

import math
from collections import defaultdict
from functools import cache
from pathlib import Path

from core.errors import FactError, ScenarioError, shown
from hardware import names
from hardware.tables import check_source, rows

SLICES_CSV = Path(__file__).with_name("slices.csv")
_COLUMNS = ("accelerator", "chips", "shape", "source", "source_date", "note")


def load_slices(path: Path = SLICES_CSV) -> dict[str, dict[int, str]]:
    """The shape of each size, by accelerator; a row whose shape has another number of chips is an
    error."""
    found: dict[str, dict[int, str]] = defaultdict(dict)
    for where, row in rows(path, _COLUMNS):
        check_source(where, f"{row['accelerator']} {row['shape']}", row)
        try:
            accelerator = names.canonical(row["accelerator"])
            chips = math.prod(int(side) for side in row["shape"].split("x"))
        except (ScenarioError, ValueError) as error:
            raise FactError(f"{where}: {error}") from error
        if row["chips"] != str(chips):
            raise FactError(f"{where}: {row['shape']} has {chips} chips, not {shown(row['chips'])}")
        found[accelerator][chips] = row["shape"]
    return dict(found)


@cache
def _slices() -> dict[str, dict[int, str]]:
    return load_slices()


def is_sliced(accelerator: str) -> bool:
    """Whether this accelerator is rented in slices of given shapes."""
    return accelerator in _slices()


@cache
def slice_chips(accelerator: str, num_chips: int, chips_per_host: int) -> int | None:
    """Chips of the slice, or of each of several equal ones, that make up `num_chips`; None if no
    shape does. Several slices have whole hosts each.

    >>> slice_chips("TPU-v6e", 256, 8), slice_chips("TPU-v6e", 768, 8), slice_chips("TPU-v6e", 6, 8)
    (256, 256, None)
    """
    sizes = _slices()[accelerator]
    if num_chips in sizes:
        return num_chips
    return max((s for s in sizes if s >= chips_per_host and num_chips % s == 0), default=None)

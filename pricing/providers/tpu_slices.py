"""TPU slices in price feeds, as the price of one chip, which is how Google sells them.

A feed prints whole slices, of one chip to thousands, each at the price of its chips. The name of a
slice counts chips (v5e, v6e) or TensorCores, two of which are one chip (v4, v5p). The smallest
slice of a zone is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeVar

R = TypeVar("R")
_SLICE = re.compile(r"(?:tpu-)?(v\d+[a-z]*)-(\d{1,5})", re.ASCII)
# Name in a slice -> our instance type, and how many of what the name counts are one chip.
_ONE_CHIP = {
    "v4": ("TPU v4 pod (1 chip)", 2),
    "v5litepod": ("TPU v5e (1 chip)", 1),
    "v5p": ("TPU v5p (1 chip)", 2),
    "v6e": ("TPU v6e (1 chip)", 1),
}


def is_slice(name: str) -> bool:
    """Whether an accelerator's name is that of a TPU slice.

    >>> is_slice("tpu-v6e-64"), is_slice("v5litepod-4"), is_slice("V100-32GB")
    (True, True, False)
    """
    return _SLICE.fullmatch(name) is not None


def chips_of(name: str) -> tuple[str, int] | None:
    """Our instance type of one chip of this slice, and the number of its chips. None for a
    generation without a price by chip.

    >>> chips_of("tpu-v5p-8"), chips_of("v5litepod-4"), chips_of("v2-8")
    (('TPU v5p (1 chip)', 4), ('TPU v5e (1 chip)', 4), None)
    """
    found = _SLICE.fullmatch(name)
    if found is None or found[1] not in _ONE_CHIP:
        return None
    instance_type, per_chip = _ONE_CHIP[found[1]]
    chips = int(found[2]) // per_chip
    return (instance_type, chips) if chips else None


def smallest(slices: Iterable[tuple[str, object, R]]) -> Iterator[tuple[str, int, R]]:
    """Of (name of a slice, its place, row): the smallest slice of each generation and place, as
    (instance type of one chip, chips of the slice, row)."""
    best: dict[tuple[str, object], tuple[int, R]] = {}
    for name, place, row in slices:
        if (found := chips_of(name)) is None:
            continue
        instance_type, chips = found
        key = (instance_type, place)
        if key not in best or chips < best[key][0]:
            best[key] = (chips, row)
    for (instance_type, _), (chips, row) in best.items():
        yield instance_type, chips, row

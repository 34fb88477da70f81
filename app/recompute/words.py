"""The result of computing a file again, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator

from app.document import format as fmt
from app.recompute.recompute import SAME, Differs, Recomputation
from core.errors import shown


def sentences(found: Recomputation, *, most: int) -> Iterator[str]:
    """The verdict, then the plans that differ with their first numbers, then notes."""
    others = [p for p in found.plans if p.differs]
    plans = f"{fmt.count(len(found.plans))} plan{'' if len(found.plans) == 1 else 's'}"
    if found.is_same:
        largest = max((p.largest for p in found.plans), default=0.0)
        yield (
            f"The same: {plans}, {fmt.count(sum(p.num_numbers for p in found.plans))} numbers, "
            f"all within {SAME:g} (largest difference {largest:.1g})."
        )
    else:
        yield f"Different: {fmt.count(len(others))} of {plans} do not come out as written."
    if found.shared:
        yield f"The scenario says otherwise: {_listed(found.shared, most)}"
    for plan in others[:most]:
        yield f"Plan {plan.rank}, {shown(plan.id)[1:-1]}: {_listed(plan.differs, most)}"
    if len(others) > most:
        yield f"And {fmt.count(len(others) - most)} more plans."
    yield from found.notes


def _listed(differs: tuple[Differs, ...], most: int) -> str:
    """The first differences in full, the others by name."""
    first, rest = differs[0], differs[1:most]
    more = len(differs) - 1 - len(rest)
    names = ", ".join(d.term for d in rest) + (f" and {more} more" if more else "")
    apart = f" ({first.relative:.2g} apart)" if math.isfinite(first.relative) else ""
    return (
        f"first in {shown(first.term)[1:-1]}, {_written(first.written)} in the file and "
        f"{_written(first.found)} here{apart}" + (f"; then {names}." if names else ".")
    )


def _written(value: float) -> str:
    return f"{value:.9g}" if math.isfinite(value) else "no number"

"""One line of a bill: an amount, or why there is none, and how it is worked out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.money.bill import Figure

# known: of energy and carbon; in_price: paid with the machines; assumed: nobody gave it.
Status = Literal["priced", "known", "assumed", "in_price", "not_priced", "not_known"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line, in the unit of its list."""

    name: str  # a promise, as the keys of the JSON are
    label: str
    figure: Figure | None  # None: `how` says why
    status: Status
    how: str


def not_known(name: str, label: str, how: str, *, status: Status = "not_known") -> Line:
    """A line without a figure."""
    return Line(name=name, label=label, figure=None, status=status, how=how)

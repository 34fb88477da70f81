"""One line of a bill: an amount, or why there is none, and how it is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.money.bill import Figure

# known: energy and carbon; in_price: included in the machines' price; assumed: not given.
Status = Literal["priced", "known", "assumed", "in_price", "not_priced", "not_known"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line, in the unit of its list."""

    name: str  # stable, like the keys of the JSON
    label: str
    figure: Figure | None  # None: `how` gives the reason
    status: Status
    how: str


def not_known(name: str, label: str, how: str, *, status: Status = "not_known") -> Line:
    """A line without a figure."""
    return Line(name=name, label=label, figure=None, status=status, how=how)

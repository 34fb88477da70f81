"""One line of a bill: its label, its amount or why there is none, and how it is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.document.vocabulary import COST_TERMS
from core.cost.uncertain import Uncertain

# known: energy and carbon; in_price: included in the machines' price; assumed: not given.
Status = Literal["priced", "known", "assumed", "in_price", "not_priced", "not_known"]

LABELS = COST_TERMS | {
    "instances": COST_TERMS["compute"],
    "total": "Total",
    "machines": "Machines at the plug",
    "building": "Cooling and losses",
    "carbon": "Carbon",
    "marginal_carbon": "Carbon, marginal",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line, in the unit of its list."""

    name: str  # stable, like the keys of the JSON
    figure: Uncertain | None  # None: `how` gives the reason
    status: Status
    how: str

    @property
    def label(self) -> str:
        """The name of the line for people."""
        return LABELS[self.name]


def not_known(name: str, how: str, *, status: Status = "not_known") -> Line:
    """A line without a figure."""
    return Line(name=name, figure=None, status=status, how=how)

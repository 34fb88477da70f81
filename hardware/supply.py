"""What a seller lets a customer have and bills at least: hardware/supply.csv.

One fact a row, of sellers, kinds of purchase and instance types; the first row that matches counts,
so that the rows of one seller come before those of all (*). A table of its own, because most facts
hold for all products of a seller and hardware/cluster_products.csv has a row only for products with
a known network; what that table prints of a product counts first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import get_args

from core.errors import FactError, shown
from core.machine.accelerator import Source
from core.machine.offer import Offer, Purchase
from core.machine.rented import Supply
from hardware.cluster_products import product_of
from hardware.tables import check_source, rows

SUPPLY_CSV = Path(__file__).with_name("supply.csv")
ANY, NO_BOUND = "*", "none"
MINUTES = 60  # of an hour
# The unit is the end of the name. A bound is of GPUs or of whole machines.
BOUNDS = ("most_gpus", "most_machines")
QUANTITIES = (*BOUNDS, "minimum_term_hours", "startup_minutes", "minimum_billing_minutes")
# What every offer needs; a term is the exception.
NEEDED = (BOUNDS, ("startup_minutes",), ("minimum_billing_minutes",))
BASES = ("documented", "usual")
_COLUMNS = ("sellers", "purchase", "instance_pattern", "quantity", "value", "basis", "source",
            "source_date", "note")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One row of the table."""

    sellers: frozenset[str]  # empty: any
    purchase: frozenset[str]  # empty: any
    instance_pattern: re.Pattern[str]
    quantity: str
    value: float  # infinite: no bound
    source: Source  # assumed where the value is usual, not documented

    def covers(self, seller: str, instance_type: str, purchase: str) -> bool:
        """Whether an offer is of these sellers, types and kinds."""
        return (
            (not self.sellers or seller in self.sellers)
            and (not self.purchase or purchase in self.purchase)
            and self.instance_pattern.search(instance_type) is not None
        )


def load_supply(path: Path = SUPPLY_CSV) -> tuple[Fact, ...]:
    """Read the table; a row without a source, or with an unknown word or number, is an error, and
    so is a kind of purchase for which a seller that has no row would lack a fact."""
    facts = tuple(_fact(where, row) for where, row in rows(path, _COLUMNS))
    for purchase in get_args(Purchase):
        for names in NEEDED:
            if not any(f.quantity in names and f.covers("", "", purchase) for f in facts):
                raise FactError(
                    f"{path.name}: no row has {' or '.join(names)} of any seller for {purchase}"
                )
    return facts


@cache
def supply() -> tuple[Fact, ...]:
    """The shipped table, read once."""
    return load_supply()


def supply_of(offer: Offer, *, gpus_per_machine: int) -> Supply:
    """The supply of an offer. What is printed of the product that its price buys counts first."""
    product, _ = product_of(offer.provider, offer.instance_type, offer.accelerator)
    found = _facts_of(offer.provider.strip().lower(), offer.instance_type.strip(), offer.purchase)
    bound = next(found[q] for q in BOUNDS if q in found)
    most = bound.value * (gpus_per_machine if bound.quantity == "most_machines" else 1)
    source = bound.source
    if (
        product is not None
        and product.most_machines_on_demand is not None
        and offer.purchase in ("on_demand", "spot")
    ):
        most = float(product.most_machines_on_demand * gpus_per_machine)
        source = product.source
    billing = found["minimum_billing_minutes"]
    least = billing.value / MINUTES
    term = found.get("minimum_term_hours")
    if term is not None and term.value > least:
        billing, least = term, term.value
    startup = found["startup_minutes"]
    return Supply(
        # One machine is always less than a cluster that somebody sells.
        most_gpus=max(most, gpus_per_machine) if most else 0.0,
        bound=source,
        startup_hours=startup.value / MINUTES,
        startup=startup.source,
        least_billed_hours=least,
        billing=billing.source,
    )


@cache
def _facts_of(seller: str, instance_type: str, purchase: str) -> Mapping[str, Fact]:
    """The fact of each quantity; of the two bounds, the one whose row comes first."""
    found: dict[str, Fact] = {}
    for fact in supply():
        if not fact.covers(seller, instance_type, purchase):
            continue
        same = BOUNDS if fact.quantity in BOUNDS else (fact.quantity,)
        if not any(q in found for q in same):
            found[fact.quantity] = fact
    return found


def _fact(where: str, row: dict[str, str]) -> Fact:
    what = f"{row['quantity']} of {row['sellers']}"
    check_source(where, what, row)
    if row["quantity"] not in QUANTITIES:
        raise FactError(
            f"{where}: quantity {shown(row['quantity'])} is not one of {', '.join(QUANTITIES)}"
        )
    if row["basis"] not in BASES:
        raise FactError(f"{where}: basis is {shown(row['basis'])}, not {' or '.join(BASES)}")
    kinds = _names(where, "purchase", row)
    if unknown := kinds - set(get_args(Purchase)):
        raise FactError(
            f"{where}: purchase {shown(min(unknown))} is not one of {', '.join(get_args(Purchase))}"
        )
    try:
        pattern = re.compile(row["instance_pattern"])
    except re.error as error:
        raise FactError(f"{where}: {error}") from error
    return Fact(
        sellers=_names(where, "sellers", row),
        purchase=kinds,
        instance_pattern=pattern,
        quantity=row["quantity"],
        value=_value(where, row),
        source=Source(
            ref=row["source"],
            date=row["source_date"],
            printed=row["note"],
            assumed=row["basis"] == "usual",
        ),
    )


def _names(where: str, column: str, row: dict[str, str]) -> frozenset[str]:
    if not row[column]:
        raise FactError(f"{where}: {column} is blank; {ANY} stands for any")
    return frozenset(row[column].split(";")) - {ANY}


def _value(where: str, row: dict[str, str]) -> float:
    if row["quantity"] in BOUNDS and row["value"] == NO_BOUND:
        return math.inf
    try:
        value = float(row["value"])
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise FactError(f"{where}: value is {shown(row['value'])}, not a number of at least 0")
    return value

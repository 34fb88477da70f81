"""Products of clouds by what joins their machines: hardware/cluster_products.csv.

Machines whose network is printed by instance type are rows of hardware/instances.csv.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from core.errors import FactError, ScenarioError, shown
from core.machine.accelerator import Source
from hardware import names
from hardware.instances import SCALE_OUT_FABRICS
from hardware.tables import check_source, rows

PRODUCTS_CSV = Path(__file__).with_name("cluster_products.csv")
ANY = "*"
_COLUMNS = (
    "provider",
    "product",
    "instance_pattern",
    "accelerators",
    "gpus_per_machine",
    "scale_out_gbit_per_s",
    "fabric",
    "clustered",
    "priced",
    "most_machines_on_demand",
    "source",
    "source_date",
    "note",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """What a cloud sells under one name. None: the source does not print it."""

    provider: str
    product: str
    instance_pattern: re.Pattern[str]  # found in the instance types that it covers
    accelerators: frozenset[str]  # canonical ids; empty: any
    gpus_per_machine: int | None
    scale_out_gbit_per_s: float | None  # of the whole machine, one direction
    fabric: str | None  # a row of fabrics.csv
    is_clustered: bool  # sold as machines that are joined for training
    is_listed: bool  # the price of a matching offer buys it; else it is sold apart
    most_machines_on_demand: int | None
    source: Source

    def covers(self, provider: str, instance_type: str, accelerator: str) -> bool:
        """Whether an offer is of this product."""
        return (
            provider.strip().lower() == self.provider
            and (not self.accelerators or accelerator in self.accelerators)
            and self.instance_pattern.search(instance_type.strip()) is not None
        )


def load_products(path: Path = PRODUCTS_CSV) -> tuple[Product, ...]:
    """Read the table; a row without a source, or with an unknown word or number, is an error."""
    return tuple(_product(where, row) for where, row in rows(path, _COLUMNS))


@cache
def products() -> tuple[Product, ...]:
    """The shipped table, read once."""
    return load_products()


@cache
def product_of(
    provider: str, instance_type: str, accelerator: str
) -> tuple[Product | None, Product | None]:
    """The product that an offer's price buys, and the one that its seller sells apart; the first
    row of each kind counts."""
    found = [p for p in products() if p.covers(provider, instance_type, accelerator)]
    return (
        next((p for p in found if p.is_listed), None),
        next((p for p in found if not p.is_listed), None),
    )


def _product(where: str, row: dict[str, str]) -> Product:
    what = f"{row['provider']} {row['product']}"
    check_source(where, what, row)
    if row["fabric"] not in ("", *SCALE_OUT_FABRICS):
        raise FactError(
            f"{where}: fabric {shown(row['fabric'])} is not one of {', '.join(SCALE_OUT_FABRICS)}"
        )
    for column, words in (("clustered", ("yes", "no")), ("priced", ("listed", "apart"))):
        if row[column] not in words:
            raise FactError(
                f"{where}: {column} is {shown(row[column])}, not {words[0]} or {words[1]}"
            )
    try:
        pattern = re.compile(row["instance_pattern"])
        of = frozenset(names.canonical(a) for a in row["accelerators"].split(";") if a != ANY)
    except (re.error, ScenarioError) as error:
        raise FactError(f"{where}: {error}") from error
    gpus, most = (
        _number(where, row, c, whole=True) for c in ("gpus_per_machine", "most_machines_on_demand")
    )
    return Product(
        provider=row["provider"],
        product=row["product"],
        instance_pattern=pattern,
        accelerators=of,
        gpus_per_machine=None if gpus is None else int(gpus),
        scale_out_gbit_per_s=_number(where, row, "scale_out_gbit_per_s"),
        fabric=row["fabric"] or None,
        is_clustered=row["clustered"] == "yes",
        is_listed=row["priced"] == "listed",
        most_machines_on_demand=None if most is None else int(most),
        source=Source(
            ref=row["source"],
            date=row["source_date"],
            printed=f"{row['product']}: {row['note']}",
            assumed="assumed" in row["note"],
        ),
    )


def _number(where: str, row: dict[str, str], column: str, *, whole: bool = False) -> float | None:
    """A number above 0, None where the cell is blank."""
    if not row[column]:
        return None
    try:
        value = float(row[column])
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0) or (whole and not value.is_integer()):
        kind = "whole number" if whole else "number"
        raise FactError(f"{where}: {column} is {shown(row[column])}, not a {kind} above 0")
    return value

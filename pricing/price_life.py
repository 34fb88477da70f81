"""How long a price is believed, how far it moves, which are weak at any age: tables with sources.

price_lives.csv    days, by kind of seller and whether the price is spot or committed
price_moves.csv    deviation of the log of a price after a year, by the same
seller_kinds.csv   which provider is a hyperscaler or a marketplace; every other is a neocloud
weak_prices.csv    marks of prices that nobody can count on: shell globs on an offer's columns
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from core.errors import FactError, shown

LIVES_CSV = Path(__file__).with_name("price_lives.csv")
MOVES_CSV = Path(__file__).with_name("price_moves.csv")
KINDS_CSV = Path(__file__).with_name("seller_kinds.csv")
WEAK_CSV = Path(__file__).with_name("weak_prices.csv")
SELLERS = ("hyperscaler", "neocloud", "marketplace")
OTHERS = "neocloud"  # the kind of a provider without a row
PURCHASES = ("committed", "spot")
SOURCED = ("source", "source_date")
YEAR_DAYS = 365.25
COLUMNS = {
    LIVES_CSV.name: ["kind", "purchase", "life", "unit", *SOURCED, "note"],
    MOVES_CSV.name: ["kind", "purchase", "log_sd", "unit", *SOURCED, "note"],
    KINDS_CSV.name: ["provider", "kind", *SOURCED],
    WEAK_CSV.name: ["mark", "provider", "instance_type", "note", "reason", *SOURCED],
}

Rows = tuple[tuple[str, Mapping[str, str]], ...]  # the place in the file, and the row


def life_days(provider: str, purchase: str) -> int:
    """Days for which a price of this provider and purchase kind is believed."""
    return lives()[seller_kinds().get(provider, OTHERS), _kind(purchase)]


def log_sd(provider: str, purchase: str, age_days: float) -> float:
    """Deviation of the logarithm of a price from what it was so many days ago: moves of a price
    are independent, so their variance grows with its age."""
    a_year = moves()[seller_kinds().get(provider, OTHERS), _kind(purchase)]
    return a_year * math.sqrt(age_days / YEAR_DAYS)


def _kind(purchase: str) -> str:
    return "spot" if purchase == "spot" else "committed"


def weak_mark(provider: str, instance_type: str, note: str) -> str:
    """The first mark that fits an offer (mean, floor, resold, shared card); '' if none does."""
    given = {"provider": provider, "instance_type": instance_type, "note": note}
    for _, row in _table(WEAK_CSV):
        if all(fnmatchcase(text, row[name]) for name, text in given.items()):
            return row["mark"]
    return ""


@cache
def lives(path: Path = LIVES_CSV) -> Mapping[tuple[str, str], int]:
    """Days by kind of seller and of purchase; every pair has a row."""
    found: dict[tuple[str, str], int] = {}
    for at, row in _table(path):
        key = (row["kind"], row["purchase"])
        if row["unit"] != "days" or not row["life"].isdecimal() or not int(row["life"]):
            raise FactError(f"{at}: {shown(row['life'])} {row['unit']} is not a number of days")
        if key in found:
            raise FactError(f"{at}: {' '.join(key)} is there twice")
        found[key] = int(row["life"])
    wanted = {(seller, kind) for seller in SELLERS for kind in PURCHASES}
    if set(found) != wanted:
        odd = sorted(" ".join(key) for key in set(found) ^ wanted)
        raise FactError(f"{path.name}: unknown or missing: {', '.join(odd)}")
    return found


@cache
def moves(path: Path = MOVES_CSV) -> Mapping[tuple[str, str], float]:
    """Deviation of the logarithm after a year by kind of seller and of purchase; every pair has a
    row."""
    found: dict[tuple[str, str], float] = {}
    for at, row in _table(path):
        try:
            found[row["kind"], row["purchase"]] = float(row["log_sd"])
        except ValueError as e:
            raise FactError(f"{at}: {e}") from None
    if set(found) != set(lives()) or not all(0 <= x < 3 for x in found.values()):
        raise FactError(f"{path.name}: a kind is unknown or missing, or its deviation not in 0..3")
    return found


@cache
def seller_kinds(path: Path = KINDS_CSV) -> Mapping[str, str]:
    """The kind of each provider that is not a neocloud."""
    found: dict[str, str] = {}
    for at, row in _table(path):
        if row["kind"] not in SELLERS or row["provider"] in found:
            raise FactError(f"{at}: {shown(row['provider'])} is there twice, or of no known kind")
        found[row["provider"]] = row["kind"]
    return found


@cache
def _table(path: Path) -> Rows:
    """The rows of one of the tables; `FactError` for other columns or a row without a source."""
    with path.open(encoding="utf-8", newline="") as f:
        table = csv.DictReader(f)
        columns = COLUMNS[path.name]
        if table.fieldnames != columns:
            raise FactError(f"{path.name}:1: columns are not {', '.join(columns)}")
        found = []
        for row in table:
            at = f"{path.name}:{table.line_num}"
            if not all(row[name] for name in columns if name != "note"):
                raise FactError(f"{at}: a cell is empty; each row names its source and its date")
            found.append((at, row))
    return tuple(found)

"""Build a snapshot from a table of observed prices: `python -m pricing.bundle PRICES.csv`.

A source row with an on-demand, a spot, a 1-year and a 3-year price becomes up to four offers.
Prices are of whole instances, in USD per hour; a row whose note says USD per GPU-hour or per
chip-hour has one of these. Special cases (a price that is not sold, an estimate, a caveat of the
source) are decided in pricing/row_decisions.csv, each with its reason. Every price is either in an
offer, or in left_out.csv with the reason.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from pathlib import Path

from core.errors import FactError, RuncastError, shown
from core.machine.offer import Offer
from pricing.integrity import Finding, check, price_bands
from pricing.offers import CHEAPEST_US, COLUMNS, SNAPSHOTS, Row, make_offer
from pricing.publish import make_current, write_snapshot

MAX_BYTES = 64_000_000
DECISIONS_CSV = Path(__file__).with_name("row_decisions.csv")
ACTIONS = ("leave_out", "accelerator", "note")
PRICE_COLUMNS = {
    "price_usd_per_hour_instance": "on_demand",
    "spot_usd_per_hour_instance": "spot",
    "reserved_1y_usd_per_hour": "reserved_1y",
    "reserved_3y_usd_per_hour": "reserved_3y",
}
SOURCE_COLUMNS = [
    "provider", "instance_type", "accelerator", "gpu_count", "gpu_memory_gib", "vcpus",
    "memory_gib", "region", "interconnect_gbps", *PRICE_COLUMNS, "as_of", "source", "notes",
    "quality",
]  # fmt: skip
DECISION_COLUMNS = [
    "provider", "instance_type", "accelerator", "region", "purchase", "as_of", "action", "value",
    "reason",
]  # fmt: skip
LEFT_OUT_COLUMNS = [
    "snapshot", "source_row", "provider", "instance_type", "accelerator", "gpu_count", "region",
    "purchase", "usd_per_hour", "observed_at", "source", "reason",
]  # fmt: skip
CAPACITY_BLOCKS = "aws-capacity-block"  # a provider of the table; in offers a way to buy from AWS
CHEAPEST_US_PRINTED = "(cheapest US unless said)"
# The lowest bid that may win, not an asking price.
BID_FLOORS = ("min_bid", "bid floor")

SourceRow = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision on matching prices; every pattern is a shell glob."""

    provider: str
    instance_type: str
    accelerator: str
    region: str
    purchase: str
    as_of: str
    action: str
    value: str
    reason: str

    def covers(self, row: SourceRow, purchase: str) -> bool:
        return fnmatchcase(purchase, self.purchase) and all(
            fnmatchcase(row[name], getattr(self, name))
            for name in ("provider", "instance_type", "accelerator", "region", "as_of")
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A price (or, with purchase '', a whole row) that is left out of the offers."""

    source_row: int  # line of the source table
    row: SourceRow
    purchase: str
    usd_per_hour: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    rows: tuple[Row, ...]  # canonical order
    left_out: tuple[LeftOut, ...]

    @property
    def offers(self) -> list[Offer]:
        return [make_offer(row) for row in self.rows]


def source_rows(text: str) -> list[SourceRow]:
    """The observed prices of a CSV text."""
    return _table("the table of prices", text, SOURCE_COLUMNS)


def decisions(text: str) -> list[Decision]:
    """The decisions of a CSV text like row_decisions.csv."""
    found = []
    for line, row in enumerate(_table(DECISIONS_CSV.name, text, DECISION_COLUMNS), start=2):
        at = f"{DECISIONS_CSV.name}:{line}"
        if row["action"] not in ACTIONS or not row["reason"]:
            raise FactError(f"{at}: action is not one of {', '.join(ACTIONS)}, or no reason")
        if (row["action"] == "leave_out") != (row["value"] == ""):
            raise FactError(f"{at}: accelerator and note need a value, leave_out takes none")
        found.append(Decision(**row))
    return found


def _table(name: str, text: str, columns: Sequence[str]) -> list[SourceRow]:
    """Rows of a CSV with exactly these columns and one line per row."""
    table = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        if next(table, None) != list(columns):
            raise FactError(f"{name}:1: the columns must be {', '.join(columns)}")
        rows: list[SourceRow] = []
        for line, cells in enumerate(table, start=2):
            if len(cells) != len(columns) or table.line_num != line:
                raise FactError(f"{name}:{line}: not {len(columns)} cells on one line")
            rows.append(dict(zip(columns, cells, strict=True)))
    except csv.Error as e:
        raise FactError(f"{name}:{table.line_num}: {e}") from None
    return rows


def bundle(rows: Iterable[SourceRow], decided: Sequence[Decision] = ()) -> Bundle:
    """Offers of observed prices, in canonical order, and what was left out with its reason."""
    kept: list[Row] = []
    left_out: list[LeftOut] = []
    used: set[Decision] = set()
    for line, row in enumerate(rows, start=2):
        prices = {kind: row[c].strip() for c, kind in PRICE_COLUMNS.items() if row[c].strip()}
        if not prices:
            left_out.append(_left_out(line, row, "", "", "The row prints no price."))
        for kind, usd in prices.items():
            matching = [d for d in decided if d.covers(row, kind)]
            used.update(matching)
            reason = _reason_to_leave_out(row, matching)
            if reason:
                left_out.append(_left_out(line, row, kind, usd, reason))
            else:
                kept.append(_row(line, row, kind, usd, matching))
    if idle := [d for d in decided if d not in used]:
        which = ", ".join(f"{d.provider} {d.instance_type} {d.action}" for d in idle)
        raise FactError(f"row_decisions.csv decides on prices that are not there: {which}")
    return Bundle(rows=tuple(sorted(kept, key=repr)), left_out=tuple(left_out))


def _reason_to_leave_out(row: SourceRow, matching: Sequence[Decision]) -> str:
    if any(floor in row["notes"].lower() for floor in BID_FLOORS):
        return "The lowest bid that may win, not a price."
    return next((d.reason for d in matching if d.action == "leave_out"), "")


def _row(line: int, row: SourceRow, kind: str, usd: str, matching: Sequence[Decision]) -> Row:
    """One offer of a source row: its fields, then the fields of the host."""
    provider, purchase = row["provider"], kind
    if provider == CAPACITY_BLOCKS:
        if kind != "on_demand":
            raise FactError(f"Line {line}: a capacity block has one price, not one for {kind}.")
        provider, purchase = "aws", "capacity_block"
    accelerator, notes = row["accelerator"], [row["notes"]]
    for d in matching:
        if d.action == "accelerator":
            accelerator = d.value
            notes.append(f"{d.value}, the table says {row['accelerator']}: {d.reason}")
        elif d.action == "note":
            notes.append(f"{d.value} [{d.reason}]")
    values: dict[str, str | int | float | None] = {
        "provider": provider,
        "instance_type": _instance_type(provider, row["instance_type"]),
        "accelerator": accelerator,
        "gpu_count": _count(line, row["gpu_count"]),
        "region": CHEAPEST_US if row["region"] == CHEAPEST_US_PRINTED else row["region"],
        "purchase": purchase,
        "usd_per_hour": _number(line, "price", usd),
        "scale_out_gbit_per_s": _optional(line, row, "interconnect_gbps"),
        "observed_at": row["as_of"],
        "source": row["source"],
        "quality": row["quality"],
        "note": "; ".join(n for n in notes if n),
        "gpu_memory_gib": _optional(line, row, "gpu_memory_gib"),
        "vcpus": _optional(line, row, "vcpus"),
        "memory_gib": _optional(line, row, "memory_gib"),
    }
    return tuple(values[name] for name in COLUMNS)


def _instance_type(provider: str, printed: str) -> str:
    """Azure's price lists write Standard_NC24ads_A100_v4, other lists 'NC24ads A100 v4'.

    A comma is left out, because it separates the plans that a link names.
    """
    printed = printed.replace(",", "")
    if provider == "azure" and not printed.startswith("Standard_"):
        return "Standard_" + printed.replace(" ", "_")
    return printed


def _optional(line: int, row: SourceRow, column: str) -> float | None:
    return _number(line, column, row[column]) if row[column].strip() else None


def _number(line: int, column: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FactError(f"Line {line} of the prices: {column} {shown(text)} is not a number.")
    return value


def _count(line: int, text: str) -> int:
    if not text.isdecimal() or len(text) > 6:
        raise FactError(f"Line {line} of the prices: gpu_count {shown(text)} is not a count.")
    return int(text)


def _left_out(line: int, row: SourceRow, purchase: str, usd: str, reason: str) -> LeftOut:
    return LeftOut(source_row=line, row=row, purchase=purchase, usd_per_hour=usd, reason=reason)


def write(built: Bundle, folder: Path) -> str:
    """Write the snapshot, make it the installed one, and return its id."""
    snapshot_id = write_snapshot(built.rows, folder)
    with (folder / "left_out.csv").open("w", encoding="utf-8", newline="") as f:
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow(LEFT_OUT_COLUMNS)
        for x in built.left_out:
            r = x.row
            writer.writerow(
                [
                    snapshot_id, x.source_row, r["provider"], r["instance_type"], r["accelerator"],
                    r["gpu_count"], r["region"], x.purchase, x.usd_per_hour, r["as_of"],
                    r["source"], x.reason,
                ]
            )  # fmt: skip
    # Last, so that an interrupted build leaves the old snapshot installed.
    make_current(snapshot_id, folder)
    return snapshot_id


def build(prices: Path, folder: Path, *, today: date) -> tuple[str, Bundle, list[Finding]]:
    """Read, check and write. `FactError` names every refused price, and nothing is written."""
    if prices.stat().st_size > MAX_BYTES:
        raise FactError(f"{prices.name} is larger than {MAX_BYTES} bytes: not a table of prices")
    decided = decisions(DECISIONS_CSV.read_text(encoding="utf-8"))
    built = bundle(source_rows(prices.read_text(encoding="utf-8")), decided)
    if not built.rows:
        raise FactError(f"{prices.name} holds no price.")
    found = check(built.offers, bands=price_bands(), today=today)
    if refused := [f.sentence for f in found if f.severity == "refuse"]:
        raise FactError("\n".join([f"{len(refused)} prices are refused:", *refused]))
    return write(built, folder), built, found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pricing.bundle", description=__doc__)
    parser.add_argument("prices", type=Path, help="CSV of observed prices")
    parser.add_argument("--out", type=Path, default=SNAPSHOTS, help="folder of snapshots")
    given = parser.parse_args(arguments)
    try:
        today = datetime.now(UTC).date()
        snapshot_id, built, warnings = build(given.prices, given.out, today=today)
    except (RuncastError, OSError, UnicodeDecodeError) as e:
        print(e, file=sys.stderr)
        return 2
    for w in warnings:
        print(f"{w.severity} {w.rule}: {w.sentence}")
    print(
        f"{snapshot_id}: {len(built.rows)} offers, {len(built.left_out)} prices left out, "
        f"{len(warnings)} warnings"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

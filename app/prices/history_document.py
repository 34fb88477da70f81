"""Price history, refreshes and what is held back: on a terminal, and as docs/prices.md has them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any

from rich.table import Table

from app.document import format as fmt
from app.document import vocabulary
from app.document.terminal import console, cut, print_wrapped
from pricing.history import History, PriceOn
from pricing.series import Sku
from pricing.store.quarantine import Held, Release
from pricing.store.queries import Run

LEAST_SELLER, SOURCE_WIDTH = 10, 34


# --- as JSON -------------------------------------------------------------------------------------


def history_json(found: History) -> dict[str, Any]:
    """One price over time."""
    return {
        **found.sku._asdict(),
        "spells": [
            {
                "source": s.source,
                "usd_per_hour": s.usd_per_hour,
                "first_at": s.first_at,
                "last_at": s.last_at,
                "until": s.until,
            }
            for s in found.spells
        ],
        "gaps": [
            {"source": g.source, "begins": g.begins, "ends": g.ends, "why": g.why}
            for g in found.gaps
        ],
    }


def on_json(
    day: dt.date, prices: Sequence[PriceOn], asked: int, machine_hours: float
) -> dict[str, Any]:
    """The prices of a day."""
    return {
        "day": day,
        "num_series": asked,
        "machine_hours": machine_hours,
        "prices": [
            {
                **p.sku._asdict(),
                "usd_per_hour": p.usd_per_hour,
                "usd": p.usd_per_hour * machine_hours,
                "source": p.source,
                "seen_from": p.seen_from,
                "seen_until": p.seen_until,
                "exact": p.exact,
            }
            for p in prices
        ],
    }


def held_json(held: Held) -> dict[str, Any]:
    """One row that is, or was, held back."""
    return {
        "key": held.key,
        "source": held.source,
        "rule": held.rule,
        "sentence": held.sentence,
        "usd_per_hour": held.usd_per_hour,
        "sku": held.sku._asdict() if held.sku else None,
        "since": held.since,
        "until": held.until,
        "releasable": held.releasable,
    }


# --- on a terminal -------------------------------------------------------------------------------


def print_histories(found: Sequence[History], asked: int) -> None:
    """Each price, its spells and its gaps."""
    out = console()
    for h in found:
        out.print(_named(h.sku))
        table = _table("$/h", "From", "Last seen", "Source")
        for s in h.spells:
            table.add_row(
                _usd(s.usd_per_hour), _day(s.first_at), _day(s.last_at), cut(s.source, SOURCE_WIDTH)
            )
        out.print(table)
        for g in h.gaps:
            ends = "and not again since" if g.ends is None else f"to {_day(g.ends)}"
            print_wrapped(out, f"not known {_day(g.begins)} {ends}: {g.why} ({g.source})")
        out.print()
    print_wrapped(out, f"{_of(len(found), asked)} prices with a history; --top shows more.")


def print_on(
    day: dt.date, prices: Sequence[PriceOn], known: int, asked: int, machine_hours: float
) -> None:
    """One line a machine, the cheapest GPU-hour first."""
    out = console()
    several = machine_hours != 1
    heads = ["$/GPU-h", "$/h", *(["Cost"] if several else []), "GPUs", "Purchase", "Seen", "Seller"]
    rows = [_row_on(p, machine_hours if several else None) for p in prices]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    room = max(LEAST_SELLER, out.width - sum(widths[:-1]) - len(heads))
    table = _table(*heads)
    for row in rows:
        table.add_row(*row[:-1], cut(row[-1], room))
    if prices:
        out.print(table)
        out.print()
    cost = f" Cost: {fmt.hours(machine_hours)} of a machine." if several else ""
    print_wrapped(
        out,
        f"{_of(len(prices), known)} prices on {day}; of {fmt.count(asked - known)} others nobody "
        f"knows the price then. Seen: since when, or last before that day.{cost}",
    )


def _row_on(p: PriceOn, machine_hours: float | None) -> tuple[str, ...]:
    return (
        _usd(p.usd_per_hour / p.sku.gpu_count),
        _usd(p.usd_per_hour),
        *([] if machine_hours is None else [fmt.usd(p.usd_per_hour * machine_hours)]),
        f"{p.sku.gpu_count} x {p.sku.accelerator}",
        vocabulary.purchase(p.sku.purchase).removeprefix("reserved "),
        _day(p.seen_from) if p.exact else f"last {_day(p.seen_until)}",
        f"{p.sku.provider} {p.sku.instance_type} {vocabulary.stated_region(p.sku.region)}".strip(),
    )


def print_runs(runs: Sequence[Run]) -> None:
    """One line a refresh, then why a source of the last one failed."""
    out = console()
    if not runs:
        out.print("No refresh has run here yet: `runcast refresh`.")
        return
    table = _table("When", "Outcome", "Prices", "New", "Changed", "Gone", "Held", "s", "Snapshot")
    for r in runs:
        sums = [
            fmt.count(sum(getattr(s, name) for s in r.sources))
            for name in ("new", "changed", "gone", "quarantined")
        ]
        seconds = f"{r.seconds:.1f}"
        snapshot = r.snapshot_id if r.published else f"{r.snapshot_id} kept"
        table.add_row(_moment(r.ended_at), r.outcome, fmt.count(r.offers), *sums, seconds, snapshot)
    out.print(table)
    for s in runs[0].sources:
        if s.sentence:
            print_wrapped(out, f"{s.source}, {s.status}: {s.sentence}")


def print_held(found: Sequence[Held], most: int) -> None:
    """One line a row, with the key that releases it."""
    out = console()
    if not found:
        out.print("Nothing is held back.")
    for h in found:
        key = h.key if h.releasable else fmt.MISSING
        until = "" if h.until is None else f" to {_moment(h.until)}"
        print_wrapped(
            out,
            f"{key} {h.source}, {h.rule}, since {_moment(h.since)}{until}: {h.sentence}",
            indent="    ",
            first="",
        )
    if len(found) == most:
        out.print("There may be more: --top.")
    if any(h.releasable and h.until is None for h in found):
        out.print()
        out.print("`runcast prices release KEY --why TEXT` publishes one that is right.")


def print_release(given: Release) -> None:
    """What the next refresh will do."""
    out = console()
    print_wrapped(
        out,
        f"The next refresh publishes about {fmt.usd_per_hour(given.usd_per_hour)} of "
        f"{_named(given.sku)} where {given.source} prints it.",
    )


def _named(sku: Sku) -> str:
    region = vocabulary.stated_region(sku.region)
    where = f" in {region}" if region else ""
    return (
        f"{sku.provider} {sku.instance_type} ({sku.gpu_count} x {sku.accelerator}){where}, "
        f"{vocabulary.purchase(sku.purchase)}"
    )


def _of(shown: int, total: int) -> str:
    return fmt.count(total) if shown == total else f"{fmt.count(shown)} of {fmt.count(total)}"


def _usd(x: float) -> str:
    return fmt.usd_per_hour(x).removesuffix("/h")


def _day(at: dt.datetime) -> str:
    return at.date().isoformat()


def _moment(at: dt.datetime) -> str:
    return f"{at.astimezone(dt.UTC):%Y-%m-%d %H:%M}"


def _table(*heads: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    left: Iterable[str] = (
        "From", "Last seen", "Source", "GPUs", "Seller", "Purchase", "Seen", "When", "Outcome",
        "Snapshot",
    )  # fmt: skip
    for head in heads:
        table.add_column(head, justify="left" if head in left else "right", no_wrap=True)
    return table

"""Price history, prices of a day, refreshes and quarantined rows as blocks of a document."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence

from app.document import format as fmt
from app.document import vocabulary
from app.document.blocks import Block, Paragraph, Section
from app.document.table import Column, Table, column, text_column
from pricing.history import History, PriceOn
from pricing.series import Gap, Sku, Spell
from pricing.store.quarantine import Held, Release
from pricing.store.queries import Run

SPELLS: tuple[Column[Spell], ...] = (
    column("$/h", lambda s: _usd(s.usd_per_hour)),
    text_column("From", lambda s: _day(s.first_at)),
    text_column("Last seen", lambda s: _day(s.last_at)),
    text_column("Source", lambda s: s.source, least=34),
)


def history_sections(found: Sequence[History], asked: int) -> Iterator[Section]:
    """One section for each price, with its spells and gaps."""
    for h in found:
        spells = Table(caption="Spells", columns=SPELLS, rows=tuple(h.spells))
        yield Section(_named(h.sku), (spells, *map(_gap, h.gaps)))
    yield Section(f"{_of(len(found), asked)} prices with a history; --top shows more.", ())


def _gap(gap: Gap) -> Paragraph:
    ends = "and not again since" if gap.ends is None else f"to {_day(gap.ends)}"
    return Paragraph(f"not known {_day(gap.begins)} {ends}: {gap.why} ({gap.source})")


def on_blocks(
    day: dt.date, prices: Sequence[PriceOn], known: int, asked: int, machine_hours: float
) -> Iterator[Block | Section]:
    """One line per machine, cheapest GPU-hour first; with the total cost if hours are given."""
    several = machine_hours != 1
    columns = (
        column("$/GPU-h", lambda p: _usd(p.usd_per_hour / p.sku.gpu_count)),
        column("$/h", lambda p: _usd(p.usd_per_hour)),
        column("Cost", lambda p: fmt.usd(p.usd_per_hour * machine_hours)),
        text_column("GPUs", lambda p: f"{p.sku.gpu_count} x {p.sku.accelerator}"),
        text_column("Purchase", lambda p: vocabulary.purchase_short(p.sku.purchase)),
        text_column(
            "Seen", lambda p: _day(p.seen_from) if p.exact else f"last {_day(p.seen_until)}"
        ),
        text_column("Seller", lambda p: seller(p.sku), least=10),
    )
    table = Table(caption=f"Prices on {day}", columns=columns, rows=tuple(prices))
    if prices:
        yield table if several else table.without("Cost")
    cost = f" Cost: {fmt.hours(machine_hours)} of a machine." if several else ""
    yield Section(
        f"{_of(len(prices), known)} prices on {day}; of {fmt.count(asked - known)} others nobody "
        f"knows the price then. Seen: since when, or last before that day.{cost}",
        (),
    )


def _sum(head: str, name: str) -> Column[Run]:
    return column(head, lambda r: sum(getattr(s, name) for s in r.sources), write=fmt.count)


RUNS: tuple[Column[Run], ...] = (
    text_column("Ended (UTC)", lambda r: _moment(r.ended_at)),
    text_column("Outcome", lambda r: r.outcome),
    column("Prices", lambda r: r.offers, write=fmt.count),
    _sum("New", "new"),
    _sum("Changed", "changed"),
    _sum("Gone", "gone"),
    _sum("Held back", "quarantined"),
    column("Seconds", lambda r: r.seconds, write=lambda s: f"{s:.1f}"),
    text_column(
        "Snapshot",
        lambda r: r.snapshot_id,
        cell=lambda r: r.snapshot_id if r.published else f"{r.snapshot_id} kept",
    ),
    text_column(
        "Sources that failed",
        lambda r: ", ".join(s.source for s in r.sources if s.status == "failed"),
    ),
)


def refreshes(runs: Sequence[Run]) -> Table[Run]:
    """A table with one line per refresh, newest first."""
    return Table(caption="Past refreshes, the newest first", columns=RUNS, rows=tuple(runs))


def runs_blocks(runs: Sequence[Run]) -> Iterator[Block]:
    """One line per refresh, then why sources of the last one failed."""
    if not runs:
        yield Paragraph("No refresh has run here yet: `runcast refresh`.")
        return
    yield refreshes(runs).without("Sources that failed")
    for s in runs[0].sources:
        if s.sentence:
            yield Paragraph(f"{s.source}, {s.status}: {s.sentence}")


def held_blocks(found: Sequence[Held], most: int) -> Iterator[Block | Section]:
    """One line per quarantined row, with the key that releases it."""
    if not found:
        yield Paragraph("Nothing is held back.")
    for h in found:
        key = h.key if h.releasable else fmt.MISSING
        until = "" if h.until is None else f" to {_moment(h.until)}"
        yield Paragraph(
            f"{key} {h.source}, {h.rule}, since {_moment(h.since)}{until}: {h.sentence}"
        )
    if len(found) == most:
        yield Paragraph("There may be more: --top.")
    if any(h.releasable and h.until is None for h in found):
        yield Section("`runcast prices release KEY --why TEXT` publishes one that is right.", ())


def release_paragraph(given: Release) -> Paragraph:
    """What the next refresh will do with a released row."""
    return Paragraph(
        f"The next refresh publishes about {fmt.usd_per_hour(given.usd_per_hour)} of "
        f"{_named(given.sku)} where {given.source} prints it."
    )


def seller(sku: Sku) -> str:
    """Who sells which machine, and where if the region is known."""
    return f"{sku.provider} {sku.instance_type} {vocabulary.stated_region(sku.region)}".strip()


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

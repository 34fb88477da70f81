"""History of a price: bundled observations, and those of this installation.

pricing/price_history.csv holds prices that public files printed since 2022, each with its source
and commit. What `runcast refresh` has seen since is in the store. Both are observations at a
moment: where two are too far apart, or a source failed, there is a gap, and gaps are never filled.
What pricing/history_fill.py fetched on request is read together with the store.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import FactError
from core.machine.offer import Offer
from hardware.outside.csv_text import csv_rows
from hardware.outside.json_text import OutsideError
from pricing.disk import prices_folder
from pricing.offers import CHEAPEST_US, PURCHASES, first_day
from pricing.series import Gap, Point, Sku, Spell, pieces, sku_of

if TYPE_CHECKING:
    from pricing.store.engine import Store

HISTORY_CSV = Path(__file__).with_name("price_history.csv")
MAX_BYTES = 32_000_000
MAX_ROWS = 200_000
FILLED_CSV = "history.csv"  # in the folder of prices: what archived pages printed
COLUMNS = [*Sku._fields, "usd_per_hour", "observed_at", "source"]
# A refresh is due every few hours; two days without one are a gap.
LONGEST_GAP = timedelta(days=2)
# Public files are updated every few weeks: most updates are 3 to 10 weeks apart.
LONGEST_BUNDLED_GAP = timedelta(days=92)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One price over time, source by source."""

    sku: Sku
    spells: tuple[Spell, ...]
    gaps: tuple[Gap, ...]

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that printed the price."""
        return tuple(dict.fromkeys(s.source for s in self.spells))

    def chart_rows(self) -> list[dict[str, Any]]:
        """Rows for a step chart: the ends of each line; `piece` numbers unbroken lines."""
        rows: list[dict[str, Any]] = []
        piece, before = 0, None
        for s in self.spells:
            joined = before is not None and before.source == s.source and before.until == s.first_at
            piece += not joined
            before = s
            rows += [
                {
                    "at": at,
                    "usd_per_hour": s.usd_per_hour,
                    "usd_per_gpu_hour": s.usd_per_hour / self.sku.gpu_count,
                    "source": s.source,
                    "piece": piece,
                }
                for at in dict.fromkeys((s.first_at, s.until))
            ]
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceOn:
    """A price on a day. If not exact, it was seen before that day and not again since."""

    sku: Sku  # its region may be 'cheapest in the US' of the source
    usd_per_hour: float
    source: str
    seen_from: datetime
    seen_until: datetime
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CostOn:
    """Cost of the machines of a plan at the price of a day. None: that price is not known."""

    day: date
    usd: float | None
    usd_now: float | None
    price: PriceOn | None

    @property
    def ratio(self) -> float | None:
        """Cost at the price of that day over the cost of the plan."""
        return self.usd / self.usd_now if self.usd is not None and self.usd_now else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """Spot price of one machine relative to its on-demand price. None: not known."""

    spot_ratio: float | None  # median over the days on which both are known
    num_days: int
    spot_volatility: float | None  # standard deviation of the log change a day
    on_demand_volatility: float | None


def history(sku: Sku, *, since: date | None = None, store: Store | None = None) -> History:
    """The spells and gaps of one price; with `since`, those that end on that day or later."""
    printed = _bundled(HISTORY_CSV).get(sku, ())
    if store is not None:
        printed = (*printed, *_filled().get(sku, ()))
    spells, gaps = pieces(printed, longest_gap=LONGEST_BUNDLED_GAP)
    if store is not None:
        of_store = pieces(_stored(store, sku, since), longest_gap=LONGEST_GAP)
        spells, gaps = spells + of_store[0], gaps + of_store[1]
    if since is not None:
        spells = tuple(s for s in spells if s.until.date() >= since)
        gaps = tuple(g for g in gaps if g.ends is None or g.ends.date() >= since)
    return History(sku=sku, spells=spells, gaps=gaps)


def known_skus(
    *,
    accelerator: str | None = None,
    purchase: str | None = None,
    store: Store | None = None,
    limit: int = 1000,
) -> list[Sku]:
    """Everything with a price history, in alphabetical order."""
    printed = {*_bundled(HISTORY_CSV), *(_filled() if store is not None else ())}
    found = {
        sku
        for sku in printed
        if accelerator in (None, sku.accelerator) and purchase in (None, sku.purchase)
    }
    if store is not None:
        from pricing.store.queries import skus

        found |= set(skus(store, accelerator=accelerator, purchase=purchase, limit=limit))
    return sorted(found)[:limit]


def price_on(sku: Sku, day: date, *, store: Store | None = None) -> PriceOn | None:
    """The price on a day, or the last one seen shortly before it.

    Observations of this installation take precedence over bundled ones. If the place itself has no
    price on that day, the source's cheapest in the US is used: `sku.region` says so.
    """
    for asked in dict.fromkeys((sku, sku._replace(region=CHEAPEST_US))):
        found = history(asked, store=store)
        if (price := _at(found, day)) is not None:
            return price
    return None


def _at(found: History, day: date) -> PriceOn | None:
    printed = _sources(_bundled(HISTORY_CSV)) | _sources(_filled())
    own = [s for s in found.spells if s.source not in printed]
    bundled = [s for s in found.spells if s.source in printed]
    for spells in (own, bundled):
        if covering := [s for s in spells if s.first_at.date() <= day <= s.until.date()]:
            return _price(found.sku, max(covering, key=_newest), day)
    for spells, longest in ((own, LONGEST_GAP), (bundled, LONGEST_BUNDLED_GAP)):
        earlier = [s for s in spells if timedelta(0) < day - s.until.date() <= longest]
        if earlier:
            return _price(found.sku, max(earlier, key=_newest), day)
    return None


def _newest(s: Spell) -> tuple[datetime, datetime, str]:
    return (s.first_at, s.last_at, s.source)


def _price(sku: Sku, s: Spell, day: date) -> PriceOn:
    return PriceOn(
        sku=sku,
        usd_per_hour=s.usd_per_hour,
        source=s.source,
        seen_from=s.first_at,
        seen_until=s.last_at,
        exact=day <= s.last_at.date(),
    )


def cost_on(
    offer: Offer, day: date, *, num_machines: int, hours: float, store: Store | None = None
) -> CostOn:
    """Cost of these machines for these hours at the price of a day."""
    price = price_on(sku_of(offer), day, store=store)
    machine_hours = num_machines * hours
    now = offer.usd_per_hour
    return CostOn(
        day=day,
        usd=None if price is None else price.usd_per_hour * machine_hours,
        usd_now=None if now is None else now * machine_hours,
        price=price,
    )


# --- observations --------------------------------------------------------------------------------


def _stored(store: Store, sku: Sku, since: date | None) -> list[Point]:
    """Points of every source at each of its refreshes, from the stored changes."""
    from pricing.store.models import SEEN
    from pricing.store.queries import ANSWERED, observed

    begins = None if since is None else datetime.combine(since, time(), UTC)
    changes, runs = observed(store, sku, since=begins)
    points = []
    for source, of_source in runs.items():
        events = {o.run_id: o for o in changes if o.source == source}
        now = None
        for run in of_source:
            now = events.get(run.run_id, now)
            if now is None:
                continue
            if run.status not in ANSWERED:
                points.append(Point(at=run.at, source=source, usd_per_hour=None, why="it failed"))
            elif now.state == SEEN:
                points.append(Point(at=run.at, source=source, usd_per_hour=now.usd_per_hour))
            else:
                why = "not listed" if now.state == "gone" else "held back, or in a part that failed"
                points.append(Point(at=run.at, source=source, usd_per_hour=None, why=why))
    return points


@lru_cache(maxsize=2)
def _bundled(path: Path) -> dict[Sku, tuple[Point, ...]]:
    """The bundled prices, by SKU."""
    return _read_csv(path)


def _filled() -> dict[Sku, tuple[Point, ...]]:
    """The prices of archived pages that were fetched here, by SKU; none if there are none."""
    path = prices_folder() / FILLED_CSV
    try:
        written_ns = path.stat().st_mtime_ns
    except OSError:
        return {}
    return _of_file(path, written_ns)


@lru_cache(maxsize=2)
def _of_file(path: Path, written_ns: int) -> dict[Sku, tuple[Point, ...]]:
    return _read_csv(path)


def _read_csv(path: Path) -> dict[Sku, tuple[Point, ...]]:
    if path.stat().st_size > MAX_BYTES:
        raise FactError(f"{path.name} is larger than {MAX_BYTES // 10**6} MB: no price history")
    found: dict[Sku, list[Point]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv_rows(file, strict=True)
            if next(rows, (1, []))[1] != COLUMNS:
                raise FactError(f"{path.name}:1: columns are not {', '.join(COLUMNS)}")
            for n, (line, cells) in enumerate(rows):
                if n == MAX_ROWS:
                    raise FactError(f"{path.name} has more than {MAX_ROWS:,} rows")
                row = dict(zip_longest(COLUMNS, cells))
                sku, point = _read(row, f"{path.name}:{line}")
                found.setdefault(sku, []).append(point)
    except (OutsideError, UnicodeDecodeError) as e:
        clause = e.clause if isinstance(e, OutsideError) else "is not UTF-8 text"
        raise FactError(f"{path.name} {clause}") from None
    return {sku: tuple(points) for sku, points in found.items()}


def _read(row: dict[str, Any], at: str) -> tuple[Sku, Point]:
    try:
        usd, gpu_count = float(row["usd_per_hour"]), int(row["gpu_count"])
        seen_at = _midnight(first_day(row["observed_at"]))
    except (TypeError, ValueError) as e:
        raise FactError(f"{at}: {e}") from None
    named = all(row[name] for name in ("provider", "instance_type", "accelerator", "source"))
    if not (0 < usd < 1e4 and gpu_count > 0 and row["purchase"] in PURCHASES and named):
        raise FactError(f"{at}: no price in USD per hour of a machine with a source")
    sku = Sku(
        row["provider"], row["instance_type"], row["accelerator"], gpu_count, row["region"],
        row["purchase"],
    )  # fmt: skip
    # One file of one project is one source, whatever the commit.
    return sku, Point(at=seen_at, source=_project(row["source"]), usd_per_hour=usd)


def _project(source: str) -> str:
    return sys.intern(source.partition("@")[0])


@lru_cache(maxsize=4096)
def _midnight(day: date) -> datetime:
    """One object for all prices of a day."""
    return datetime.combine(day, time(), UTC)


def _sources(prices: dict[Sku, tuple[Point, ...]]) -> set[str]:
    return {p.source for points in prices.values() for p in points}

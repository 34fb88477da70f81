"""Price history for the Prices page: one price over time, a plan on another day."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from app.document import format as fmt
from app.document import vocabulary
from app.document.on_use import pd
from app.document.table import Table, text_column
from app.prices.history_document import seller
from core.errors import RuncastError
from core.numeric import as_float
from core.search.plan import Plan
from pricing.history import CostOn, History, Market, history, known_skus
from pricing.series import Gap, Sku, ratios, volatility
from pricing.store.engine import Store, StoreError
from pricing.store.opening import open_store

SHOWN_SKUS = 1000
GAPS = (
    text_column("Not known from", lambda g: g.begins.date()),
    text_column("to", lambda g: g.ends.date() if g.ends else "now"),
    text_column("Why", lambda g: g.why),
    text_column("Source", lambda g: g.source),
)


def store_or_sentence() -> tuple[Store | None, str]:
    """The price store, or a sentence on why it cannot be used; bundled files need no store."""
    try:
        return open_store(), ""
    except StoreError as e:
        return None, str(e)


def label(sku: Sku) -> str:
    """A price in one line, for a list of choices."""
    kind = vocabulary.purchase(sku.purchase)
    return f"{sku.gpu_count} x {sku.accelerator}, {seller(sku)}, {kind}"


def accelerators(offered: Iterable[str]) -> list[str]:
    """Accelerators that are offered now or have a bundled price history."""
    return sorted({*offered, *(sku.accelerator for sku in known_skus())})


def skus(store: Store | None, accelerator: str) -> list[Sku]:
    """Prices with a history; only the bundled ones if what is kept here cannot be read."""
    try:
        return known_skus(accelerator=accelerator, store=store, limit=SHOWN_SKUS)
    except RuncastError:
        return known_skus(accelerator=accelerator, limit=SHOWN_SKUS)


def lines(found: History) -> pd.DataFrame:
    """The rows of the chart; the line joins only rows with the same `piece`."""
    columns = ["at", "usd_per_hour", "usd_per_gpu_hour", "source", "piece"]
    return pd.DataFrame(found.chart_rows(), columns=columns)


def gaps(found: History) -> Table[Gap]:
    """The periods in which the price was not known, and why."""
    return Table(caption="Gaps", columns=GAPS, rows=tuple(found.gaps))


def history_sentence(found: History) -> str:
    """A sentence with the period, the range of prices and the sources."""
    if not found.spells:
        return "Nobody has printed this price."
    prices = [s.usd_per_hour / found.sku.gpu_count for s in found.spells]
    first = min(s.first_at for s in found.spells).date()
    last = max(s.last_at for s in found.spells).date()
    spread = fmt.usd_per_hour(min(prices))
    if max(prices) > min(prices):
        spread += f" to {fmt.usd_per_hour(max(prices))}"
    times = "once" if first == last else f"from {first} to {last}"
    unknown = len(found.gaps)
    known = f", with {unknown} {'gap' if unknown == 1 else 'gaps'}" if unknown else ""
    return (
        f"{label(found.sku)}: {spread} a GPU, seen {times}{known}, by {len(found.sources)} "
        f"{'source' if len(found.sources) == 1 else 'sources'}."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """One price over time, and the spot and on-demand prices of its machine."""

    chosen: History
    spot: History
    on_demand: History


def prices_of(sku: Sku, store: Store | None) -> Prices:
    """The price histories of one machine, each read once."""
    asked = {
        kind: history(sku._replace(purchase=kind), store=store)
        for kind in dict.fromkeys((sku.purchase, "spot", "on_demand"))
    }
    return Prices(chosen=asked[sku.purchase], spot=asked["spot"], on_demand=asked["on_demand"])


def market_of(prices: Prices) -> Market:
    """The spot price of the machine against its on-demand price."""
    spot, on_demand = prices.spot.spells, prices.on_demand.spells
    days = [ratio for _, ratio in ratios(spot, on_demand)]
    return Market(
        spot_ratio=median(days) if days else None,
        num_days=len(days),
        spot_volatility=volatility(spot),
        on_demand_volatility=volatility(on_demand),
    )


def ratio_days(prices: Prices) -> pd.DataFrame:
    """Spot price over on-demand price by day; `piece` changes where a day is missing."""
    found = ratios(prices.spot.spells, prices.on_demand.spells)
    days = np.array([day.toordinal() for day, _ in found], dtype=np.int64)
    starts = np.diff(days, prepend=days[:1]) > 1
    return pd.DataFrame(
        {
            "day": pd.to_datetime([day for day, _ in found]),
            "ratio": [ratio for _, ratio in found],
            "piece": np.cumsum(starts),
        }
    )


def market_sentence(found: Market) -> str:
    """A sentence with the median ratio and how much the prices move."""
    if found.spot_ratio is None:
        return "Spot and on-demand are not known of one day: there is no ratio."
    markets = {"spot": found.spot_volatility, "on-demand": found.on_demand_volatility}
    moves = [
        f"{name} moves by {fmt.percent(value)} a day (standard deviation)"
        for name, value in markets.items()
        if value is not None
    ]
    days = "day" if found.num_days == 1 else "days"
    head = (
        f"Spot costs {fmt.percent(found.spot_ratio)} of on-demand (median of "
        f"{fmt.count(found.num_days)} {days} on which both are known)"
    )
    return "; ".join([head, *moves]) + "."


def plan_on_sentence(plan: Plan, found: CostOn) -> str:
    """A sentence with the plan's cost on that day, its source and the difference from now."""
    what = f"{vocabulary.machine(plan)} for {fmt.days(as_float(plan.cost.paid_hours))}"
    if found.usd is None or found.price is None:
        return f"{what}: nobody's price of {found.day} is at hand."
    price = found.price
    seen = price.seen_until.date()
    of_day = "" if price.exact else f", seen last on {seen}"
    region = vocabulary.stated_region(price.sku.region) or "no stated region"
    place = "" if price.sku.region == plan.offer.region else f" (its price in {region})"
    head = f"{what}: {fmt.usd(found.usd)} on {found.day}{of_day}{place}, by {price.source}"
    if found.usd_now is None or found.ratio is None:
        return f"{head}."
    return f"{head}; {fmt.usd(found.usd_now)} now, {_difference(found.ratio)}."


def _difference(ratio: float) -> str:
    if abs(ratio - 1) < 0.005:
        return "the same"
    share = fmt.percent(abs(ratio - 1))
    return f"then {share} {'more' if ratio > 1 else 'less'}"


def longest(found: Sequence[Sku]) -> int:
    """Index of the price that is shown first: the one with the most distinct bundled values."""

    def rank(i: int) -> tuple[int, int, bool, int]:
        spells = history(found[i]).spells
        prices = {s.usd_per_hour for s in spells}
        return len(prices), len(spells), found[i].purchase == "on_demand", -i

    return max(range(len(found)), key=rank)

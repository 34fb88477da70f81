"""Ways to buy a plan's machines as tables: every way, every spot policy, and the rows of charts.

Values are numbers in the unit that the column name gives; app/document/format.py turns them into
text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import pandas as pd

from app.buy import labels, words
from app.buy.kept import Way
from app.buy.purchases import Purchases, Repeated
from app.document import format as fmt
from app.document import vocabulary
from app.document.blocks import Block, Bullets, Paragraph
from app.document.table import Column, Table
from app.risk import document as risk_document
from app.risk.risk import Spread
from core.money.purchase import TERM_HOURS
from core.scenario import Scenario
from core.units import DAY_S, HOUR_S

DAY_H = DAY_S / HOUR_S
LEGEND = (
    "Cost and time are expected ones; P50 and P90 hold the forecast's own error, too. Idle: paid "
    "while nothing trains. Times are in days."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bought:
    """One way to buy; a spot policy also has the market on which it was simulated."""

    way: Way
    market: Repeated | None = None


Of = Callable[[Spread], float]


def _usd(name: str, head: str, of: Of, short: str = "") -> Column[Bought]:
    def value(r: Bought) -> float:
        return float("nan") if r.way.usd is None else of(r.way.usd)

    return Column(name=name, head=head, short=short, value=value, write=fmt.usd_short)


def _days(name: str, head: str, of: Of, short: str = "") -> Column[Bought]:
    """A time in days without the unit, which a terminal has no room for."""

    def value(r: Bought) -> float:
        return float("nan") if r.way.hours is None else of(r.way.hours) / DAY_H

    return Column(name=name, head=head, short=short, value=value, write=lambda x: f"{x:.3g}")


def _time(name: str, head: str, of: Of) -> Column[Bought]:
    """A time in words, in a suitable unit."""
    return Column(
        name=name,
        head=head,
        value=lambda r: fmt.MISSING if r.way.hours is None else fmt.days(of(r.way.hours)),
    )


def _usd_between(r: Bought) -> str:
    usd = r.way.usd
    low, high = (usd.p10_all, usd.p90_all) if usd else (None, None)
    return f"{fmt.usd_short(low)} to {fmt.usd_short(high)}"


def _time_between(r: Bought) -> str:
    hours = r.way.hours
    low, high = (hours.p10_all, hours.p90_all) if hours else (None, None)
    return f"{fmt.days(low)} to {fmt.days(high)}"


COLUMNS: tuple[Column[Bought], ...] = (
    Column(name="way", head="Way to buy", value=lambda r: labels.label(r.way), is_text=True),
    Column(
        name="policy",
        head="Policy",
        short="Policy on spot",
        value=lambda r: labels.POLICIES.get(r.way.name, ""),
        is_text=True,
    ),
    Column(
        name="family",
        head="Bought",
        value=lambda r: vocabulary.PURCHASE_FAMILIES[r.way.kind],
        is_text=True,
    ),
    Column(name="machine", head="Machine", value=lambda r: labels.machine(r.way), is_text=True),
    Column(
        name="market",
        head="Market",
        value=lambda r: labels.MARKETS[r.market.market.name] if r.market else "",
        is_text=True,
    ),
    Column(
        name="preemptions_per_day",
        head="Preemptions of the job",
        short="Preemptions",
        value=lambda r: r.market.market.job_per_day if r.market else None,
        cell=lambda r: words.market(r.market) if r.market else "",
    ),
    _usd("usd", "Cost, expected", lambda s: s.expected, "Cost"),
    _usd("usd_p10", "Cost, P10", lambda s: s.p10_all, "P10"),
    _usd("usd_p50", "Cost, P50", lambda s: s.p50_all, "P50"),
    _usd("usd_p90", "Cost, P90", lambda s: s.p90_all, "P90"),
    Column(name="usd_p10_to_p90", head="Cost, P10 to P90", value=_usd_between),
    _days("days", "Days, expected", lambda s: s.expected, "Time"),
    _days("days_p10", "Days, P10", lambda s: s.p10_all, "P10"),
    _days("days_p50", "Days, P50", lambda s: s.p50_all, "P50"),
    _days("days_p90", "Days, P90", lambda s: s.p90_all, "P90"),
    _time("time", "Time, expected", lambda s: s.expected),
    _time("time_p90", "Time, P90", lambda s: s.p90_all),
    Column(name="time_p10_to_p90", head="Time, P10 to P90", value=_time_between),
    Column(
        name="late",
        head="Misses the deadline",
        short="Late",
        value=lambda r: r.way.misses_deadline,
        write=labels.chance,
    ),
    Column(
        name="over_budget",
        head="Over the budget",
        value=lambda r: r.way.over_budget,
        write=labels.chance,
    ),
    Column(
        name="idle_usd",
        head="Paid while nothing trains",
        short="Idle",
        value=lambda r: r.way.idle_usd,
        write=fmt.usd_short,
    ),
    Column(
        name="on_spot",
        head="Hours on spot",
        short="On spot",
        value=lambda r: r.way.spot_share,
        write=fmt.percent,
    ),
    Column(name="preemptions", head="Preemptions of the run", value=lambda r: r.way.preemptions),
)
WAYS_FILE = (
    "way", "family", "machine", "usd", "usd_p10", "usd_p50", "usd_p90", "days", "days_p10",
    "days_p50", "days_p90", "late", "over_budget", "idle_usd", "preemptions",
)  # fmt: skip
WAYS_READ = (
    "way", "usd", "usd_p10_to_p90", "time", "time_p10_to_p90", "late", "over_budget", "idle_usd",
    "machine",
)  # fmt: skip
WAYS_NARROW = (
    "way", "usd", "usd_p50", "usd_p90", "days", "days_p50", "days_p90", "late", "idle_usd",
)  # fmt: skip
POLICIES_FILE = (
    "policy", "market", "preemptions_per_day", "usd", "usd_p90", "days", "days_p90", "late",
    "on_spot", "preemptions",
)  # fmt: skip
POLICIES_READ = (
    "policy", "preemptions_per_day", "usd", "usd_p90", "time", "time_p90", "late", "on_spot",
)  # fmt: skip
POLICIES_NARROW = (
    "policy", "preemptions_per_day", "usd", "usd_p90", "days", "days_p90", "late", "on_spot",
)  # fmt: skip


def ways(found: Purchases) -> Table[Bought]:
    """Every way with a time, in the order of purchase kinds."""
    rows = tuple(Bought(way=w) for w in found.ways if w.hours is not None)
    caption = "Every way to buy, the cheapest first"
    return Table(caption=caption, columns=COLUMNS, rows=rows)


def cheapest_first(found: Purchases) -> Table[Bought]:
    """Every way with a time by expected cost, cheapest first; ways without a price last."""
    table = ways(found)
    by_cost = sorted(table.rows, key=lambda r: r.way.usd.expected if r.way.usd else float("inf"))
    return replace(table, rows=tuple(by_cost))


def policies(found: Purchases) -> Table[Bought]:
    """Every policy on every market."""
    rows = (Bought(way=w, market=m) for m in found.markets for w in m.ways if w.hours is not None)
    return Table(caption="Every policy", columns=COLUMNS, rows=tuple(rows))


def spreads(found: Purchases) -> pd.DataFrame:
    """Every way as numbers for charts and files, the cheapest first."""
    return cheapest_first(found).only(*WAYS_FILE).frame()


def played(found: Purchases) -> pd.DataFrame:
    """Every policy on every market as numbers for charts and files."""
    return policies(found).only(*POLICIES_FILE).frame()


def read(table: Table[Bought], names: Sequence[str]) -> Table[Bought]:
    """The columns shown to a reader: no chances for a deadline or budget that was not given."""
    limits = {
        "late": any(r.way.misses_deadline is not None for r in table.rows),
        "over_budget": any(r.way.over_budget is not None for r in table.rows),
    }
    return table.only(*(n for n in names if limits.get(n, True)))


def blocks(scenario: Scenario, found: Purchases) -> tuple[Block, ...]:
    """The answer, every way, the policies on every market, and the inputs it rests on."""
    lacking = tuple(f"{ways}: {why}" for ways, why in words.lacking(found))
    on_spot = policies(found)
    rules = tuple(f"{labels.POLICIES[name]}: {rule}" for name, rule in labels.RULES.items())
    return (
        *map(Paragraph, words.sentences(scenario, found)),
        ways(found).only(*WAYS_NARROW),
        Paragraph(LEGEND),
        Bullets(tuple(_machines(found)), "Machines of these prices"),
        *((Bullets(lacking, "Without figures"),) if lacking else ()),
        *((on_spot.only(*POLICIES_NARROW), Bullets(rules)) if on_spot.rows else ()),
        risk_document.rests_on(found.inputs),
    )


def _machines(found: Purchases) -> list[str]:
    """Each machine with the ways that are priced on it."""
    of: dict[str, list[str]] = {}
    for way in found.ways:
        if way.plan:
            of.setdefault(labels.machine(way), []).append(labels.label(way))
    return [f"{machine}: {', '.join(names)}" for machine, names in of.items()]


def headlines(scenario: Scenario, found: Purchases) -> list[tuple[str, str, str]]:
    """Four numbers at the top of the page: label, value, and a qualifying line."""
    ways = {w.name: w for w in found.ways}
    rows = []
    if (best := words.cheapest(scenario, found)) is not None and best.usd and best.hours:
        rows.append(("Cheapest", fmt.usd_short(best.usd.expected), labels.label(best)))
    for name, title in (("on_demand", "On demand"), ("spot_only", "Spot only")):
        way = ways[name]
        if way.usd is None or way.hours is None:
            rows.append((title, fmt.MISSING, "no price known" if way.plan is None else "no figure"))
            continue
        late = "" if way.misses_deadline is None else f", late {labels.chance(way.misses_deadline)}"
        line = f"{fmt.days(way.hours.expected)}{late}; P90 {fmt.usd_short(way.usd.p90_all)}"
        rows.append((title, fmt.usd_short(way.usd.expected), line))
    if (even := found.break_even) is not None:
        rows.append(
            ("Spot pays up to", labels.rate(even.job_per_day), "preemptions of the job a day")
        )
    return rows


def curves(found: Purchases) -> pd.DataFrame:
    """Chance of missing a deadline against the deadline; ways with equal times share one line."""
    rows, seen = [], set()
    for way in found.ways:
        if not way.finish or way.finish in seen:
            continue
        seen.add(way.finish)
        name = _shared([w for w in found.ways if w.finish == way.finish])
        rows += [{"way": name, "days": h / 24, "late": 1 - p} for h, p in way.finish]
    return pd.DataFrame(rows, columns=["way", "days", "late"])


def late_from_words(drawn: pd.DataFrame, at_most: float = 0.1) -> str:
    """The deadline from which each way is late with a chance of at most `at_most`, by its curve."""
    said = []
    for way, rows in drawn.groupby("way", sort=False):
        points = list(zip(rows["days"], rows["late"], strict=True))
        for (d0, l0), (d1, l1) in pairwise(points):
            if l1 <= at_most < l0:
                days = d0 + (l0 - at_most) / (l0 - l1) * (d1 - d0)
                said.append(f"{way} from {fmt.days(days * 24)}")
                break
    return f"At most {fmt.percent(at_most)} late: {'; '.join(said)}." if said else ""


def lost(found: Purchases) -> pd.DataFrame:
    """Expected days not spent training, by cause; ways with equal times share one row."""
    rows, seen = [], set()
    for way in found.ways:
        parts = tuple(way.lost_hours.get(p, 0.0) for p in vocabulary.LOST)
        if way.hours is None or not way.lost_hours or parts in seen:
            continue
        seen.add(parts)
        name = _shared([w for w in found.ways if _parts(w) == parts])
        for order, (part, hours) in enumerate(zip(vocabulary.LOST.values(), parts, strict=True)):
            share = hours / way.hours.expected
            rows.append(
                {"way": name, "part": part, "order": order, "days": hours / 24, "share": share,
                 "text": f"{fmt.days(hours)}, {fmt.percent(share)} of the time"}
            )  # fmt: skip
    columns = ["way", "part", "order", "days", "share", "text"]
    return pd.DataFrame(rows, columns=columns)


def lost_sentence(drawn: pd.DataFrame) -> str:
    """The total of each bar, in a sentence."""
    sums = drawn.groupby("way", sort=False)["days"].sum()
    return "; ".join(f"{way} {fmt.days(days * 24)}" for way, days in sums.items())


def _parts(way: Way) -> tuple[float, ...]:
    return tuple(way.lost_hours.get(p, 0.0) for p in vocabulary.LOST) if way.lost_hours else ()


def _shared(ways: Sequence[Way]) -> str:
    """One name for ways that take equal time: the used and paid share of a term or window does
    not change the time."""
    terms = {w.kind for w in ways if w.kind in TERM_HOURS}
    names = []
    for way in ways:
        if way.kind in TERM_HOURS:
            names.append(
                vocabulary.PURCHASE_FAMILIES[way.kind]
                if len(terms) > 1
                else vocabulary.purchase(way.kind)
            )
        else:
            names.append(
                labels.label(way) if way.kind == "spot" else vocabulary.PURCHASE_FAMILIES[way.kind]
            )
    return ", ".join(dict.fromkeys(names))

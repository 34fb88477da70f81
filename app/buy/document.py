"""Ways to buy a plan's machines as tables: every way, every spot policy, and the rows of charts.

Values are numbers in the unit that the column name gives; app/document/format.py turns them into
text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from app.buy import labels, words
from app.buy.kept import Purchase
from app.buy.purchases import Purchases
from app.document import format as fmt
from app.document import vocabulary
from app.document.blocks import Block, Bullets, Paragraph
from app.document.on_use import pd
from app.document.table import Column, Table
from app.risk import document as risk_document
from core.cost.uncertain import Uncertain
from core.money.purchase import TERM_HOURS
from core.scenario import Scenario

DAY_H = 24
LEAST_DAYS = 0.1  # shorter times name their unit
LEGEND = (
    "Cost and time are averages with failures, interruptions, an uncertain speed and an uncertain "
    "price. Idle: paid while nothing trains. Times are in days, if they name no unit."
)


Of = Callable[[Uncertain], float]
Write = Callable[[Any], str]


def _text(name: str, head: str, value: Callable[[Purchase], str]) -> Column[Purchase]:
    return Column(name=name, head=head, value=value, is_text=True)


def _figure(
    name: str, head: str, value: Callable[[Purchase], float | None], write: Write, short: str = ""
) -> Column[Purchase]:
    return Column(name=name, head=head, short=short, value=value, write=write)


def _usd(name: str, head: str, of: Of, short: str) -> Column[Purchase]:
    return _figure(name, head, lambda p: of(p.usd) if p.usd else math.nan, fmt.usd_short, short)


def _paid_usd(way: Purchase) -> float:
    return way.paid.mean if way.paid else math.nan


def _in_days(days: float) -> str:
    """A number of days; in its own unit if it is a small part of one."""
    return f"{days:.3g}" if days == 0 or days >= LEAST_DAYS else fmt.days(days * DAY_H)


def _days(name: str, head: str, of: Of, short: str) -> Column[Purchase]:
    """A time in days without the unit, which a terminal has no room for."""

    def days(p: Purchase) -> float:
        return of(p.hours) / DAY_H if p.hours else math.nan

    return _figure(name, head, days, _in_days, short)


def _time(name: str, head: str, of: Of) -> Column[Purchase]:
    """A time in words, in a suitable unit."""
    return Column(name=name, head=head, value=lambda p: fmt.days(of(p.hours) if p.hours else None))


def _between(
    name: str, head: str, of: Callable[[Purchase], Uncertain | None], write: Write
) -> Column[Purchase]:
    """P10 to P90."""

    def text(p: Purchase) -> str:
        figures = of(p)
        low, high = (figures.p10, figures.p90) if figures else (None, None)
        return f"{write(low)} to {write(high)}"

    return Column(name=name, head=head, value=text)


COLUMNS: tuple[Column[Purchase], ...] = (
    _text("way", "Way to buy", labels.label),
    Column(
        name="policy",
        head="Policy",
        short="Policy on spot",
        value=lambda p: labels.POLICIES.get(p.name, ""),
        is_text=True,
    ),
    _text("family", "Bought", lambda p: vocabulary.PURCHASE_FAMILIES[p.kind]),
    _text("machine", "Machine", labels.machine),
    _text("market", "Market", lambda p: labels.MARKETS[p.market.name] if p.market else ""),
    Column(
        name="preemptions_per_day",
        head="Interruptions of the run",
        short="Interruptions",
        value=lambda p: p.market.job_per_day if p.market else None,
        cell=lambda p: labels.market(p.market) if p.market else "",
    ),
    _usd("usd", "Cost, mean", lambda s: s.mean, "Cost"),
    _usd("usd_p10", "Cost, P10", lambda s: s.p10, "P10"),
    _usd("usd_p50", "Cost, P50", lambda s: s.p50, "P50"),
    _usd("usd_p90", "Cost, P90", lambda s: s.p90, "P90"),
    _between("usd_p10_to_p90", "Cost, P10 to P90", lambda p: p.usd, fmt.usd_short),
    _figure("paid_usd", "Committed, mean", _paid_usd, fmt.usd_short, "Committed"),
    _days("days", "Days, mean", lambda s: s.mean, "Time"),
    _days("days_p10", "Days, P10", lambda s: s.p10, "P10"),
    _days("days_p50", "Days, P50", lambda s: s.p50, "P50"),
    _days("days_p90", "Days, P90", lambda s: s.p90, "P90"),
    _time("time", "Time, mean", lambda s: s.mean),
    _time("time_p90", "Time, P90", lambda s: s.p90),
    _between("time_p10_to_p90", "Time, P10 to P90", lambda p: p.hours, fmt.days),
    _figure("late", "Misses the deadline", lambda p: p.misses_deadline, labels.chance, "Late"),
    _figure("over_budget", "Over the budget", lambda p: p.over_budget, labels.chance),
    _figure("idle_usd", "Paid while nothing trains", lambda p: p.idle_usd, fmt.usd_short, "Idle"),
    _figure("on_spot", "Hours on spot", lambda p: p.spot_share, fmt.percent, "On spot"),
    Column(name="preemptions", head="Interruptions of the run", value=lambda p: p.preemptions),
)
WAYS_FILE = (
    "way", "family", "machine", "usd", "usd_p10", "usd_p50", "usd_p90", "days", "days_p10",
    "days_p50", "days_p90", "late", "over_budget", "idle_usd", "preemptions", "paid_usd",
)  # fmt: skip
WAYS_READ = (
    "way", "paid_usd", "usd", "usd_p10_to_p90", "time", "time_p10_to_p90", "late", "over_budget",
    "idle_usd", "machine",
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


def ways(found: Purchases) -> Table[Purchase]:
    """Every way with a time, in the order of purchase kinds."""
    rows = tuple(w for w in found.ways if w.hours is not None)
    caption = "Every way to buy, the cheapest first"
    return Table(caption=caption, columns=COLUMNS, rows=rows)


def cheapest_first(found: Purchases) -> Table[Purchase]:
    """Every way with a time by the mean of what is paid; ways without a price last."""
    table = ways(found)
    by_cost = sorted(table.rows, key=words.paid_usd)
    return replace(table, rows=tuple(by_cost))


def policies(found: Purchases) -> Table[Purchase]:
    """Every policy on every market."""
    rows = tuple(w for m in found.markets for w in m.ways if w.hours is not None)
    return Table(caption="Every policy", columns=COLUMNS, rows=rows)


def spreads(found: Purchases) -> pd.DataFrame:
    """Every way as numbers for charts and files, the cheapest first."""
    return cheapest_first(found).only(*WAYS_FILE).frame()


def played(found: Purchases) -> pd.DataFrame:
    """Every policy on every market as numbers for charts and files."""
    return policies(found).only(*POLICIES_FILE).frame()


def read(table: Table[Purchase], names: Sequence[str]) -> Table[Purchase]:
    """The columns shown to a reader: no chances for a deadline or budget that was not given."""
    limits = {
        "late": any(w.misses_deadline is not None for w in table.rows),
        "over_budget": any(w.over_budget is not None for w in table.rows),
    }
    return table.only(*(n for n in names if limits.get(n, True)))


def blocks(scenario: Scenario, found: Purchases) -> tuple[Block, ...]:
    """The answer, every way, the policies on every market, and the inputs it rests on."""
    machines = tuple(
        f"{machine}: {', '.join(map(labels.label, ways))}"
        for machine, ways in found.grouped(lambda w: labels.machine(w) if w.plan else "").items()
    )
    lacking = tuple(f"{ways}: {why}" for ways, why in words.lacking(found))
    on_spot = policies(found)
    rules = tuple(f"{labels.POLICIES[name]}: {rule}" for name, rule in labels.RULES.items())
    return (
        *map(Paragraph, words.sentences(scenario, found)),
        ways(found).only(*WAYS_NARROW),
        Paragraph(LEGEND),
        Bullets(machines, "Machines of these prices"),
        *((Bullets(lacking, "Without figures"),) if lacking else ()),
        *((on_spot.only(*POLICIES_NARROW), Bullets(rules)) if on_spot.rows else ()),
        risk_document.rests_on(found.inputs),
    )


def headlines(scenario: Scenario, found: Purchases) -> list[tuple[str, str, str]]:
    """Four numbers at the top of the page: label, value, and a qualifying line."""
    rows = []
    if (best := words.cheapest(found)) is not None and best.paid and best.hours:
        rows.append(
            ("Cheapest", fmt.usd_short(best.paid.mean), f"on average, {labels.label(best)}")
        )
    for name, title in (("on_demand", "On demand"), ("spot_only", "Spot only")):
        way = found.named(name)
        if way.usd is None or way.hours is None:
            rows.append((title, fmt.MISSING, "no price known" if way.plan is None else "no figure"))
            continue
        late = "" if way.misses_deadline is None else f", late {labels.chance(way.misses_deadline)}"
        line = f"on average, in {fmt.days(way.hours.mean)}{late}; P90 {fmt.usd_short(way.usd.p90)}"
        rows.append((title, fmt.usd_short(way.usd.mean), line))
    if (even := found.break_even) is not None:
        rows.append(("Spot pays up to", labels.rate(even.job_per_day), "interruptions a day"))
    return rows


def curves(found: Purchases) -> pd.DataFrame:
    """Chance of missing a deadline against the deadline; ways with equal times share one line."""
    rows = []
    for finish, ways in found.grouped(lambda w: w.finish).items():
        name = _shared(ways)
        rows += [{"way": name, "days": h / DAY_H, "late": 1 - p} for h, p in finish]
    return pd.DataFrame(rows, columns=["way", "days", "late"])


def late_from_words(drawn: pd.DataFrame, at_most: float = 0.1) -> str:
    """The deadline from which each way is late with a chance of at most `at_most`, by its curve."""
    found = []
    for way, rows in drawn.groupby("way", sort=False):
        points = list(zip(rows["days"], rows["late"], strict=True))
        for (d0, l0), (d1, l1) in pairwise(points):
            if l1 <= at_most < l0:
                days = d0 + (l0 - at_most) / (l0 - l1) * (d1 - d0)
                found.append(f"{way} from {fmt.days(days * DAY_H)}")
                break
    return f"At most {fmt.percent(at_most)} late: {'; '.join(found)}." if found else ""


def lost(found: Purchases) -> pd.DataFrame:
    """Mean days not spent training, by cause; ways with equal times share one row."""
    rows = []
    for causes, ways in found.grouped(lambda w: tuple(w.lost_hours.items())).items():
        name, whole = _shared(ways), ways[0].hours.mean if ways[0].hours else math.nan
        for order, (cause, hours) in enumerate(causes):
            share = hours / whole
            rows.append(
                {"way": name, "part": labels.LOST[cause], "order": order, "days": hours / DAY_H,
                 "share": share, "text": f"{fmt.days(hours)}, {fmt.percent(share)} of the time"}
            )  # fmt: skip
    return pd.DataFrame(rows, columns=["way", "part", "order", "days", "share", "text"])


def lost_sentence(drawn: pd.DataFrame) -> str:
    """The total of each bar, in a sentence."""
    sums = drawn.groupby("way", sort=False)["days"].sum()
    return "; ".join(f"{way} {fmt.days(days * DAY_H)}" for way, days in sums.items())


def _shared(ways: Sequence[Purchase]) -> str:
    """One name for ways that take equal time: the used and paid share of a term or window does
    not change the time."""
    terms = {w.kind for w in ways if w.kind in TERM_HOURS}

    def name(way: Purchase) -> str:
        if way.kind == "spot":
            return labels.label(way)
        if terms == {way.kind}:
            return vocabulary.purchase(way.kind)
        return vocabulary.PURCHASE_FAMILIES[way.kind]

    return ", ".join(dict.fromkeys(map(name, ways)))

"""Ways to buy a plan's machines as rows and columns: what the page draws, lists and downloads.

Values stay numbers in the unit that the column's name says; text is made by app/document/format.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pandas as pd

from app.buy import labels
from app.buy import words as told
from app.buy.kept import Way
from app.buy.purchases import Purchases
from app.document import format as fmt
from app.document import vocabulary
from app.risk.words import NAMES, shown_value
from core.money.purchase import TERM_HOURS
from core.scenario import Scenario

FAMILIES = {
    "on_demand": "on demand", "spot": "spot", "reserved_1y": "reserved",
    "reserved_3y": "reserved", "capacity_block": "capacity block", "owned": "own cluster",
}  # fmt: skip
PARTS = {
    "checkpoint": "writing checkpoints",
    "rework": "work done again",
    "restart": "restarting",
    "waiting": "waiting for machines",
    "slow_nodes": "slow nodes",
}
BASES = {"default": "published", "given": "as given", "trace": "of the trace"}
USD = ["usd", "usd_p10", "usd_p50", "usd_p90"]
DAYS = ["days", "days_p10", "days_p50", "days_p90"]


def headlines(scenario: Scenario, found: Purchases) -> list[tuple[str, str, str]]:
    """Four numbers on top: label, value, and a line that qualifies it."""
    ways = {w.name: w for w in found.ways}
    rows = []
    if (best := told.cheapest(scenario, found)) is not None and best.usd and best.hours:
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


def spreads(found: Purchases) -> pd.DataFrame:
    """One row a way that has a time, the cheapest as expected first; those without a price last."""
    rows = []
    for way in found.ways:
        if way.hours is None:
            continue
        usd, h = way.usd, way.hours
        figures = (
            [usd.expected, usd.p10_all, usd.p50_all, usd.p90_all] if usd else [float("nan")] * 4
        )
        days = [x / 24 for x in (h.expected, h.p10_all, h.p50_all, h.p90_all)]
        rows.append(
            {
                "way": labels.label(way),
                "family": FAMILIES[way.kind],
                "machine": labels.machine(way),
                **dict(zip(USD, figures, strict=True)),
                **dict(zip(DAYS, days, strict=True)),
                "late": way.misses_deadline,
                "over_budget": way.over_budget,
                "idle_usd": way.idle_usd,
                "preemptions": way.preemptions,
            }
        )
    columns = ["way", "family", "machine", *USD, *DAYS, "late", "over_budget", "idle_usd",
               "preemptions"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns).sort_values("usd", kind="stable")


def ways_table(found: Purchases) -> pd.DataFrame:
    """The same in words, for a person; ways without figures say why."""
    drawn = spreads(found)
    has_limit = drawn["late"].notna().any()
    table = pd.DataFrame(
        {
            "Way to buy": drawn["way"],
            "Cost, expected": [fmt.usd_short(x) for x in drawn["usd"]],
            "Cost, P10 to P90": [
                _between(a, b) for a, b in drawn[["usd_p10", "usd_p90"]].to_numpy()
            ],
            "Time, expected": [fmt.days(x * 24) for x in drawn["days"]],
            "Time, P10 to P90": [
                f"{fmt.days(a * 24)} to {fmt.days(b * 24)}"
                for a, b in drawn[["days_p10", "days_p90"]].to_numpy()
            ],
            **({"Misses the deadline": [_chance(x) for x in drawn["late"]]} if has_limit else {}),
            **(
                {"Over the budget": [_chance(x) for x in drawn["over_budget"]]}
                if drawn["over_budget"].notna().any()
                else {}
            ),
            "Paid while nothing trains": [fmt.usd_short(x) for x in drawn["idle_usd"]],
            "Machine": drawn["machine"],
        }
    )
    return table.set_index("Way to buy")


def curves(found: Purchases) -> pd.DataFrame:
    """Chance to miss a deadline against that deadline; ways of the same time are one line."""
    rows, seen = [], set()
    for way in found.ways:
        if not way.finish or way.finish in seen:
            continue
        seen.add(way.finish)
        name = _shared([w for w in found.ways if w.finish == way.finish])
        rows += [{"way": name, "days": h / 24, "late": 1 - p} for h, p in way.finish]
    return pd.DataFrame(rows, columns=["way", "days", "late"])


def late_from_words(drawn: pd.DataFrame, at_most: float = 0.1) -> str:
    """From which deadline each way is missed with at most so small a chance, by its curve."""
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
    """Expected days that are not training, by part; ways of the same time are one row."""
    rows, seen = [], set()
    for way in found.ways:
        parts = tuple(way.lost_hours.get(p, 0.0) for p in PARTS)
        if way.hours is None or not way.lost_hours or parts in seen:
            continue
        seen.add(parts)
        name = _shared([w for w in found.ways if _parts(w) == parts])
        for order, (part, hours) in enumerate(zip(PARTS.values(), parts, strict=True)):
            share = hours / way.hours.expected
            rows.append(
                {"way": name, "part": part, "order": order, "days": hours / 24, "share": share,
                 "text": f"{fmt.days(hours)}, {fmt.percent(share)} of the time"}
            )  # fmt: skip
    columns = ["way", "part", "order", "days", "share", "text"]
    return pd.DataFrame(rows, columns=columns)


def lost_sentence(drawn: pd.DataFrame) -> str:
    """The sums of the bars."""
    sums = drawn.groupby("way", sort=False)["days"].sum()
    return "; ".join(f"{way} {fmt.days(days * 24)}" for way, days in sums.items())


def policies(found: Purchases) -> pd.DataFrame:
    """Every policy on every market."""
    rows = []
    for one in found.markets:
        for way in one.ways:
            if way.hours is None:
                continue
            rows.append(
                {
                    "policy": labels.policy(way),
                    "market": labels.MARKETS[one.market.name],
                    "preemptions_per_day": one.market.job_per_day,
                    "usd": way.usd.expected if way.usd else float("nan"),
                    "usd_p90": way.usd.p90_all if way.usd else float("nan"),
                    "days": way.hours.expected / 24,
                    "days_p90": way.hours.p90_all / 24,
                    "late": way.misses_deadline,
                    "on_spot": way.spot_share,
                    "preemptions": way.preemptions,
                }
            )
    columns = ["policy", "market", "preemptions_per_day", "usd", "usd_p90", "days", "days_p90",
               "late", "on_spot", "preemptions"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def policy_table(drawn: pd.DataFrame) -> pd.DataFrame:
    """The same in words."""
    has_limit = drawn["late"].notna().any()
    table = pd.DataFrame(
        {
            "Policy": drawn["policy"],
            "Preemptions of the job a day": [
                f"{rate:.3g} ({market})"
                for rate, market in zip(
                    drawn["preemptions_per_day"], drawn["market"], strict=True
                )
            ],
            "Cost, expected": [fmt.usd_short(x) for x in drawn["usd"]],
            "Cost, P90": [fmt.usd_short(x) for x in drawn["usd_p90"]],
            "Time, expected": [fmt.days(x * 24) for x in drawn["days"]],
            "Time, P90": [fmt.days(x * 24) for x in drawn["days_p90"]],
            **({"Misses the deadline": [_chance(x) for x in drawn["late"]]} if has_limit else {}),
            "Hours on spot": [fmt.percent(x) for x in drawn["on_spot"]],
        }
    )  # fmt: skip
    return table.set_index("Policy")


def inputs(found: Purchases) -> pd.DataFrame:
    """What everything rests on."""
    rows = [
        {
            "Input": labels.INPUTS.get(i.name) or NAMES[i.name],
            "Value": shown_value(i),
            "Basis": BASES.get(i.basis, i.basis),
            "Source": i.source.removeprefix("assumed: "),
        }
        for i in found.inputs
    ]
    return pd.DataFrame(rows, columns=["Input", "Value", "Basis", "Source"])


def _parts(way: Way) -> tuple[float, ...]:
    return tuple(way.lost_hours.get(p, 0.0) for p in PARTS) if way.lost_hours else ()


def _shared(ways: Sequence[Way]) -> str:
    """One name of ways that take the same time: how much of a term or window is used and paid
    does not change it."""
    terms = {w.kind for w in ways if w.kind in TERM_HOURS}
    names = []
    for way in ways:
        if way.kind in TERM_HOURS:
            names.append(FAMILIES[way.kind] if len(terms) > 1 else vocabulary.purchase(way.kind))
        else:
            names.append(labels.label(way) if way.kind == "spot" else FAMILIES[way.kind])
    return ", ".join(dict.fromkeys(names))


def _between(low: float, high: float) -> str:
    return f"{fmt.usd_short(low)} to {fmt.usd_short(high)}"


def _chance(p: float | None) -> str:
    return labels.chance(None if p is None or pd.isna(p) else float(p))

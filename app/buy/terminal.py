"""Ways to buy a plan's machines on a terminal: sentences, then small tables."""

from __future__ import annotations

from rich.console import Console

from app.buy import labels
from app.buy import words as told
from app.buy.kept import Way
from app.buy.purchases import Purchases
from app.document import format as fmt
from app.document.terminal import console, figures_table, print_wrapped
from app.risk.words import NAMES, shown_value
from core.scenario import Scenario


def print_purchases(scenario: Scenario, found: Purchases) -> None:
    """The answer, every way, the policies on every market, and what it rests on."""
    out = console()
    for sentence in told.sentences(scenario, found):
        print_wrapped(out, sentence)
    _print_ways(out, found)
    _print_lacking(out, found)
    _print_policies(out, found)
    out.print("\nRests on:")
    for item in found.inputs:
        basis = {"default": "published", "given": "as given", "trace": "of the trace"}.get(
            item.basis, item.basis
        )
        source = f": {item.source.removeprefix('assumed: ')}" if item.source else ""
        name = labels.INPUTS.get(item.name) or NAMES[item.name]
        line = f"{name} {shown_value(item)} ({basis}{source})"
        print_wrapped(out, line, indent="   ", first=" - ")


def _print_ways(out: Console, found: Purchases) -> None:
    """Expected is of failures and preemptions; P50 and P90 have the forecast's own error, too."""
    table = figures_table("Way to buy", "Cost", "P50", "P90", "Time", "P50", "P90", "Late", "Idle")
    for way in found.ways:
        if way.hours is None:
            continue
        usd, hours = way.usd, way.hours
        table.add_row(
            labels.label(way),
            *(fmt.usd_short(x) for x in (usd.expected, usd.p50_all, usd.p90_all))
            if usd
            else [fmt.MISSING] * 3,
            *(_days(x) for x in (hours.expected, hours.p50_all, hours.p90_all)),
            labels.chance(way.misses_deadline),
            fmt.usd_short(way.idle_usd),
        )
    out.print()
    out.print(table)
    print_wrapped(
        out,
        "Cost and time are expected ones; P50 and P90 hold the forecast's own error, too. Idle: "
        "paid while nothing trains. Times are in days.",
    )
    out.print("\nMachines of these prices:")
    for machine in dict.fromkeys(labels.machine(w) for w in found.ways if w.plan):
        of = [labels.label(w) for w in found.ways if w.plan and labels.machine(w) == machine]
        print_wrapped(out, f"{machine}: {', '.join(of)}", indent="   ", first=" - ")


def _print_lacking(out: Console, found: Purchases) -> None:
    lacking = told.lacking(found)
    if lacking:
        out.print("\nWithout figures:")
    for ways, why in lacking:
        print_wrapped(out, f"{ways}: {why}", indent="   ", first=" - ")


def _print_policies(out: Console, found: Purchases) -> None:
    """Every policy on every market."""
    table = figures_table(
        "Policy on spot", "Preemptions", "Cost", "P90", "Time", "P90", "Late", "On spot"
    )
    for repeated in found.markets:
        for way in repeated.ways:
            if way.hours is None:
                continue
            table.add_row(labels.policy(way), told.market(repeated), *_policy_cells(way))
    if table.row_count:
        out.print()
        out.print(table)
        for name, rule in labels.RULES.items():
            print_wrapped(out, f"{labels.POLICIES[name]}: {rule}", indent="   ", first=" - ")


def _policy_cells(way: Way) -> tuple[str, ...]:
    usd, hours = way.usd, way.hours
    return (
        fmt.usd_short(usd.expected if usd else None),
        fmt.usd_short(usd.p90_all if usd else None),
        _days(hours.expected if hours else None),
        _days(hours.p90_all if hours else None),
        labels.chance(way.misses_deadline),
        fmt.percent(way.spot_share),
    )


def _days(hours: float | None) -> str:
    return fmt.MISSING if hours is None else f"{hours / 24:.3g}"

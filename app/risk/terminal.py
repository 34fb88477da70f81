"""A plan with failures on a terminal: sentences, then small tables."""

from __future__ import annotations

from dataclasses import fields
from math import isfinite

from rich.console import Console

from app.document import format as fmt
from app.document.terminal import console, figures_table, print_wrapped
from app.risk.risk import Risk, Spread
from app.risk.words import CHOICES, NAMES, PARTS, risk_sentences, shown_value
from core.scenario import Scenario
from core.units import HOUR_S


def print_risk(scenario: Scenario, risk: Risk) -> None:
    """The answer, its spread, what is lost, the checkpoints, and what it rests on."""
    out = console()
    for sentence in risk_sentences(scenario, risk):
        print_wrapped(out, sentence)
    if risk.hours is not None:
        _print_spread(out, risk.hours, risk.usd)
        _print_lost(out, risk, risk.hours)
    _print_intervals(out, risk)
    out.print("\nRests on:")
    for item in risk.inputs:
        basis = {"default": "published", "given": "as given"}.get(item.basis, item.basis)
        source = f": {item.source.removeprefix('assumed: ')}" if item.source else ""
        line = f"{NAMES[item.name]} {shown_value(item)} ({basis}{source})"
        print_wrapped(out, line, indent="   ", first=" - ")


def _print_spread(out: Console, hours: Spread, usd: Spread | None) -> None:
    table = figures_table("", "Expected", "P50", "P90")
    for name, spread, text in (("Time", hours, fmt.days), ("Cost", usd, _usd)):
        if spread is not None:
            alone, unsure = (spread.p50, spread.p90), (spread.p50_all, spread.p90_all)
            table.add_row(f"{name}, failures alone", *map(text, (spread.expected, *alone)))
            table.add_row(f"{name}, with the forecast's own error", "", *map(text, unsure))
    out.print()
    out.print(table)


def _usd(x: float) -> str:
    return fmt.usd(x, digits=3)


def _print_lost(out: Console, risk: Risk, hours: Spread) -> None:
    lost = risk.badput
    if lost is None:
        return
    parts = {"training": risk.plan.wall_clock_hours}
    parts |= {PARTS[f.name]: float(getattr(lost, f.name)) / HOUR_S for f in fields(lost)}
    parts["slow nodes"] = risk.straggler_hours
    table = figures_table("The time goes to", "Expected", "Share")
    for name, spent in parts.items():
        table.add_row(name, fmt.days(spent), fmt.percent(spent / hours.expected))
    out.print()
    out.print(table)


def _print_intervals(out: Console, risk: Risk) -> None:
    table = figures_table("Work between checkpoints", "Interval", "Expected time", "Above the best")
    best = next(i for i in risk.intervals if i.name == "best").expected_hours
    for i in risk.intervals:
        above = (
            fmt.percent(max(i.expected_hours / best - 1, 0.0)) if isfinite(best) else fmt.MISSING
        )
        interval_s = min(i.interval_s, float(risk.job.work_s))
        cells = (fmt.days(interval_s / HOUR_S), fmt.days(i.expected_hours), above)
        table.add_row(CHOICES[i.name], *cells)
    out.print()
    out.print(table)

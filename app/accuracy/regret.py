"""Regret of choices by forecast: its tables, its sentence and its JSON values.

Choices are those of choices.py: as the forecasts are now, and by fits that had not seen the
publication or the stack (hardware/choices.csv).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from app.accuracy.choices import Regret, parts
from app.accuracy.errors import number
from app.document import format as fmt
from app.document.table import Column, Table, text_column
from core.evidence.choice import Estimate
from hardware.cross_validation import ChoiceFigures

LABELS = {
    "layout": "Layouts of one job",
    "count": "GPU counts and batches, too",
    "machine": "Machines and stacks",
}
UNSEEN = {"new_source": "unseen publications", "unknown_stack": "unknown stacks"}
BLIND = "new_source"
NOW = "these rows"
NOTE = (
    "A group holds at least three measured configurations that somebody could choose between; the "
    "forecast chooses what it ranks first. A bias above 0 is a chosen plan forecast too fast: of "
    "that, its own is what its group as a whole is not off by, and is corrected for by other "
    "publications' groups. In brackets: 90% of bootstraps over groups."
)
WORST = 5  # groups of each grouping that are named


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The choices of one grouping by one set of forecasts."""

    grouping: str
    forecast: str
    groups: int
    configurations: int
    publications: int
    figures: Mapping[str, Estimate]


def _estimate(name: str, measure: str, short: str = "") -> Column[Chosen]:
    def cell(row: Chosen) -> str:
        e = row.figures[measure]
        return f"{fmt.percent(e.value)} ({fmt.percent(e.low)} to {fmt.percent(e.high)})"

    return Column(
        name=name,
        head=name,
        short=short,
        value=lambda row: row.figures[measure].value,
        cell=cell,
    )


COLUMNS: tuple[Column[Chosen], ...] = (
    text_column("Choice among", lambda r: LABELS[r.grouping], wraps=True),
    text_column("Forecasts of", lambda r: r.forecast, wraps=True),
    number("Groups", lambda r: r.groups, fmt.count),
    number("Configurations", lambda r: r.configurations, fmt.count, short="Runs"),
    number("Publications", lambda r: r.publications, fmt.count, short="Pubs"),
    _estimate("Of the best, median", "regret_median", "Of the best"),
    _estimate("Of the best, P10", "regret_p10", "P10"),
    number("Best chosen", lambda r: r.figures["best_share"].value),
    _estimate("Bias of the chosen", "bias", "Bias"),
    _estimate("Corrected", "bias_corrected"),
    _estimate("Its own", "own_bias", "Own"),
    _estimate("Its own, corrected", "own_bias_corrected", "Own corrected"),
)

REACHED = ("Choice among", "Forecasts of", "Groups", "Of the best, median", "Of the best, P10")
BIASES = (
    "Choice among", "Forecasts of", "Bias of the chosen", "Corrected", "Its own",
    "Its own, corrected",
)  # fmt: skip


def of_unseen(choices: ChoiceFigures) -> list[Chosen]:
    """The choices by fits that had not seen the publication, or the stack."""
    found: dict[tuple[str, str], dict[str, Estimate]] = {}
    for (split, grouping, measure), figure in choices.items():
        found.setdefault((split, grouping), {})[measure] = figure.estimate
    rows = []
    for (split, grouping), figures in found.items():
        one = choices[split, grouping, "regret_median"]
        rows.append(
            Chosen(
                grouping=grouping,
                forecast=f"{UNSEEN[split]} ({one.date})",
                groups=one.groups,
                configurations=one.configurations,
                publications=one.publications,
                figures=figures,
            )
        )
    return rows


def of_rows(found: Mapping[str, Regret]) -> list[Chosen]:
    """The choices among the rows of a validation, as they are forecast now."""
    return [
        Chosen(
            grouping=name,
            forecast=NOW,
            groups=len(one.found),
            configurations=one.configurations,
            publications=one.publications,
            figures=one.figures,
        )
        for name, one in found.items()
        if one.figures
    ]


def table(rows: Iterable[Chosen]) -> Table[Chosen]:
    """Regret and the bias of the chosen, a row a grouping and set of forecasts."""
    caption = "Speed of what the forecast ranks first, as a share of the best that was measured"
    return Table(caption=caption, columns=COLUMNS, rows=tuple(rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One group and its choice."""

    grouping: str
    common: Mapping[str, str]  # column -> what all its configurations share
    size: int
    regret: float
    bias: float  # forecast / measured - 1 of the chosen


def worst_groups(found: Mapping[str, Regret]) -> list[Group]:
    """The groups of each grouping whose choice cost most, worst first."""
    return [
        Group(
            grouping=name,
            common=parts(str(one.found.group[i]), name),
            size=int(one.found.size[i]),
            regret=float(one.found.regret[i]),
            bias=float(np.expm1(one.found.shortfall[i])),
        )
        for name, one in found.items()
        for i in np.argsort(one.found.regret, kind="stable")[:WORST]
    ]


def worst_table(groups: Iterable[Group]) -> Table[Group]:
    """The groups whose choice cost most."""

    def common(name: str, column: str) -> Column[Group]:
        return text_column(name, lambda g: g.common.get(column, ""), wraps=True)

    columns = (
        text_column("Choice among", lambda g: LABELS[g.grouping], wraps=True),
        common("Model", "model_key"),
        common("Accelerator", "accelerator"),
        common("Precision", "precision"),
        common("Stack", "framework"),
        number("Runs", lambda g: g.size, fmt.count),
        number("Of the best", lambda g: g.regret),
        number("Bias", lambda g: g.bias),
        common("Source", "source"),
    )
    return Table(caption="Groups whose choice cost most", columns=columns, rows=tuple(groups))


def sentence(choices: ChoiceFigures) -> str:
    """Regret on publications that the fit had not seen: layouts, then machines and stacks."""
    rows = {r.grouping: r for r in of_unseen({k: f for k, f in choices.items() if k[0] == BLIND})}
    if not rows:
        return ""
    layout, machine = (_reached(rows[name]) for name in ("layout", "machine"))
    own, left = (
        fmt.percent(rows["machine"].figures[name].value)
        for name in ("own_bias", "own_bias_corrected")
    )
    return (
        f"Of layouts of one job, the one that the forecast of unseen publications ranks first ran "
        f"at {layout}; of machines and stacks, at {machine}. A plan chosen among machines and "
        f"stacks falls short of its forecast by {own} because it was chosen, by {left} after the "
        "correction."
    )


def _reached(row: Chosen) -> str:
    median, low = (fmt.percent(row.figures[m].value) for m in ("regret_median", "regret_p10"))
    bias = row.figures["bias"].value
    return (
        f"{median} of the fastest measured (median of {row.groups} groups, one in ten below {low}) "
        f"and was forecast {fmt.percent(abs(bias))} too {'fast' if bias > 0 else 'slow'}"
    )


def as_json(rows: Iterable[Chosen]) -> list[dict[str, Any]]:
    """The rows as JSON values: each measure with its value, low and high."""
    return [
        {
            "grouping": row.grouping,
            "forecast": row.forecast,
            "groups": row.groups,
            "configurations": row.configurations,
            "publications": row.publications,
            **{name: asdict(e) for name, e in row.figures.items()},
        }
        for row in rows
    ]


def worst_json(groups: Iterable[Group]) -> list[dict[str, Any]]:
    """The groups whose choice cost most as JSON values."""
    return [
        {"grouping": g.grouping, **g.common, "n": g.size, "regret": g.regret, "bias": g.bias}
        for g in groups
    ]

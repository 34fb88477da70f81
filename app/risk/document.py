"""A plan with failures as blocks: spread, lost time, checkpoints and all inputs."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

from app.document import format as fmt
from app.document import vocabulary
from app.document.blocks import Block, Bullets, Paragraph, Row
from app.document.table import Column, Table, plain
from app.forecast.failure_inputs import Input
from app.risk.risk import Risk
from app.risk.words import basis_words, risk_sentences, shown_value, source_words
from core.scenario import Scenario
from core.units import HOUR_S

CHOICES = {"best": "best", "young": "Young", "daly": "Daly", "given": "as given"}
INPUTS: tuple[Column[Input], ...] = (
    Column(
        name="input",
        head="Input",
        value=lambda i: i.name,
        write=vocabulary.FAILURE_INPUTS.__getitem__,
        is_text=True,
    ),
    Column(name="value", head="Value", value=lambda i: i.value, cell=shown_value),
    Column(
        name="basis",
        head="Basis",
        value=lambda i: i.basis,
        write=vocabulary.BASES.__getitem__,
        is_text=True,
    ),
    Column(name="source", head="Source", value=lambda i: i.source, cell=source_words, is_text=True),
)


def blocks(scenario: Scenario, risk: Risk) -> tuple[Block, ...]:
    """The answer, its spread, lost time, checkpoint intervals, and the inputs it rests on."""
    return (
        *map(Paragraph, risk_sentences(scenario, risk)),
        *(() if risk.hours is None else (spread(risk), lost(risk))),
        intervals(risk),
        rests_on(risk.inputs),
    )


def spread(risk: Risk) -> Table[Row]:
    """Expected, P50 and P90 time and cost: with failures alone, and with the forecast's error."""
    rows: list[Row] = []
    for name, found, text in (("Time", risk.hours, fmt.days), ("Cost", risk.usd, _usd)):
        if found is not None:
            alone = (found.expected, found.p50, found.p90)
            unsure = (found.p50_all, found.p90_all)
            rows.append((f"{name}, failures alone", *map(text, alone)))
            rows.append((f"{name}, with the forecast's own error", "", *map(text, unsure)))
    return plain(
        "Time and cost with failures", ("", "Expected", "P50", "P90"), rows, numeric=(1, 2, 3)
    )


def _usd(x: float) -> str:
    return fmt.usd(x, digits=3)


def lost(risk: Risk) -> Table[Row]:
    """How the expected time is spent, where the run ends."""
    parts = {vocabulary.LOST[cause]: hours for cause, hours in risk.lost_hours.items()}
    parts = {"training": risk.plan.wall_clock_hours, **parts}
    whole = sum(parts.values())
    return plain(
        "What the expected time goes to",
        ("The time goes to", "Expected", "Share"),
        ((name, fmt.days(spent), fmt.percent(spent / whole)) for name, spent in parts.items()),
        numeric=(1, 2),
    )


def intervals(risk: Risk) -> Table[Row]:
    """Work between two checkpoints by each way to choose it, and the hours that result."""
    best = next(i for i in risk.intervals if i.name == "best").expected_hours
    rows = []
    for i in risk.intervals:
        more = max(i.expected_hours / best - 1, 0.0) if isfinite(best) else None
        worked = min(i.interval_s, float(risk.job.work_s)) / HOUR_S
        cells = (fmt.days(worked), fmt.days(i.expected_hours), fmt.percent(more))
        rows.append((CHOICES[i.name], *cells))
    head = ("Work between checkpoints", "Interval", "Expected time", "Above the best")
    return plain("Work between checkpoints", head, rows, numeric=(1, 2, 3))


def inputs(found: Iterable[Input]) -> Table[Input]:
    """Every input of the answer, with its source."""
    return Table(caption="What this rests on", columns=INPUTS, rows=tuple(found))


def rests_on(found: Iterable[Input]) -> Bullets:
    """Every input of the answer, each in a sentence."""
    each = (
        f"{vocabulary.FAILURE_INPUTS[i.name]} {shown_value(i)} ({basis_words(i)})" for i in found
    )
    return Bullets(tuple(each), "Rests on")

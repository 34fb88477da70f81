"""A plan with failures as blocks: time and cost, lost time, checkpoints and all inputs."""

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
from core.numeric import as_float
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
    """Mean, P10, P50 and P90 of time and cost, and of what is committed."""
    committed = risk.plan.paid if risk.plan.cost.commits else None
    rows = [
        (name, *map(write, map(as_float, (x.mean, x.p10, x.p50, x.p90))))
        for name, x, write in (
            ("Time", risk.hours, fmt.days), ("Cost", risk.usd, _usd), ("Committed", committed, _usd)
        )
        if x is not None
    ]  # fmt: skip
    head = ("", "Expected", "P10", "P50", "P90")
    return plain("Time and cost", head, rows, numeric=(1, 2, 3, 4))


def _usd(x: float) -> str:
    return fmt.usd(x, digits=3)


def lost(risk: Risk) -> Table[Row]:
    """The causes of the expected time, where the run ends."""
    parts = {
        vocabulary.LOST[cause]: as_float(hours)
        for cause, hours in risk.plan.cost.hour_terms.items()
        if hours > 0
    }
    return plain(
        "What the expected time goes to",
        ("The time goes to", "Expected", "Share"),
        (
            (name, fmt.days(hours), fmt.percent(hours / risk.plan.expected_hours))
            for name, hours in parts.items()
        ),
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

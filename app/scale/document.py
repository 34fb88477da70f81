"""When and how big as tables: numbers of GPUs, and compute-optimal models."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from app.document import format as fmt
from app.document.blocks import Block, Bullets, Paragraph
from app.document.table import Column, Table
from app.scale.optimal import Best
from app.scale.points import Point, Scale
from app.scale.words import optimal_sentences, scale_sentences, waiting_sentences
from core.scenario import Scenario
from core.units import DAY_S, HOUR_S

DAY_H = DAY_S / HOUR_S


def _in_days(hours: float) -> float:
    return hours / DAY_H


def _days(days: float) -> str:
    return fmt.days(days * DAY_H)


COLUMNS: tuple[Column[Point], ...] = (
    Column(name="num_gpus", head="GPUs", value=lambda p: p.plan.num_gpus, write=fmt.count),
    Column(
        name="days_steady",
        head="Time without failures",
        value=lambda p: _in_days(p.plan.wall_clock_hours),
        write=_days,
    ),
    Column(
        name="days_expected", head="Time", value=lambda p: _in_days(p.hours_expected), write=_days
    ),
    Column(
        name="days_p90",
        head="P90 time of failures alone",
        value=lambda p: _in_days(p.hours_p90),
        write=_days,
    ),
    Column(
        name="days_p90_all", head="P90 time", value=lambda p: _in_days(p.hours_p90_all), write=_days
    ),
    Column(
        name="usd_steady",
        head="Cost without failures",
        value=lambda p: p.usd_steady,
        write=fmt.usd_short,
    ),
    Column(name="usd_expected", head="Cost", value=lambda p: p.usd_expected, write=fmt.usd_short),
    Column(
        name="usd_p90",
        head="P90 cost of failures alone",
        value=lambda p: p.usd_p90,
        write=fmt.usd_short,
    ),
    Column(name="usd_p90_all", head="P90 cost", value=lambda p: p.usd_p90_all, write=fmt.usd_short),
    Column(name="goodput", head="Goodput", value=lambda p: p.goodput, write=fmt.percent),
    Column(name="efficiency", head="Efficiency", value=lambda p: p.efficiency, write=fmt.percent),
    Column(
        name="tokens_per_s",
        head="Tokens/s",
        value=lambda p: p.plan.tokens_per_s.p50,
        write=fmt.tokens,
    ),
    Column(
        name="gpu_hours_per_trillion_tokens",
        head="GPU-hours / 1T",
        short="GPU-h/1T",
        value=lambda p: p.gpu_hours_per_trillion,
        write=fmt.tokens,
    ),
    Column(
        name="usd_per_trillion_tokens",
        head="Cost / 1T",
        short="$/1T",
        value=lambda p: p.usd_per_trillion,
        write=fmt.usd_short,
    ),
    Column(
        name="usd_per_day_saved",
        head="Per day saved",
        short="$/day",
        value=lambda p: p.usd_per_day_saved,
        write=fmt.usd_short,
    ),
    Column(
        name="doubling_saves",
        head="Doubling saves",
        short="2x saves",
        value=lambda p: p.doubling_saves,
        write=fmt.percent,
    ),
    Column(
        name="doubling_usd_per_day_saved",
        head="Doubling, per day saved",
        value=lambda p: p.doubling_usd_per_day,
        write=fmt.usd_short,
    ),
    Column(
        name="layout",
        head="Layout",
        value=lambda p: fmt.layout(p.plan.layout),
        cell=lambda p: fmt.layout_short(p.plan.layout),
        is_text=True,
    ),
)
READ = (
    "num_gpus", "layout", "days_expected", "days_p90_all", "usd_expected", "usd_p90_all", "goodput",
    "efficiency", "tokens_per_s", "gpu_hours_per_trillion_tokens", "usd_per_trillion_tokens",
    "usd_per_day_saved", "doubling_saves",
)  # fmt: skip
TOO_WIDE = ("layout", "goodput")  # for one line of a terminal
LEGEND = (
    "Time and cost with failures; P90 with the forecast's own error, too; 1T: 1e12 tokens; $/day: "
    "dollars for each day less, from the line above; 2x saves: share of the time."
)

OPTIMAL_COLUMNS: tuple[Column[Best], ...] = (
    Column(
        name="law",
        head="Law",
        value=lambda b: b.law.name,
        write=lambda name: name.partition(",")[0],
        is_text=True,
    ),
    Column(name="usd", head="Budget", value=lambda b: b.usd, write=fmt.usd_short),
    Column(name="flops", head="FLOPs", value=lambda b: b.flops, write=fmt.tokens),
    Column(name="parameters", head="Parameters", value=lambda b: b.parameters, write=fmt.tokens),
    Column(name="tokens", head="Tokens", value=lambda b: b.tokens, write=fmt.tokens),
    Column(
        name="tokens_per_parameter",
        head="Tokens a parameter",
        short="D/N",
        value=lambda b: b.tokens_per_parameter,
        write=lambda x: f"{x:.3g}",
    ),
    Column(name="loss", head="Loss", value=lambda b: b.loss, write=lambda x: f"{x:.3f}"),
    Column(name="tokens_per_s", head="Tokens/s", value=lambda b: b.tokens_per_s, write=fmt.tokens),
    Column(
        name="gpu_hours_per_trillion_tokens",
        head="GPU-hours / 1T",
        short="GPU-h/1T",
        value=lambda b: b.gpu_hours_per_trillion,
        write=fmt.tokens,
    ),
    Column(
        name="usd_per_trillion_tokens",
        head="Cost / 1T",
        short="$/1T",
        value=lambda b: b.usd_per_trillion,
        write=fmt.usd_short,
    ),
)
OPTIMAL_READ = (
    "usd", "law", "parameters", "tokens", "tokens_per_parameter", "loss", "tokens_per_s",
    "gpu_hours_per_trillion_tokens", "usd_per_trillion_tokens",
)  # fmt: skip


def counts(found: Scale) -> Table[Point]:
    """One row per number of GPUs; an empty cell in a file: not known, or it never ends."""
    return Table(caption="Time and cost by the number of GPUs", columns=COLUMNS, rows=found.points)


def optimal(found: Scale) -> Table[Best]:
    """One row per budget, law by law."""
    curve = () if found.optimal is None else found.optimal.curve
    caption = "The best model for a budget, by law"
    return Table(caption=caption, columns=OPTIMAL_COLUMNS, rows=curve)


def optimal_read(found: Scale) -> Table[Best]:
    """Every fourth budget of the chart, ascending."""
    table = optimal(found).only(*OPTIMAL_READ)
    half = len(table.rows) // 2
    kept = (b for n, b in enumerate(table.rows) if (n % half) % 4 == 0)
    return replace(table, rows=tuple(sorted(kept, key=lambda b: b.usd)))


def blocks(scenario: Scenario, found: Scale, usd_per_day: float | None = None) -> tuple[Block, ...]:
    """Time and cost by number of GPUs, whether to wait, and which model to train."""
    best = optimal_sentences(found)
    return (
        *map(Paragraph, scale_sentences(scenario, found, usd_per_day)),
        counts(found).only(*(n for n in READ if n not in TOO_WIDE)),
        Paragraph(LEGEND),
        Bullets(waiting_sentences(found, usd_per_day), "Waiting"),
        *((Bullets(best, "Compute-optimal"),) if best else ()),
        *((optimal_read(found),) if found.optimal is not None else ()),
    )


def optimal_drawn(found: Scale) -> pd.DataFrame:
    """The rows of the compute-optimal chart, with the texts of its tooltips."""
    rows = optimal(found).frame()
    return rows.assign(
        parameters_text=[fmt.tokens(x) for x in rows["parameters"]],
        tokens_text=[fmt.tokens(x) for x in rows["tokens"]],
    )


def own_run(found: Scale) -> pd.DataFrame:
    """The scenario's own run on the compute-optimal chart."""
    columns = ["usd", "parameters", "parameters_text", "tokens_text", "name"]
    if found.optimal is None:
        return pd.DataFrame(columns=columns)
    best = found.optimal
    texts = (fmt.tokens(best.parameters), fmt.tokens(best.tokens))
    return pd.DataFrame([(best.usd, best.parameters, *texts, "This run")], columns=columns)


def alt(found: Scale, what: str) -> str:
    """Alternative text of a chart against the number of GPUs."""
    first, last = found.points[0], found.points[-1]
    name = "Days" if what == "days" else "Dollars"

    def at(p: Point) -> str:
        value = fmt.days(p.hours_expected) if what == "days" else fmt.usd_short(p.usd_expected)
        late = fmt.days(p.hours_p90_all) if what == "days" else fmt.usd_short(p.usd_p90_all)
        return f"{value} expected and {late} at P90 with {fmt.count(p.plan.num_gpus)} GPUs"

    return f"{name} of the run against the number of GPUs: {at(first)}, {at(last)}."


def optimal_alt(found: Scale) -> str:
    """Alternative text of the compute-optimal chart."""
    said = "; ".join(
        f"by {b.law.name} {fmt.tokens(b.parameters)} parameters on {fmt.tokens(b.tokens)} tokens"
        for b in (found.optimal.same_usd if found.optimal else ())
    )
    return f"Parameters of the compute-optimal model against dollars. For this run's: {said}."

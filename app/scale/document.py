"""When and how big as tables: numbers of GPUs, and compute-optimal models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from app.document import format as fmt
from app.document.blocks import Block, Bullets, Paragraph
from app.document.on_use import pd
from app.document.table import Column, Table
from app.scale.optimal import Best
from app.scale.points import Point, Scale
from app.scale.words import optimal_sentences, scale_sentences, waiting_sentences
from core.scenario import Scenario

T = TypeVar("T")
Write = Callable[[Any], str]

DAY_H = 24
DRAWN = {"days": "expected_days", "usd": "paid_usd"}  # columns of the charts


def _figure(
    name: str, head: str, value: Callable[[T], float | None], write: Write, short: str = ""
) -> Column[T]:
    return Column(name=name, head=head, short=short, value=value, write=write)


def _days(name: str, head: str, hours: Callable[[Point], float]) -> Column[Point]:
    return _figure(name, head, lambda p: hours(p) / DAY_H, lambda days: fmt.days(days * DAY_H))


def _usd(name: str, head: str, value: Callable[[T], float | None], short: str = "") -> Column[T]:
    return _figure(name, head, value, fmt.usd_short, short)


def _gpu_hours(value: Callable[[T], float]) -> Column[T]:
    name, head = "gpu_hours_per_trillion_tokens", "GPU-hours / 1T"
    return _figure(name, head, value, fmt.tokens, "GPU-h/1T")


COLUMNS: tuple[Column[Point], ...] = (
    _figure("num_gpus", "GPUs", lambda p: p.plan.num_gpus, fmt.count),
    _days("days_steady", "Time without failures", lambda p: p.plan.hours.p50),
    _days("days_expected", "Time with failures", lambda p: p.expected_hours),
    _days("days_p90", "P90 time with failures", lambda p: p.hours_p90),
    _days("days_p90_all", "P90 time of all", lambda p: p.hours_p90),
    _usd("usd_steady", "Cost without failures", lambda p: p.steady_usd),
    _usd("usd_expected", "Cost with failures", lambda p: p.expected_usd),
    _usd("usd_p90", "P90 cost with failures", lambda p: p.expected_usd_p90),
    _usd("usd_p90_all", "P90 cost of all", lambda p: p.expected_usd_p90),
    _figure("goodput", "Goodput", lambda p: p.plan.cost.goodput, fmt.percent),
    _figure("efficiency", "Efficiency", lambda p: p.efficiency, fmt.percent),
    _figure("tokens_per_s", "Tokens/s", lambda p: p.plan.tokens_per_s.p50, fmt.tokens),
    _gpu_hours(lambda p: p.gpu_hours_per_trillion),
    _usd("usd_per_trillion_tokens", "Cost / 1T", lambda p: p.usd_per_trillion, "$/1T"),
    _usd("usd_per_day_saved", "Per day saved", lambda p: p.usd_per_day_saved, "$/day"),
    _figure(
        "doubling_saves", "Doubling saves", lambda p: p.doubling_saves, fmt.percent, "2x saves"
    ),
    _usd("doubling_usd_per_day_saved", "Doubling, per day saved", lambda p: p.doubling_usd_per_day),
    Column(
        name="layout",
        head="Layout",
        value=lambda p: fmt.layout(p.plan.layout),
        cell=lambda p: fmt.layout_short(p.plan.layout),
        is_text=True,
    ),
    _days("expected_days", "Expected time", lambda p: p.expected_hours),
    _days("expected_days_p90", "P90 time", lambda p: p.hours_p90),
    _usd("expected_usd", "Cost of the run", lambda p: p.expected_usd),
    _usd("expected_usd_p90", "P90 cost of the run", lambda p: p.expected_usd_p90),
    _usd("paid_usd", "Expected cost", lambda p: p.paid_usd),
    _usd("paid_usd_p90", "P90 cost", lambda p: p.paid_usd_p90),
)
READ = (
    "num_gpus", "layout", "expected_days", "expected_days_p90", "paid_usd", "paid_usd_p90",
    "goodput",
    "efficiency", "tokens_per_s", "gpu_hours_per_trillion_tokens", "usd_per_trillion_tokens",
    "usd_per_day_saved", "doubling_saves",
)  # fmt: skip
TOO_WIDE = ("layout", "goodput")  # for one line of a terminal
LEGEND = (
    "Cost is the sum you pay, with whole terms of a reservation. 1T: 1e12 tokens. $/day: dollars "
    "for each day less, from the line above. 2x saves: share of the time."
)

OPTIMAL_COLUMNS: tuple[Column[Best], ...] = (
    Column(
        name="law",
        head="Law",
        value=lambda b: b.law.name,
        write=lambda name: name.partition(",")[0],
        is_text=True,
    ),
    _usd("usd", "Budget", lambda b: b.usd),
    _figure("flops", "FLOPs", lambda b: b.flops, fmt.tokens),
    _figure("parameters", "Parameters", lambda b: b.parameters, fmt.tokens),
    _figure("tokens", "Tokens", lambda b: b.tokens, fmt.tokens),
    _figure(
        "tokens_per_parameter",
        "Tokens a parameter",
        lambda b: b.tokens_per_parameter,
        "{:.3g}".format,
        "D/N",
    ),
    _figure("loss", "Loss", lambda b: b.loss, "{:.3f}".format),
    _figure("tokens_per_s", "Tokens/s", lambda b: b.tokens_per_s, fmt.tokens),
    _gpu_hours(lambda b: b.gpu_hours_per_trillion),
    _usd("usd_per_trillion_tokens", "Cost / 1T", lambda b: b.usd_per_trillion, "$/1T"),
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
        *((optimal_read(found),) if found.optimal else ()),
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
    name = "Days" if what == "days" else "Dollars"
    mean = DRAWN[what]
    table = counts(found).only(mean, f"{mean}_p90", "num_gpus")
    each = [f"{cost} expected and {late} at P90 with {n} GPUs" for cost, late, n in table.cells()]
    return f"{name} of the run against the number of GPUs: {each[0]}, {each[-1]}."


def optimal_alt(found: Scale) -> str:
    """Alternative text of the compute-optimal chart."""
    best = "; ".join(
        f"by {b.law.name} {fmt.tokens(b.parameters)} parameters on {fmt.tokens(b.tokens)} tokens"
        for b in (found.optimal.same_usd if found.optimal else ())
    )
    return f"Parameters of the compute-optimal model against dollars. For this run's: {best}."

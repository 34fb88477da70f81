"""A programme as tables: its stages, what each changes, and the contracts compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from app.document import format as fmt
from app.document import vocabulary
from app.document.blocks import Block, Bullets, Paragraph
from app.document.on_use import pd
from app.document.table import Column, Table
from app.programme.contract import Contract, StagePlan
from app.programme.programme import Programme
from app.programme.words import ASSUMED, RESERVED, answer_sentence, sentences
from core.scenario import Scenario

DAY_H = 24.0
SHORT = ("stage", "tokens", "seq_len", "batch", "layout", "days", "end", "gpu_hours", "usd")


def _number(
    name: str, head: str, value: Callable[[StagePlan], float], write: Callable[[float], str]
) -> Column[StagePlan]:
    def cell(stage: StagePlan) -> str:
        found = value(stage)
        return write(found) if math.isfinite(found) else ""

    return Column(name=name, head=head, value=value, cell=cell)


def _text(name: str, head: str, value: Callable[[StagePlan], str]) -> Column[StagePlan]:
    return Column(name=name, head=head, value=value, is_text=True, wraps=name == "layout")


def batch_text(stage: StagePlan) -> str:
    """Sequences per batch, or those of the first and last step of the ramp."""
    sizes = [s.global_batch_size for s in stage.run.steps]
    return fmt.count(sizes[0]) if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"


def name_text(stage: StagePlan) -> str:
    """The name, with its number of runs."""
    count = stage.run.stage.count
    return stage.run.name if count == 1 else f"{stage.run.name} ({fmt.count(count)} runs)"


def _days(hours: float) -> str:
    return fmt.days(hours)


def _change(usd_or_hours: int, halved: bool) -> Callable[[StagePlan], float]:
    return lambda s: (s.halved if halved else s.without)[usd_or_hours]


def _less(write: Callable[[float], str]) -> Callable[[float], str]:
    return lambda x: f"{'-' if x < 0 else '+'}{write(abs(x))}"


COLUMNS: tuple[Column[StagePlan], ...] = (
    _text("stage", "Stage", name_text),
    _number("tokens", "Tokens", lambda s: s.run.stage.count * s.run.tokens, fmt.tokens),
    _number("seq_len", "Sequence", lambda s: float(s.run.scenario.seq_len), fmt.count),
    _text("batch", "Batch", batch_text),
    _text("machines", "Machines", lambda s: f"{fmt.count(s.num_gpus)} x {s.offer.accelerator}"),
    _text("seller", "Seller", lambda s: vocabulary.place(s.offer)),
    _text("layout", "Layout", lambda s: fmt.layout_short(s.layout)),
    _text("stack", "Stack", lambda s: s.stack),
    _text("resharding", "Checkpoint", lambda s: "same layout" if s.keeps_layout else ""),
    _number("mfu", "MFU", lambda s: s.mfu, fmt.percent),
    _number("before_hours", "Before it", lambda s: s.before_hours, _days),
    _number("days", "Time", lambda s: s.expected_hours, _days),
    Column(
        name="end",
        head="Ends, P10 to P90",
        value=lambda s: s.end.mean,
        cell=lambda s: f"{fmt.days(s.end.p10)} to {fmt.days(s.end.p90)}",
    ),
    _number("gpu_hours", "GPU-hours", lambda s: s.gpu_hours, fmt.count),
    _number("usd", "Cost", lambda s: s.usd, lambda x: fmt.usd(x, digits=3)),
)
CHANGES: tuple[Column[StagePlan], ...] = (
    COLUMNS[0],
    _number("usd_without", "Cost without it", _change(0, False), _less(fmt.usd_short)),
    _number("hours_without", "Time without it", _change(1, False), _less(_days)),
    _number("usd_halved", "Cost at half its tokens", _change(0, True), _less(fmt.usd_short)),
    _number("hours_halved", "Time at half its tokens", _change(1, True), _less(_days)),
)
CONTRACTS: tuple[Column[Contract], ...] = (
    Column(
        name="machines", head="Machines", is_text=True,
        value=lambda c: f"{fmt.count(c.stages[0].num_gpus)} x {c.stages[0].offer.accelerator}",
    ),
    Column(
        name="seller", head="Seller", is_text=True,
        value=lambda c: vocabulary.place(c.stages[0].offer),
    ),
    Column(
        name="purchase", head="Purchase", is_text=True,
        value=lambda c: vocabulary.purchase_short(c.stages[0].offer.purchase),
    ),
    Column(
        name="hours", head="Time", value=lambda c: c.cost.hours.mean,
        cell=lambda c: fmt.days(c.cost.hours.mean),
    ),
    Column(
        name="usd", head="Cost", value=lambda c: c.usd,
        cell=lambda c: fmt.usd(c.usd, digits=3) if math.isfinite(c.usd) else "no price",
    ),
    Column(
        name="on_time", head="On time", value=lambda c: c.chance_on_time,
        cell=lambda c: fmt.chance(c.chance_on_time),
    ),
    Column(
        name="against", head="But", is_text=True,
        value=lambda c: vocabulary.not_recommended(c.against) if c.against else "",
    ),
)  # fmt: skip

WAYS: tuple[Column[Contract], ...] = (
    Column(
        name="purchase", head="Bought", is_text=True,
        value=lambda c: vocabulary.purchase(c.stages[0].offer.purchase),
    ),
    CONTRACTS[1],
    CONTRACTS[3],
    Column(
        name="hours_p10_to_p90", head="P10 to P90", value=lambda c: c.cost.hours.p90,
        cell=lambda c: f"{fmt.days(c.cost.hours.p10)} to {fmt.days(c.cost.hours.p90)}",
    ),
    CONTRACTS[4],
    Column(
        name="usd_p10_to_p90", head="Cost, P10 to P90",
        value=lambda c: c.cost.paid.p90,
        cell=lambda c: f"{fmt.usd_short(c.paid.p10)} to {fmt.usd_short(c.paid.p90)}"
        if c.paid else "no price",
    ),
    *CONTRACTS[5:],
)  # fmt: skip
RISK: tuple[Column[StagePlan], ...] = (
    COLUMNS[0],
    _number("steady_hours", "Had nothing failed", lambda s: s.steady_hours, _days),
    _number("before_hours", "Before it", lambda s: s.before_hours, _days),
    _number("hours", "Expected, with both", lambda s: s.expected_hours, _days),
    COLUMNS[-3],
)


def risk_blocks(scenario: Scenario, found: Contract) -> tuple[Block, ...]:
    """When the whole ends and what it costs, with failures."""
    return (Paragraph(answer_sentence(scenario, found)), risk(found))


def ways(found: Sequence[Contract]) -> Table[Contract]:
    """The whole, bought in each way."""
    return _doubted(Table(caption="Ways to buy the whole", columns=WAYS, rows=tuple(found)))


def ways_blocks(found: Sequence[Contract]) -> tuple[Block, ...]:
    """The whole, bought in each way, and what a reservation stands for."""
    return (ways(found), Paragraph(RESERVED))


def _doubted(table: Table[Contract]) -> Table[Contract]:
    """The table, without the columns that are empty: objections, and chances without a deadline."""
    if all(math.isnan(c.cost.chance_on_time) for c in table.rows):
        table = table.without("on_time")
    return table if any(c.against for c in table.rows) else table.without("against")


def risk(found: Contract) -> Table[StagePlan]:
    """Where the expected time of each stage comes from, and when it ends."""
    return Table(caption="The whole with failures, by stage", columns=RISK, rows=found.stages)


def stages(found: Contract) -> Table[StagePlan]:
    """One row a stage."""
    return Table(caption="Stages", columns=COLUMNS, rows=found.stages)


def changes(found: Contract) -> Table[StagePlan]:
    """What the whole costs and takes without each stage, or with half of its tokens."""
    return Table(caption="Without a stage, or half of it", columns=CHANGES, rows=found.stages)


def contracts(found: Programme) -> Table[Contract]:
    """The first contracts, ranked."""
    return _doubted(Table(caption="Contracts", columns=CONTRACTS, rows=found.contracts))


def blocks(scenario: Scenario, found: Programme) -> tuple[Block, ...]:
    """The answer, its stages, what each changes, the contracts, and what is assumed."""
    said = tuple(Paragraph(s) for s in sentences(scenario, found))
    if not found.contracts:
        return said
    return (*said, *tables(found), Bullets(ASSUMED, "Assumed"))


def tables(found: Programme) -> list[Table[Any]]:
    """The stages of the first contract, what each changes, and the contracts compared."""
    best = found.best
    made: list[Table[Any]] = [read_stages(best)]
    if len(best.stages) > 1:
        made.append(read_changes(best))
    if len(found.contracts) > 1:
        made.append(contracts(found))
    return made


def read_stages(found: Contract) -> Table[StagePlan]:
    """The columns that a reader needs: machines where they differ, dollars where there are any."""
    own = () if found.is_one_set else ("machines",)
    return _priced(found, stages(found).only(*SHORT[:4], *own, *SHORT[4:]))


def read_changes(found: Contract) -> Table[StagePlan]:
    """What each stage changes, without dollars where there are none."""
    return _priced(found, changes(found))


def _priced(found: Contract, table: Table[StagePlan]) -> Table[StagePlan]:
    if found.cost.has_price:
        return table
    return table.without(*(c.name for c in table.columns if c.name.startswith("usd")))


def bars(found: Contract) -> pd.DataFrame:
    """Rows of the timeline, in days: when a stage starts and ends, and the P10 and P90 of its
    end."""
    rows = []
    for stage in found.stages:
        end = stage.end
        took = stage.expected_hours - stage.before_hours
        cost = fmt.usd(stage.usd, digits=3) if math.isfinite(stage.usd) else "no price"
        rows.append(
            {
                "stage": name_text(stage),
                "start": (end.mean - took) / DAY_H,
                "end": end.mean / DAY_H,
                "p10": end.p10 / DAY_H,
                "p90": end.p90 / DAY_H,
                "text": f"{fmt.days(end.p10)} to {fmt.days(end.p90)}",
                "cost": cost,
                "layout": fmt.layout_short(stage.layout),
                "label": f"{name_text(stage)}: {fmt.days(took)}, {cost}",
            }
        )
    return pd.DataFrame(rows)


def alt(found: Contract) -> str:
    """Alternative text of the timeline."""
    each = "; ".join(f"{r['stage']} ends after {r['text']}" for _, r in bars(found).iterrows())
    return f"When each stage ends, P10 to P90 from the request of the machines: {each}."

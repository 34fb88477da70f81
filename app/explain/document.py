"""Explanations as tables: differences, bottlenecks, changes and sensitivity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isfinite
from operator import attrgetter

from app.document import format as fmt
from app.document import vocabulary
from app.document.blocks import Block, Paragraph, Section
from app.document.on_use import pd
from app.document.table import Column, Table
from app.explain import words
from app.explain.explained import Against, Named, Why
from app.explain.question import Explanation
from app.explain.sensitivity import Again, Sensitivity
from app.plan.input_words import input_name, input_value
from core.explain.bottleneck import Bottleneck, Faster
from core.explain.changes import Change
from core.explain.explain import Difference
from core.explain.sensitivity import Effect

DRAWN = 10  # inputs of the tornado chart: those with the largest effect
LISTED = 12  # bottlenecks, changes and inputs that a table lists
FILE = (
    "input", "name", "kind", "value", "low", "high", "time_low", "time_high", "usd_low", "usd_high",
    "oom_low", "oom_high",
)  # fmt: skip


Row = tuple[str, float, float, float]  # a part; its seconds in one step, in the other, and more
PARTS: tuple[Column[Row], ...] = (
    Column(name="part", head="Part of a step", value=lambda row: row[0], is_text=True),
    Column(name="first_s", head="This", value=lambda row: row[1], write=fmt.seconds),
    Column(name="second_s", head="Other", value=lambda row: row[2], write=fmt.seconds),
    Column(name="more_s", head="More", value=lambda row: row[3], write=words.more),
)
Shortened = tuple[Bottleneck, str]  # a part of a step, and what would shorten it
BOTTLENECKS: tuple[Column[Shortened], ...] = (
    Column(
        name="group",
        head="Part of a step",
        value=lambda row: row[0].group,
        write=words.group,
        is_text=True,
        wraps=True,
        width=3,
    ),
    Column(
        name="exposed_s",
        head="Time",
        value=lambda row: row[0].exposed_s,
        cell=lambda row: f"{fmt.seconds(row[0].exposed_s)} ({fmt.percent(row[0].share)})",
        width=2,
    ),
    Column(
        name="remedy",
        head="What would shorten it",
        value=lambda row: row[1],
        is_text=True,
        wraps=True,
        width=5,
    ),
)
CHANGES: tuple[Column[Change], ...] = (
    Column(name="change", head="Change", value=words.changed, is_text=True, wraps=True),
    Column(
        name="run",
        head="Without failures",
        value=lambda c: c.usd if isfinite(c.usd) else c.hours,
        cell=lambda c: fmt.usd_short(c.usd) if isfinite(c.usd) else fmt.days(c.hours),
    ),
    Column(name="step_s", head="Step", value=lambda c: c.step_s, write=fmt.seconds),
    Column(
        name="memory_bytes",
        head="Memory per GPU",
        value=lambda c: c.need_bytes,
        cell=lambda c: f"{fmt.gib(c.need_bytes)} of {fmt.gib(c.capacity_bytes)}",
    ),
)


def _then(again: Again) -> str:
    if again.layout is None:
        return ""
    return fmt.layout_short(again.layout) if again.changed else "the same"


AGAIN: tuple[Column[Again], ...] = (
    Column(name="input", head="Input", value=lambda a: input_name(a.name), is_text=True),
    Column(
        name="to",
        head="From, to",
        value=lambda a: f"{input_value(a.name, a.value)} to {input_value(a.name, a.to)}",
        is_text=True,
    ),
    Column(
        name="time",
        head="Time",
        value=lambda a: a.time,
        write=lambda time: "nothing fits" if time is None else _signed(time),
    ),
    Column(name="layout", head="Best layout then", value=_then, is_text=True, wraps=True),
)


def terms(step: Difference) -> Table[Row]:
    """Two steps side by side: the parts that differ most, the rest, the total."""
    first_s, second_s = (
        max(step.first_s - sum(t.first_s for t in step.terms), 0.0),
        max(step.second_s - sum(t.second_s for t in step.terms), 0.0),
    )
    rows = (
        *((vocabulary.step_part(t.part), t.first_s, t.second_s, t.more_s) for t in step.terms),
        ("All else", first_s, second_s, step.rest_s),
        ("Whole step", step.first_s, step.second_s, step.more_s),
    )
    return Table(caption="Two steps side by side", columns=PARTS, rows=rows)


def bottlenecks(faster: Faster) -> Table[Shortened]:
    """Every part of the step, its share, and what would hide it."""
    return Table(
        caption="What would make a step shorter; each line is the step computed again",
        columns=BOTTLENECKS,
        rows=tuple((b, words.remedy_sentence(b, faster)) for b in faster.bottlenecks[:LISTED]),
    )


def changes(named: Named) -> Table[Change]:
    """Changes to a named layout, with the time and memory that result."""
    ranked = named.changes.ranked[:LISTED]
    return Table(caption="Changes of the layout", columns=CHANGES, rows=ranked)


def effects(found: Sensitivity) -> Table[Effect]:
    """Every input with the resulting time and dollars: in files, as fractions of the plan's own."""
    change = fmt.percent(found.change)
    columns: dict[str, Column[Effect]] = {
        name: Column(name=name, head=name.replace("_", " "), value=attrgetter(name))
        for name in FILE[1:]
    }
    columns["value"] = Column(
        name="value",
        head="Now",
        value=lambda e: e.value,
        cell=lambda e: input_value(e.name, e.value),
    )
    return Table(
        caption=f"Each input {change} down and up, the layout as it is",
        columns=(
            Column(name="input", head="Input", value=lambda e: input_name(e.name), is_text=True),
            *columns.values(),
            Column(
                name="lower",
                head=f"-{change}: time / cost",
                value=lambda e: _time_and_cost(e.time_low, e.usd_low),
            ),
            Column(
                name="higher",
                head=f"+{change}: time / cost",
                value=lambda e: _time_and_cost(e.time_high, e.usd_high),
            ),
        ),
        rows=found.effects,
    )


def again(found: tuple[Again, ...]) -> Table[Again]:
    """The effect of a change when the best layout is searched again."""
    caption = "The same with the best layout of these machines searched again"
    return Table(caption=caption, columns=AGAIN, rows=found)


def blocks(found: Explanation) -> Iterator[Block | Section]:
    """The explanation, section by section."""
    if found.nothing_fits:
        yield Paragraph(found.nothing_fits)
    if (plan := found.plan) is not None:
        step = fmt.seconds(sum(plan.step_s.values()))
        yield Paragraph(
            f"Plan {plan.rank}: {fmt.layout(plan.layout)} on {vocabulary.machine(plan)}, {step} a "
            "step."
        )
    for title, named in zip(("The layout", "The other layout"), found.named, strict=False):
        yield Section(title, (*verdict(named), *helps(named)))
    if found.difference is not None:
        yield Section("The difference", tuple(against(found.difference, _other(found))))
    if found.why is not None:
        yield from _why(found.why)
    if found.faster is not None:
        yield _faster(found.faster)
    if found.sensitivity is not None:
        yield from _sensitivity(found.sensitivity, found.again)


def verdict(named: Named) -> Iterator[Block]:
    """Whether a named layout is legal and fits, and if not, why."""
    yield from map(Paragraph, words.named_sentences(named))


def helps(named: Named) -> Iterator[Block]:
    """Changes that help a named layout, the cheapest first."""
    yield Paragraph(words.changes_sentence(named.changes, fits=named.verdict == "fits"))
    if named.changes.ranked:
        yield changes(named)


def against(found: Against, other: str) -> Iterator[Block]:
    """Why another plan or layout is slower or faster, part by part, and the difference in cost."""
    yield Paragraph(words.difference_sentence(found.step, other))
    if found.step.terms:
        yield terms(found.step)
    yield Paragraph(words.run_sentence(found))


def _other(found: Explanation) -> str:
    """The name of the second of two compared plans or layouts."""
    if len(found.named) > 1 or found.plan is None:
        return "The other"
    memory = ", with the memory," if found.named[0].shortage else ""
    return f"Against plan {found.plan.rank}{memory} it"


def _why(why: Why) -> Iterator[Section]:
    if (other := why.runner_up) is not None:
        yield Section("Against the next plan", tuple(against(other, other.label)))
    if (near := why.next_layout) is not None:
        title = (
            f"Against the best of {fmt.count(why.next_changes.num_fit)} layouts that fit and "
            "differ in one or two knobs"
        )
        yield Section(title, tuple(against(near, near.label)))
    yield _faster(why.faster)


def _faster(faster: Faster) -> Section:
    sentence = Paragraph(words.next_sentence(faster))
    return Section("What would make it faster", (sentence, bottlenecks(faster)))


def _sensitivity(found: Sensitivity, searched: tuple[Again, ...]) -> Iterator[Section]:
    moved = effects(found).only("input", "value", "lower", "higher")
    yield Section(moved.caption, (replace(moved, rows=moved.rows[:LISTED]),))
    if searched:
        table = again(searched)
        yield Section(table.caption, (table,))
    yield Section(
        "What the interval is made of", (Paragraph(words.unknowns_sentence(found.unknowns)),)
    )


def tornado(found: Sensitivity) -> pd.DataFrame:
    """The inputs with the largest effect, two rows each: lower and higher."""
    shown = [e for e in found.effects if e.swing > 0][:DRAWN]
    priced = any(isfinite(e.usd_low) for e in shown)
    rows = []
    for order, e in enumerate(shown):
        for side, value, time, usd in (
            ("lower", e.low, e.time_low, e.usd_low),
            ("higher", e.high, e.time_high, e.usd_high),
        ):
            name, at = input_name(e.name), input_value(e.name, value)
            effect = f"time {_signed(time)}" + (f", cost {_signed(usd)}" if priced else "")
            text = f"{name} {_signed(value / e.value - 1)} ({at}): {effect}"
            rows.append((name, order, side, at, usd if priced else time, text))
    return pd.DataFrame(rows, columns=["input", "order", "side", "at", "moved", "text"])


def _time_and_cost(time: float, usd: float) -> str:
    return f"{_signed(time)} / {_signed(usd)}" if isfinite(usd) else _signed(time)


def _signed(fraction: float) -> str:
    if not isfinite(fraction):
        return fmt.MISSING
    return words.signed(0.0 if abs(fraction) < 5e-5 else fraction, fmt.percent)

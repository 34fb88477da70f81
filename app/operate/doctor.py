"""All findings of `runcast doctor`, their summary, and both as a table and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from app.document.as_json import attributes
from app.document.blocks import Block, Paragraph, Section
from app.document.table import Column, Table
from app.operate import data, installed, prices, settings, tools
from app.operate.finding import ORDER, Finding, State, failure_sentence
from core.errors import RuncastError

Look = Callable[[datetime], Iterable[Finding]]
COLUMNS: tuple[Column[Finding], ...] = (
    Column(name="area", head="Area", value=lambda f: f.area, is_text=True),
    Column(name="what", head="What", value=lambda f: f.name, is_text=True, wraps=True),
    Column(name="state", head="State", value=lambda f: f.state, is_text=True),
    Column(name="found", head="Found", value=lambda f: f.value, is_text=True, wraps=True),
)


def examined(now: datetime | None = None) -> list[Finding]:
    """All findings, in the order in which they are printed."""
    at = datetime.now(UTC) if now is None else now
    looks: dict[str, Look] = {
        "installed": installed.look,
        "store": data.look_at_store,
        "prices": prices.look,
        "data": data.look_at_files,
        "settings": settings.look,
        "tools": tools.look,
    }
    return [finding for area, look in looks.items() for finding in _found(area, look, at)]


def _found(area: str, look: Look, now: datetime) -> list[Finding]:
    """The findings of one check; a check that fails becomes a finding, and the others go on."""
    try:
        return list(look(now))
    except (RuncastError, OSError) as e:
        todo = "Mend what the sentence names, then run `runcast doctor` again."
        value = failure_sentence("It", e)
        return [Finding(area=area, name=area, state="broken", value=value, todo=todo)]


def worst(found: Sequence[Finding]) -> State:
    """The worst state of all findings."""
    return max((f.state for f in found), key=ORDER.index, default="ok")


def summary(found: Sequence[Finding]) -> str:
    """One sentence with the number of findings by state.

    >>> summary([Finding(area="a", name="b", state="ok", value="c")])
    'Nothing is broken, no warnings.'
    """
    counts = Counter(f.state for f in found)
    broken = f"{counts['broken']} broken" if counts["broken"] else "Nothing is broken"
    warned = counts["warning"]
    return f"{broken}, {warned or 'no'} {'warning' if warned == 1 else 'warnings'}."


def blocks(found: Sequence[Finding]) -> Iterator[Block | Section]:
    """The table, then a sentence for each thing that is not well."""
    areas = ("", *(f.area for f in found))  # each is named once
    rows = (
        replace(f, area="" if f.area == a else f.area) for a, f in zip(areas, found, strict=False)
    )
    yield Table(caption="Findings", columns=COLUMNS, rows=tuple(rows))
    first, *rest = (*(f"{f.state}, {f.name}: {f.todo}" for f in found if f.todo), summary(found))
    yield Section(first, tuple(map(Paragraph, rest)))


def doctor_json(found: Sequence[Finding], now: datetime) -> dict[str, Any]:
    """The JSON document; its keys are documented in docs/operations.md."""
    return {
        "status": worst(found),
        "at": now.isoformat(timespec="seconds"),
        "findings": [
            {**attributes(f, "area", "name", "state", "value"), "todo": f.todo or None, **f.numbers}
            for f in found
        ],
    }

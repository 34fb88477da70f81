"""Answer every row of the published decision tables, for both the page and the command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hardware.decision_tables import Advice, Kind, decision_tables
from tests.support.guides.decision import Decision
from tests.support.guides.figures import decide_memory, decide_saving, with_printed_figures
from tests.support.guides.stacks import decide_stack
from tests.support.guides.strategy import decide_strategy, decide_task

DECIDE: Mapping[Kind, Callable[[Advice], Decision]] = {
    "strategy": lambda advice: with_printed_figures(decide_strategy(advice)),
    "task": decide_task,
    "stack": decide_stack,
    "memory": decide_memory,
    "saving": decide_saving,
    "none": lambda advice: Decision(
        advice=advice, recommends="No opinion", reasons=(advice.note,), verdict="no opinion"
    ),
}


def decisions_of(tables: Iterable[str]) -> tuple[Decision, ...]:
    """Every row of some tables, in table order."""
    return tuple(
        DECIDE[a.kind](a) for table in tables for a in decision_tables() if a.table == table
    )

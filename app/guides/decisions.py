"""Answer every row of the published decision tables, for both the page and the command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from app.guides.decision import VERDICTS, Decision, Verdict
from app.guides.figures import decide_memory, decide_saving, with_printed_figures
from app.guides.stacks import decide_stack
from app.guides.strategy import ALIKE, CLEARLY, decide_strategy, decide_task
from hardware.decision_tables import Advice, Kind, decision_tables

RULES = (
    "Each published row is asked about concrete jobs, on the usual machine of the GPU. Of what "
    f"fits, strategies within {ALIKE:.0%} of the fastest cannot be told apart by a forecast, so "
    "the simplest of them is recommended, with offload only where it is faster by more than that, "
    "or nothing fits without it. Published advice agrees if it is as fast as that, agrees "
    f"in part if it costs up to {CLEARLY:.0%} more or some of it does not run, and disagrees if "
    "all of it costs more or none of it runs. On the same GPUs, slower by a share is dearer by the "
    "same share."
)


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


def in_tables(found: Iterable[Decision]) -> dict[str, list[Decision]]:
    """Group decisions under the letters of their tables."""
    tables: dict[str, list[Decision]] = {}
    for d in found:
        tables.setdefault(d.advice.table, []).append(d)
    return tables


def counts(found: Iterable[Decision]) -> dict[Verdict, int]:
    """How many cases had each verdict."""
    counted = Counter(d.verdict for d in found)
    return {v: counted[v] for v in VERDICTS}


def verdict_sentence(found: Iterable[Decision]) -> str:
    """Summary such as: 63 cases of 36 published rows: 29 agree, 24 agree in part, 7 disagree, 3 no
    opinion."""
    kept = list(found)
    published = len({(d.advice.table, d.advice.case) for d in kept})
    verdicts = ", ".join(
        f"{n} {v if n == 1 else v.replace('agrees', 'agree')}" for v, n in counts(kept).items() if n
    )
    return (
        f"{len(kept)} case{'' if len(kept) == 1 else 's'} of {published} published "
        f"row{'' if published == 1 else 's'}: {verdicts}."
    )

"""The rows and the sentence about similar measured runs, for the page."""

from __future__ import annotations

from collections.abc import Sequence

from app.document import format as fmt
from app.document.table import Column, Table, column, text_column
from app.plan.neighbours import Neighbour


def table(found: Sequence[Neighbour]) -> Table[Neighbour]:
    """Similar measured runs, one per row."""
    return Table(caption="Nearest measured runs", columns=COLUMNS, rows=tuple(found))


def sentence(found: Sequence[Neighbour]) -> str:
    """How far the forecasts of the nearest runs are from their measurements."""
    errors = [n.error for n in found]
    inside = sum(n.forecast_p10 <= n.measured <= n.forecast_p90 for n in found)
    return (
        f"Our forecasts of these runs are off by {min(errors):+.0%} to {max(errors):+.0%}; "
        f"{inside} of {len(found)} lie inside their P10 to P90. The efficiencies were fitted on "
        "published runs such as these: this is no blind test."
    )


def _compared(n: Neighbour) -> str:
    same = (f"same {_and(n.same)}",) if n.same else ()
    return "; ".join((*n.differences, *same))


def _and(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]


COLUMNS: tuple[Column[Neighbour], ...] = (
    text_column(
        "Published run",
        lambda n: (
            f"{n.model} on {fmt.count(n.num_gpus)} x {n.accelerator}, {n.framework}, "
            f"{n.source_date}"
        ),
    ),
    text_column("What differs from this plan", _compared),
    column("Measured (tokens/s per GPU)", lambda n: fmt.count(n.measured)),
    column("Our forecast of it", lambda n: f"{fmt.count(n.forecast)} ({n.error:+.0%})"),
)

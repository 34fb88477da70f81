"""The rows and the sentence about similar measured runs, for the page."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from app.document import format as fmt
from app.document.escape import as_text
from app.plan.neighbours import Neighbour


def table(found: Sequence[Neighbour]) -> pd.DataFrame:
    """Similar measured runs, one per row. Cells are markup of a static table, hence escaped."""
    return pd.DataFrame(
        [
            {
                "Published run": as_text(
                    f"{n.model} on {fmt.count(n.num_gpus)} x {n.accelerator}, {n.framework}, "
                    f"{n.source_date}"
                ),
                "What differs from this plan": as_text(_compared(n)),
                "Measured (tokens/s per GPU)": fmt.count(round(n.measured)),
                "Our forecast of it": f"{fmt.count(round(n.forecast))} ({n.error:+.0%})",
            }
            for n in found
        ]
    )


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

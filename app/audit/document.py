"""What the Audit page lists: precisions as a table, checks in their order."""

from __future__ import annotations

from typing import Literal

import pandas as pd

from app.audit.audit import Audit
from app.audit.checks import Check
from app.audit.speed import NAMES, tflops, times
from app.audit.words import decides_words
from app.document import format as fmt

Colour = Literal["red", "orange", "green", "blue", "gray"]
# A result is a word; its colour only repeats it.
COLOURS: dict[str, Colour] = {
    "fail": "red",
    "warn": "orange",
    "pass": "green",
    "info": "blue",
    "not given": "gray",
}
ORDER = tuple(COLOURS)


def precisions(audit: Audit) -> pd.DataFrame:
    """One row a precision: the verdict, the peak, the shares, what decides."""
    return pd.DataFrame(
        [
            {
                "Precision": s.precision,
                "Verdict": NAMES[s.verdict],
                "Decided by": decides_words(s),
                "Dense peak": tflops(s.peak),
                "Share of it": fmt.percent(s.share),
                "By 6 P": fmt.percent(s.share_by_rule),
                "Best published": fmt.MISSING if s.over_best is None else times(s.over_best),
                "P10 to P90": forecast(s.forecast.p10, s.forecast.p90)
                if s.forecast
                else fmt.MISSING,
            }
            for s in audit.speeds
        ]
    )


def forecast(p10: float, p90: float) -> str:
    """P10 to P90: 1,199 to 1,876."""
    return f"{fmt.count(p10)} to {fmt.count(p90)}"


def checks(audit: Audit) -> tuple[Check, ...]:
    """The checks, the worst first."""
    return tuple(sorted(audit.checks, key=lambda c: ORDER.index(c.status)))

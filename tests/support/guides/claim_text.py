"""Our finding for a printed figure, and how its arithmetic is written down."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from app.document import format as fmt
from hardware.claims import SCALES
from tests.support.guides.one_case import Run

DIGITS = 4
FORECAST_DIGITS = fmt.DIGITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """Our figure for one claim, in core's unit, and the numbers plugged into its formula."""

    low: float
    high: float
    arithmetic: str
    digits: int = DIGITS


Evaluations: TypeAlias = dict[str, Callable[[], Ours]]  # by the name of the claim


def exactly(value: float, arithmetic: str) -> Ours:
    """A finding with a single figure instead of a range."""
    return Ours(low=float(value), high=float(value), arithmetic=arithmetic)


def number(x: float, digits: int = DIGITS) -> str:
    """A number with this many digits: whole digits in full, never with an exponent.

    >>> number(153600.0), number(0.0603448), number(17.5), number(2.0)
    ('153,600', '0.06034', '17.5', '2')
    """
    if not math.isfinite(x):
        return fmt.MISSING
    decimals = digits - 1 - math.floor(math.log10(abs(x))) if x else 0
    text = f"{x:,.{max(decimals, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def figure(value: float, unit: str, digits: int = DIGITS) -> str:
    """A number in core's unit, written in the unit of the printed figure.

    >>> figure(140e9, "GB"), figure(0.12, "%"), figure(696.0, "USD"), figure(4.0, "x")
    ('140 GB', '12%', '$696', '4x')
    """
    if unit == "USD/h":
        return fmt.usd_per_hour(value)
    text = number(value / SCALES[unit], digits)
    if unit == "USD":
        return f"${text}"
    if unit == "count":
        return fmt.tokens(value)
    return text + unit if unit in ("x", "%") else f"{text} {unit}"


def span(low: float, high: float, unit: str, digits: int = DIGITS) -> str:
    """A range, or one figure if both ends read the same; a dash for none.

    >>> span(30e9, 40e9, "GB"), span(30e9, 30e9, "GB"), span(2.0, 3.5, "USD/h")
    ('30 to 40 GB', '30 GB', '$2.00 to $3.50/h')
    """
    if not math.isfinite(low + high):
        return fmt.MISSING
    ends = [figure(x, unit, digits) for x in (low, high)]
    if ends[0] == ends[1]:
        return ends[0]
    tail = "/h" if unit == "USD/h" else f" {unit}"
    return f"{ends[0].removesuffix(tail)} to {ends[1]}"


def text_of(run: Run) -> str:
    """The layout, its step time and utilisation, and the chance of running out of memory if that is
    a risk."""
    chance = f" ({fmt.chance(run.probability_oom)} chance to run out of memory)"
    return (
        f"{fmt.layout(run.layout)}: {fmt.seconds(run.step_s)} a step, "
        f"{fmt.percent(run.mfu)} MFU, {fmt.gib(run.need_bytes)} a GPU"
        + (chance if run.is_tight else "")
    )


def range_of(ratios: Iterable[float], arithmetic: str) -> Ours:
    """The range over the cases that run. If none runs the figure is infinite, which no claim
    prints."""
    found = [r for r in ratios if math.isfinite(r)] or [math.inf]
    return Ours(low=min(found), high=max(found), arithmetic=arithmetic, digits=FORECAST_DIGITS)


def listed(cases: Mapping[str, float], unit: str = "x") -> str:
    """Each case with its figure: '8 sequences a step: 3.7x; 64: 1.8x'."""
    return "; ".join(
        f"{case}: {span(x, x, unit, FORECAST_DIGITS) if math.isfinite(x) else 'does not fit'}"
        for case, x in cases.items()
    )

"""Whether waiting for a lower price pays, from the price trend of a plan's accelerator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.document import format as fmt
from core.money.scaling import break_even_drop, waiting_saves_usd
from core.numeric import as_float
from core.search.plan import Plan
from pricing.book.offers import is_booked
from pricing.trend import MONTH_DAYS, Trend, trend_of

MONTHS = (1.0, 3.0, 6.0, 12.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Expected saving from waiting a number of months, with its range over sellers."""

    months: float
    saves_usd: float
    least_usd: float  # at the trend of the seller whose price falls least or rises
    most_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The value of waiting; if `waits` is empty, the reason why it is not known."""

    trend: Trend | None
    waits: tuple[Wait, ...]
    why_not: str = ""


def waiting_of(plan: Plan) -> Waiting:
    """The value of waiting, from the bundled prices of the plan's accelerator and purchase kind."""
    if (why := _own_price(plan)) is not None:
        return Waiting(trend=None, waits=(), why_not=why)
    trend = trend_of(plan.offer.accelerator, plan.offer.purchase)
    slope, usd = trend.log_per_month, plan.paid_usd
    if slope is None or usd is None:
        return Waiting(trend=trend, waits=(), why_not=trend.why_not)
    low, high = max(trend.by_seller.values()), min(trend.by_seller.values())

    def saves(log_per_month: float, months: float) -> float:
        saved = waiting_saves_usd(usd=usd, log_per_month=log_per_month, months=months)
        return as_float(saved) + 0.0  # never negative zero

    return Waiting(
        trend=trend,
        waits=tuple(
            Wait(
                months=m,
                saves_usd=saves(slope, m),
                least_usd=saves(low, m),
                most_usd=saves(high, m),
            )
            for m in MONTHS
        ),
    )


def _own_price(plan: Plan) -> str | None:
    if plan.paid_usd is None:
        return "the plan has no price"
    if not np.isfinite(plan.paid_usd):
        return "the run never ends"
    if plan.offer.purchase == "owned" or is_booked(plan.offer):
        return "the price is your own, and no public history says where it goes"
    return None


def trend_sentence(found: Waiting) -> str:
    """How the price has moved, at how many sellers, and how weak that evidence is."""
    trend = found.trend
    if trend is None or trend.log_per_month is None:
        return f"Waiting for a lower price: no forecast, because {found.why_not}."
    slopes = [float(np.expm1(s)) for s in trend.by_seller.values()]
    mean = float(np.expm1(trend.log_per_month))
    sellers = ", ".join(trend.by_seller)
    changes = f"{trend.num_changes} {'change' if trend.num_changes == 1 else 'changes'}"
    return (
        f"List prices of {trend.accelerator} moved by {_signed(mean)} a month in the mean of "
        f"{len(slopes)} sellers ({sellers}), between {_signed(min(slopes))} and "
        f"{_signed(max(slopes))}, from {trend.first} to {trend.last}: few points, {changes} in "
        f"{trend.num_prices} prices, in steps that nobody announces."
    )


def _signed(share: float) -> str:
    if abs(share) < 5e-5:
        return "0%"
    return f"{'+' if share > 0 else '-'}{fmt.percent(abs(share))}"


def wait_sentence(wait: Wait) -> str:
    """The expected saving of one wait, and the most a day may be worth for it to pay."""
    months = "1 month" if wait.months == 1 else f"{wait.months:g} months"
    low, high = (fmt.usd(x, digits=3) for x in (wait.least_usd, wait.most_usd))
    if wait.saves_usd <= 0:
        more = fmt.usd(-wait.saves_usd, digits=3)
        result = "save nothing" if wait.saves_usd == 0 else f"cost {more} more"
        return f"Waiting {months} is expected to {result} (between {low} and {high} saved)."
    per_day = wait.saves_usd / (wait.months * MONTH_DAYS)
    return (
        f"Waiting {months} is expected to save {fmt.usd(wait.saves_usd, digits=3)} (between {low} "
        f"and {high}) and costs {months}: it pays if a day is worth less than "
        f"{fmt.usd(per_day, digits=3)}."
    )


def break_even_sentence(plan: Plan, usd_per_day: float) -> str:
    """How far a price must fall in a month for waiting to pay, if a day has a value."""
    if plan.paid_usd is None or not np.isfinite(plan.paid_usd):
        return ""
    drop = as_float(break_even_drop(usd=plan.paid_usd, usd_per_day=usd_per_day, days=MONTH_DAYS))
    worth = f"Where a day is worth {fmt.usd(usd_per_day, digits=3)}, waiting a month "
    if drop >= 1:
        return f"{worth}pays at no price: it costs more than the whole run."
    return f"{worth}pays from a price that is {fmt.percent(drop)} lower."

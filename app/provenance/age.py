"""The age of an input in words: prices are stale after a day and old after a week."""

from __future__ import annotations

import datetime as dt
import re
from functools import cache
from typing import Literal

from app.document import format as fmt
from app.plan.words import OLD_DAYS
from app.provenance.record import Record
from core.search.plan import Plan
from hardware.efficiency import GENERIC, read_entries

STALE_DAYS = 1  # 24 hours; sources date prices only to the day
Colour = Literal["green", "orange", "red", "gray"]

_URL = re.compile(r"https?://[^\s,;)]+")


def age_of(date: str, today: dt.date) -> str:
    """Days or months since a source's date, or 'no date'.

    >>> age_of("2026-08-21", dt.date(2026, 8, 24)), age_of("", dt.date(2026, 8, 24))
    ('3 days old', 'no date')
    """
    return fmt.age(date, today) if fmt.age_days(date, today) is not None else "no date"


def price_age(plan: Plan, today: dt.date) -> tuple[str, Colour] | None:
    """The text and colour of the badge for a plan's price; None if it is owned or undated."""
    offer = plan.offer
    if plan.usd is None or offer.purchase == "owned" or not offer.observed_at:
        return None
    days = fmt.age_days(offer.observed_at, today)
    if days is None:
        return "price of unknown age", "orange"
    age = fmt.age(offer.observed_at, today)
    if abs(days) > OLD_DAYS:
        return f"old price: {age}", "red"
    if abs(days) > STALE_DAYS:
        return f"price {age}: more than a day", "orange"
    return f"price {age}", "green"


def is_old_price(record: Record, today: dt.date) -> bool:
    """Whether a price is over a week old or has no date."""
    if record.key != "usd_per_instance_hour" or record.kind != "published":
        return False
    days = None if record.source is None else fmt.age_days(record.source.date, today)
    return days is None or abs(days) > OLD_DAYS


@cache
def fit_sentence() -> str:
    """What the fractions were fitted on, and when, from hardware/efficiency.csv."""
    entry = next(e for e in read_entries() if (e.stack, e.quantity) == (GENERIC, "matmul"))
    return f"{entry.basis.removeprefix('fitted: ')}, {entry.date}"


def url_in(ref: str) -> str:
    """The URL in a source; '' if it has none.

    >>> url_in("https://example.org/a page, table 2"), url_in("a data sheet")
    ('https://example.org/a', '')
    """
    found = _URL.search(ref)
    return found[0].rstrip(".") if found else ""

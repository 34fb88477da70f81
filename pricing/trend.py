"""Monthly trend of the price of an accelerator, from the bundled history.

The prices of a seller move together, so each seller counts once, with the mean of its machines. A
machine's trend is the mean change of the log of its price between the first and the last day on
which one source printed it. List prices change in rare steps: a trend describes the past, not the
future.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from statistics import fmean

from pricing.history import history, known_skus
from pricing.series import Spell

LEAST_DAYS = 180  # of one machine's prices
LEAST_SELLERS = 2
DIGITS = 6  # of a slope: smaller ones are rounding of printed prices
MONTH_DAYS = 365.25 / 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Change of the log of a price per month (-0.02 is about 2% less), or why there is none."""

    accelerator: str
    purchase: str
    log_per_month: float | None  # mean over sellers; None: too little history
    by_seller: Mapping[str, float]  # sellers whose history is long enough
    num_prices: int  # machines and places behind it
    num_changes: int  # changes of a price that were seen
    first: date | None
    last: date | None
    why_not: str = ""


def trend_of(accelerator: str, purchase: str) -> Trend:
    """The trend of one accelerator bought one way; without a figure where the history is too
    short."""
    slopes: dict[str, list[float]] = defaultdict(list)
    changes, days = 0, []
    for sku in known_skus(accelerator=accelerator, purchase=purchase):
        spells = _longest(history(sku).spells)
        if not spells:
            continue
        begins, ends = spells[0].first_at, spells[-1].last_at
        lasted = (ends - begins).days
        if lasted < LEAST_DAYS:
            continue
        ratio = spells[-1].usd_per_hour / spells[0].usd_per_hour
        slope = math.log(ratio) / (lasted / MONTH_DAYS)
        slopes[sku.provider].append(slope)
        prices = [s.usd_per_hour for s in spells]
        changes += sum(a != b for a, b in pairwise(prices))
        days += [begins.date(), ends.date()]
    by_seller = {
        seller: round(fmean(found), DIGITS) + 0.0 for seller, found in sorted(slopes.items())
    }
    enough = len(by_seller) >= LEAST_SELLERS
    return Trend(
        accelerator=accelerator,
        purchase=purchase,
        log_per_month=fmean(by_seller.values()) if enough else None,
        by_seller=by_seller,
        num_prices=sum(map(len, slopes.values())),
        num_changes=changes,
        first=min(days, default=None),
        last=max(days, default=None),
        why_not=""
        if enough
        else f"{len(by_seller)} {'seller has' if len(by_seller) == 1 else 'sellers have'} "
        f"{LEAST_DAYS} days or more of history, and a trend needs {LEAST_SELLERS}",
    )


def _longest(spells: Sequence[Spell]) -> list[Spell]:
    """The spells of the source with the longest history, oldest first."""
    of_source: dict[str, list[Spell]] = defaultdict(list)
    for s in sorted(spells, key=lambda s: s.first_at):
        of_source[s.source].append(s)
    return max(
        of_source.values(), key=lambda found: found[-1].last_at - found[0].first_at, default=[]
    )

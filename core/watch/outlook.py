"""The end of a run, its cost and its chance on time, from what was seen so far.

What is left takes its tokens over the believed speed, and for each second of training the seconds
that are lost: the forecast's share as if it had been seen for a tenth of the run, then that of the
run. The error of the latter falls with the number of losses; both errors are taken as independent,
and what is left as log-normal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.cost.uncertain import Uncertain
from core.numeric import Z_90
from core.units import HOUR_S
from core.watch.belief import Belief
from core.watch.records import Planned

PRIOR_SHARE = 0.1  # of the run, that the forecast of losses weighs; chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """How a run goes on. Seconds are from its begin."""

    speed: Uncertain  # tokens/s while it trains
    lost_share: float  # seconds lost for each second of training that is left
    end_s: Uncertain
    usd: Uncertain | None  # None: no price
    chance_on_time: float | None  # None: no deadline


def lost_share(planned: Planned, *, trained_s: float, lost_s: float) -> float:
    """Seconds lost for each second of training, as forecast and as seen.

    >>> p = Planned(p10=9.0, p50=10.0, p90=11.0, tokens=1e4, step_tokens=1.0, lost_share=0.1)
    >>> lost_share(p, trained_s=0.0, lost_s=0.0), round(lost_share(p, trained_s=900, lost_s=0), 3)
    (0.1, 0.01)
    """
    weight = PRIOR_SHARE * planned.training_s
    return (planned.lost_share * weight + lost_s) / (weight + trained_s)


def outlook(
    planned: Planned,
    speed: Belief,
    *,
    tokens: float,
    elapsed_s: float,
    trained_s: float,
    lost_s: float,
    num_losses: int,
) -> Outlook:
    """The outlook after `tokens` and `elapsed_s` seconds."""
    left = max(planned.tokens - tokens, 0.0)
    share = lost_share(planned, trained_s=trained_s, lost_s=lost_s)
    left_s = left / speed.median * (1 + share)
    sigma = math.hypot(speed.sigma, share / (1 + share) / math.sqrt(num_losses + 1))
    end = _spread(elapsed_s, left_s, sigma)
    rate = planned.usd_per_hour
    on_time = None
    if planned.deadline_s is not None:
        on_time = _chance(planned.deadline_s - elapsed_s, left_s, sigma)
    return Outlook(
        speed=Uncertain(
            mean=speed.median * math.exp(speed.sigma**2 / 2),
            p10=speed.quantile(-Z_90),
            p50=speed.median,
            p90=speed.quantile(Z_90),
        ),
        lost_share=share,
        end_s=end,
        usd=None if rate is None else end.times(rate / HOUR_S),
        chance_on_time=on_time,
    )


def _spread(before_s: float, left_s: float, sigma: float) -> Uncertain:
    width = math.exp(Z_90 * sigma)
    return Uncertain(
        mean=before_s + left_s * math.exp(sigma**2 / 2), p10=before_s + left_s / width,
        p50=before_s + left_s, p90=before_s + left_s * width,
    )  # fmt: skip


def _chance(available_s: float, left_s: float, sigma: float) -> float:
    """The chance that what is left fits into the seconds that are available."""
    if left_s <= 0:
        return 1.0 if available_s >= 0 else 0.0
    if available_s <= 0:
        return 0.0
    z = math.log(available_s / left_s) / max(sigma, 1e-9)
    return 0.5 * math.erfc(-z / math.sqrt(2))

"""Prices that guides print, compared with bundled offers, each with date and source."""

from __future__ import annotations

from functools import partial

import numpy as np

from core.machine.offer import Offer
from pricing import offers as prices
from tests.support.guides.cases import H100
from tests.support.guides.claim_text import Evaluations, Ours, exactly, figure, nothing, span
from tests.support.guides.runs import printed

H100S = (H100, "H100-80GB-PCIE")  # a market price of "H100" does not say which
SHOWN = 3  # offers shown in one arithmetic
# The guides print prices of April and May 2026: compared with the bundled snapshot of that summer.
SUMMER_2026 = "418dd4911f7e"


def _usd(offer: Offer) -> float:
    return (offer.usd_per_hour or float("nan")) / offer.gpu_count


def _offers(
    accelerators: tuple[str, ...], purchase: str, snapshot_id: str = SUMMER_2026
) -> list[Offer]:
    """All priced observations, the cheapest first, not only the newest of each place."""
    found = [
        o
        for o in prices.snapshot(snapshot_id).offers
        if o.accelerator in accelerators and o.purchase == purchase and o.usd_per_hour
    ]
    return sorted(found, key=_usd)


def _no_offer(what: str) -> Ours:
    return nothing(f"0 bundled offers of {what}")


def _band(name: str, *accelerators: str) -> Ours:
    """The middle half of the lowest prices of providers, in the month of the claim if available."""
    claim = printed(name)
    every = _offers(accelerators, "on_demand")
    then = [o for o in every if o.observed_at.startswith(claim.source_date)]
    lowest: dict[str, float] = {}
    for o in then or every:
        lowest.setdefault(o.provider, _usd(o))
    if not lowest:
        return _no_offer(" or ".join(accelerators))
    low, middle, high = (float(x) for x in np.percentile(list(lowest.values()), (25, 50, 75)))
    count = f"{len(lowest)} provider{'s' if len(lowest) > 1 else ''}"
    return Ours(
        low=low,
        high=high,
        arithmetic=f"{count} observed in {claim.source_date if then else 'any month'} (price "
        f"snapshot {SUMMER_2026}): "
        f"{span(low, high, 'USD/h')} for the middle half of their lowest prices, median "
        f"{figure(middle, 'USD/h')}",
    )


def _spheron(accelerator: str, purchase: str) -> Ours:
    """Every bundled observation of Spheron for this device and purchase."""
    found = [o for o in _offers((accelerator,), purchase) if o.provider == "spheron"]
    if not found:
        return _no_offer(f"{accelerator} {purchase.replace('_', ' ')} at Spheron")
    shown = "; ".join(
        f"{figure(_usd(o), 'USD/h')} observed {o.observed_at} ({o.source})" for o in found[:SHOWN]
    )
    return Ours(low=_usd(found[0]), high=_usd(found[-1]), arithmetic=shown)


def _gaudi3() -> Ours:
    today = prices.installed_id()
    found = _offers(("Gaudi3",), "on_demand", today)
    if not found:
        return _no_offer("a Gaudi 3")
    cheaper = 1 - _usd(found[0]) / _usd(_offers((H100,), "on_demand", today)[0])
    return exactly(cheaper, f"{len(found)} bundled offers")


EVALUATED: Evaluations = {
    "gaudi3_price": _gaudi3,
    "h100_band": partial(_band, "h100_band", *H100S),
    "b200_band": partial(_band, "b200_band", "B200-180GB"),
    "mi300x_band": partial(_band, "mi300x_band", "MI300X"),
    **{
        f"spheron_{short}_{purchase}": partial(_spheron, accelerator, purchase)
        for short, accelerator in (
            ("h100", H100),
            ("h200", "H200-141GB-SXM"),
            ("b200", "B200-180GB"),
            ("a100", "A100-80GB-SXM"),
        )
        for purchase in ("on_demand", "spot")
    },
}

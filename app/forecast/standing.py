"""What speaks against recommending a plan, though it is searched and shown: stable words."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.forecast.rows.row import Row
from core.scenario import Scenario
from core.search import recommended
from core.search.plan import Answer
from pricing.book.offers import is_booked
from pricing.offers import QUALITIES, age_days
from pricing.price_life import life_days, weak_mark

OLD, WEAK = "old_price", "weak_price"
RESERVATION = "reservation"  # more GPUs than the seller lets a customer have without asking
OF_THE_PRICE = frozenset({OLD, WEAK})


def price_in_doubt(points: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """Which rows of an answer's points stand on a price past its life or of low quality."""
    texts = list(points.get("against", ()))
    doubted = {text for text in set(texts) if OF_THE_PRICE & set(text.split())}
    return np.array([text in doubted for text in texts], dtype=bool)


def set_aside(answer: Answer) -> NDArray[np.bool_]:
    """Which rows of an answer's points something speaks against that does not speak against the
    recommended plan, too: where it stands on an old price itself, others on old prices are no
    worse."""
    return worse_than(answer.plans[0].against if answer.plans else (), answer.points["against"])


def worse_than(first: Sequence[str], texts: Sequence[str] | NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows have a reason against them, words of a text each, that a first plan has not.

    >>> worse_than(("old_price",), ["", "old_price", "old_price reservation"]).tolist()
    [False, False, True]
    """
    worse = {text for text in set(texts) if set(text.split()) - set(first)}
    return np.array([text in worse for text in texts], dtype=bool)


def gates(
    scenario: Scenario,
    points: Mapping[str, NDArray[Any]],
    reasons: Sequence[tuple[str, ...]],
    no_launch: Sequence[str],
) -> dict[str, NDArray[np.float64]]:
    """What a recommended plan has to pass, the first the most important: how far each row is from
    it, 0 where it passes. `reasons` are what `against` says of each row, `no_launch` why no launch
    file takes it."""
    found = {}
    if scenario.deadline_days is not None:
        found["deadline"] = recommended.late_by(
            chances=points["chance_on_time"],
            hours=points["expected_hours"],
            deadline_hours=scenario.deadline_days * 24.0,
            confidence=scenario.deadline_confidence,
        )
    if scenario.budget_usd is not None:
        found["budget"] = np.maximum(points["paid_usd"] / scenario.budget_usd - 1, 0.0)
    most = recommended.MOST_PROBABILITY_OOM
    faults = [len(OF_THE_PRICE.intersection(r)) for r in reasons]
    return found | {
        "supply": np.array([RESERVATION in r for r in reasons], dtype=float),
        "price": np.array(faults, dtype=float),
        "launch": np.array([bool(why) for why in no_launch], dtype=float),
        "memory": np.maximum(points["probability_oom"] - most, 0.0),
    }


def against(scenario: Scenario, row: Row, day: dt.date) -> tuple[str, ...]:
    """Why this plan is not recommended while another one stands; empty if nothing speaks against
    it."""
    supply = (RESERVATION,) if row.num_gpus > row.machine.supply.most_gpus else ()
    offer = row.machine.offer
    if offer.usd_per_hour is None or offer.purchase == "owned" or is_booked(offer):
        return supply
    return supply + against_price(
        offer.provider, offer.instance_type, offer.purchase, offer.observed_at, offer.quality,
        offer.note, scenario.max_price_age_days, day,
    )  # fmt: skip


@lru_cache(maxsize=16_384)  # thousands of rows share an offer
def against_price(
    provider: str, instance_type: str, purchase: str, observed_at: str, quality: str, note: str,
    most_days: float | None, day: dt.date,
) -> tuple[str, ...]:  # fmt: skip
    """Whether a price is past its life on that day, and whether it is weak at any age: of low
    quality, a mean, a floor, resold, or of a shared card. `most_days` is given by the user: None
    means the life of the seller's prices, 0 any age."""
    limit = life_days(provider, purchase) if most_days is None else most_days
    is_old = limit > 0 and age_days(observed_at, day) > limit
    is_weak = quality == QUALITIES[0] or bool(weak_mark(provider, instance_type, note))
    return (OLD,) * is_old + (WEAK,) * is_weak

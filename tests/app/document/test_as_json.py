"""Records as JSON values."""

from dataclasses import dataclass

import numpy as np

from app.document.as_json import as_json, attributes


@dataclass(frozen=True)
class Price:
    usd: float
    places: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    name: str
    price: Price | None
    hours: float = float("inf")


def test_attributes_are_named_or_follow_a_path():
    plan = Plan("a", Price(2.5, ("x", "y")))
    assert attributes(plan, "name", cost="price.usd", seen="price.places") == {
        "name": "a", "cost": 2.5, "seen": ["x", "y"],
    }  # fmt: skip


def test_a_path_through_none_is_none():
    assert attributes(Plan("a", None), cost="price.usd") == {"cost": None}


def test_a_number_that_json_cannot_hold_is_null_at_any_depth():
    plan = Plan("a", Price(np.float64("nan")))
    assert as_json({"plans": [plan]}) == {
        "plans": [{"name": "a", "price": {"usd": None, "places": []}, "hours": None}]
    }
    assert type(as_json(np.float64(1.5))) is float

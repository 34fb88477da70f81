"""Which prices count for a recommendation, on which day, and what is recommended then."""

import datetime as dt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.forecast import answer as forecast_answer
from app.forecast import price_book, resolve
from app.forecast.standing import OLD, WEAK, against_price
from core.errors import ScenarioError
from core.scenario import Scenario
from pricing.offers import age_days, installed_id, snapshot
from pricing.price_life import life_days

DAY = dt.date(2026, 11, 22)
# What people ask first, with limits and without.
CASES = (
    {"model": "llama3.1-8b", "num_tokens": "100B", "deadline_days": 14},
    {"model": "llama3.1-70b", "num_tokens": "500B", "deadline_days": 45},
    {"model": "llama3.1-70b", "num_tokens": "1T", "gpu": "h100", "num_gpus": "256"},
    {"model": "llama3.1-405b", "num_tokens": "1T", "gpu": "h200", "num_gpus": "2048"},
    {"model": "llama3.1-8b", "num_tokens": "1B", "task": "lora", "rank_by": "time"},
)


def price(observed_at="2026-11-01", quality="high", most=None, **changes):
    given = {"provider": "lambda", "instance_type": "x", "purchase": "on_demand", "note": ""}
    return against_price(
        **{**given, **changes}, observed_at=observed_at, quality=quality, most_days=most, day=DAY
    )


def answered(fields, top=2000):
    scenario = resolve.resolve_strict(Scenario.parse(fields))
    return scenario, forecast_answer.answer(scenario, top=top)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ()),
        ({"observed_at": "2026-08-01"}, (OLD,)),
        ({"observed_at": "2026-08-01", "provider": "aws"}, ()),
        ({"observed_at": "2026-08-01", "most": 0}, ()),
        ({"observed_at": "2026-08-01", "most": 200.0}, ()),
        ({"most": 20.0}, (OLD,)),
        ({"observed_at": "2026-09"}, ()),  # counts from its first day
        ({"observed_at": "2026-08"}, (OLD,)),
        ({"quality": "low"}, (WEAK,)),
        ({"note": "marketplace resale", "observed_at": "2025"}, (OLD, WEAK)),
    ],
)
def test_a_price_is_old_past_its_life_and_weak_at_any_age(changes, expected):
    assert price(**changes) == expected


@given(st.integers(0, 900), st.integers(0, 900), st.sampled_from(["aws", "lambda", "vast"]))
def test_what_is_older_never_stands_where_what_is_younger_does_not(one, other, provider):
    young, old = sorted((one, other))
    seen = [(DAY - dt.timedelta(days=n)).isoformat() for n in (young, old)]
    first, second = (OLD in price(s, provider=provider) for s in seen)
    assert first <= second
    assert second == (old > life_days(provider, "on_demand"))


@pytest.mark.parametrize("fields", CASES, ids=str)
def test_no_default_answer_stands_on_a_price_past_its_life_or_of_low_quality(fields):
    scenario, found = answered(fields)
    p = found.points
    fits = p["meets_deadline"] & p["meets_budget"] & np.isfinite(p["usd"])
    stands = ~(np.array(["price" in text for text in p["against"]]))
    assert (fits & stands).any(), "the case has a plan on a price that counts"
    best = found.plans[0].offer
    limit = life_days(best.provider, best.purchase)
    assert age_days(best.observed_at, price_book.price_day(scenario)) <= limit
    assert best.quality != "low"
    assert not p["frontier"][p["in_doubt"]].any() or p["in_doubt"].all()
    within = np.array([len(text.split()) for text in p["against"]])[fits]
    assert within.tolist() == sorted(within), "the less speaks against a plan the sooner it comes"


def test_any_age_is_allowed_by_0_and_one_age_for_all_by_a_number():
    fields = {"gpu": "h100", "num_gpus": "64"}
    counts = [
        sum(OLD in t for t in answered({**fields, "max_price_age_days": most})[1].points["against"])
        for most in ("0", "auto", "1")
    ]
    assert counts[0] == 0
    assert counts[0] < counts[1] < counts[2]


def test_where_nothing_better_is_left_the_best_doubtful_plan_is_the_answer():
    _, found = answered(
        {"gpu": "h100", "num_gpus": "8", "cloud": "coreweave", "prices": "418dd4911f7e"}
    )
    assert found.plans[0].against
    assert found.points["in_doubt"].all()
    assert found.points["frontier"].any()


def test_a_question_is_judged_today_and_a_link_on_the_day_of_its_newest_price(monkeypatch):
    pinned = Scenario(prices="418dd4911f7e")
    for day in (dt.date(2026, 9, 1), dt.date(2030, 1, 1)):
        monkeypatch.setenv(price_book.TODAY, day.isoformat())
        assert price_book.price_day(Scenario()) == day
        assert price_book.price_day(Scenario(prices=installed_id())) == day
        assert price_book.price_day(pinned) == dt.date(2026, 8, 19)
    monkeypatch.setenv(price_book.TODAY, "tomorrow")
    with pytest.raises(ScenarioError, match="RUNCAST_TODAY='tomorrow' is not a day like"):
        price_book.today()


def test_the_clock_of_the_tests_is_the_newest_day_of_the_bundled_prices():
    """Else a question and its link are judged on different days: set it in tests/conftest.py."""
    assert price_book.today().isoformat() == snapshot().newest

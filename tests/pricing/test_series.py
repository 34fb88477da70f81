"""Prices over time: spells, gaps, ratios, volatility, on series made by hand."""

import math
from datetime import UTC, date, datetime, timedelta

import pytest

from pricing.series import Point, daily, pieces, ratios, volatility

START = datetime(2026, 3, 1, 6, tzinfo=UTC)
TWO_DAYS = timedelta(days=2)


def day(n, hour=6):
    return datetime(2026, 3, n, hour, tzinfo=UTC)


def points(prices, source="aws_spot"):
    """Day of March -> price, or the reason for which there is none."""
    return [
        Point(at=day(n), source=source, usd_per_hour=None, why=p)
        if isinstance(p, str)
        else Point(at=day(n), source=source, usd_per_hour=p)
        for n, p in prices.items()
    ]


def cut(prices, longest=TWO_DAYS):
    return pieces(points(prices), longest_gap=longest)


def short(spells):
    return [(s.usd_per_hour, s.first_at.day, s.last_at.day, s.until.day) for s in spells]


def test_a_price_holds_until_the_next_one_is_seen():
    spells, gaps = cut({1: 10.0, 2: 10.0, 3: 12.0, 5: 12.0})
    assert short(spells) == [(10.0, 1, 2, 3), (12.0, 3, 5, 5)]
    assert gaps == ()


def test_too_long_without_a_refresh_is_a_gap_and_the_same_price_begins_again():
    spells, gaps = cut({1: 10.0, 2: 10.0, 6: 10.0, 7: 11.0})
    assert short(spells) == [(10.0, 1, 2, 2), (10.0, 6, 6, 7), (11.0, 7, 7, 7)]
    assert [(g.begins, g.ends, g.why) for g in gaps] == [(day(2), day(6), "no refresh")]


@pytest.mark.parametrize("why", ["it failed", "not listed"])
def test_a_refresh_that_did_not_see_the_price_is_a_gap_however_short(why):
    spells, gaps = cut({1: 10.0, 2: why, 3: 10.0})
    assert short(spells) == [(10.0, 1, 1, 1), (10.0, 3, 3, 3)]
    assert [(g.begins, g.ends, g.why) for g in gaps] == [(day(1), day(3), why)]


def test_what_is_not_seen_again_is_a_gap_without_an_end():
    _, gaps = cut({1: 10.0, 2: "not listed", 3: "it failed"})
    assert [(g.begins, g.ends, g.why) for g in gaps] == [(day(1), None, "not listed")]


def test_what_was_never_seen_has_neither():
    assert cut({1: "it failed", 2: "it failed"}) == ((), ())
    assert cut({}) == ((), ())


def test_sources_are_cut_apart():
    both = points({1: 10.0, 2: 10.0}, "a") + points({1: 11.0, 2: 11.0}, "b")
    spells, _ = pieces(both[::-1], longest_gap=TWO_DAYS)
    assert [(s.source, s.usd_per_hour) for s in spells] == [("a", 10.0), ("b", 11.0)]


def test_the_price_of_a_day_is_the_one_at_its_end_and_gaps_have_none():
    spells, _ = cut({1: 10.0, 3: 12.0, 9: 14.0})
    march = {d.day: p for d, p in daily(spells).items()}
    assert march == {1: 10.0, 2: 10.0, 3: 12.0, 9: 14.0}


def test_volatility_is_the_deviation_of_daily_log_changes_and_does_not_cross_a_gap():
    prices = {1: 10.0, 2: 11.0, 3: 10.0, 4: 11.0, 9: 100.0}
    spells, _ = cut(prices)
    up = math.log(1.1)
    mean = up / 3
    by_hand = math.sqrt(((up - mean) ** 2 * 2 + (-up - mean) ** 2) / 2)
    assert volatility(spells) == pytest.approx(by_hand)
    steady, _ = cut(dict.fromkeys(range(1, 9), 10.0))
    assert volatility(steady) == 0.0
    assert volatility(cut({1: 10.0, 2: 11.0, 3: 12.0})[0]) is None  # two changes say nothing


def test_the_ratio_is_of_days_on_which_both_are_known():
    spot, _ = cut({1: 3.0, 2: 4.0, 8: 5.0})
    on_demand, _ = cut({2: 10.0, 3: 10.0, 8: 20.0})
    assert ratios(spot, on_demand) == [(date(2026, 3, 2), 0.4), (date(2026, 3, 8), 0.25)]


def test_several_sources_of_one_day_count_by_their_median():
    spot = points({1: 3.0}, "a") + points({1: 5.0}, "b") + points({1: 100.0}, "c")
    spells, _ = pieces(spot, longest_gap=TWO_DAYS)
    on_demand, _ = cut({1: 10.0})
    assert ratios(spells, on_demand) == [(date(2026, 3, 1), 0.5)]

"""Which rows of a refresh are published, held back, or kept from before."""

from dataclasses import replace
from datetime import date

import pytest

from core.machine.offer import Offer
from pricing.integrity import price_bands
from pricing.judgement import has_shrunk, judged

TODAY = date(2026, 11, 21)
H100 = Offer(
    provider="aws",
    instance_type="p5.48xlarge",
    accelerator="H100-80GB-SXM",
    gpu_count=8,
    region="us-east-1",
    purchase="on_demand",
    usd_per_hour=55.04,
    scale_out_gbit_per_s=None,
    observed_at="2026-11-21",
    source="list",
    quality="high",
)
OLD = replace(H100, observed_at="2026-11-19")


def at(usd, **more):
    return replace(H100, usd_per_hour=usd, **more)


def one(fresh, last=(), others=(), accepted=(), **sources):
    """The verdict on the source 'list'."""
    return judged(
        {"list": fresh, **sources},
        {"list": last},
        others,
        bands=price_bands(),
        today=TODAY,
        accepted=accepted,
    )["list"]


def test_a_first_good_row_is_published():
    verdict = one([H100])
    assert verdict.offers == (H100,)
    assert (verdict.new, verdict.changed, verdict.gone, verdict.quarantined) == (1, 0, 0, ())


def test_new_changed_and_gone_rows_are_counted_against_the_last_ones():
    last = [OLD, replace(OLD, region="us-west-2"), replace(OLD, region="eu-west-1")]
    fresh = [at(50.0), replace(H100, region="us-west-2"), replace(H100, region="us-east-2")]
    verdict = one(fresh, last)
    assert verdict.offers == tuple(fresh)
    assert (verdict.new, verdict.changed, verdict.gone) == (1, 1, 1)


@pytest.mark.parametrize("factor", [8, 24, 100, 720, 730, 8760, 1 / 8, 1 / 100, 1 / 730])
def test_a_wrong_unit_is_held_back_and_the_old_price_stays(factor):
    """GPUs for an instance, days, cents, months and years for hours, and the other way."""
    verdict = one([at(55.04 * factor)], [OLD])
    assert verdict.offers == (OLD,)
    assert verdict.quarantined[0].rule in ("jump", "band")
    assert verdict.quarantined[0].usd_per_hour == pytest.approx(55.04 * factor)
    assert (verdict.kept_old, verdict.gone) == (1, 0)


@pytest.mark.parametrize("usd", [0.0, -3.0, float("nan"), float("inf")])
def test_a_price_that_is_none_is_held_back(usd):
    verdict = one([at(usd)], [OLD])
    assert verdict.offers == (OLD,)
    assert verdict.quarantined[0].rule == "price"


@pytest.mark.parametrize(("usd", "held"), [(165.0, 0), (166.0, 1), (18.4, 0), (18.3, 1)])
def test_a_jump_is_more_than_three_times(usd, held):
    assert len(one([at(usd)], [OLD]).quarantined) == held


def test_a_jump_is_also_seen_against_another_source_unless_that_is_old():
    recent = at(17.0, source="other", observed_at="2026-09-01")
    assert one([H100], others=[recent]).quarantined[0].rule == "jump"
    assert one([H100], others=[recent]).offers == ()
    assert one([H100], others=[replace(recent, observed_at="2026-03-01")]).quarantined == ()


def test_a_second_source_releases_a_jump():
    fresh = [at(17.0)]
    assert one(fresh, [OLD]).offers == (OLD,)
    verdict = one(fresh, [OLD], second=[at(17.5, source="second")])
    assert verdict.offers == tuple(fresh)
    assert one(fresh, [OLD], second=[at(30.0, source="second")]).offers == (OLD,)


def test_a_person_releases_a_jump_but_not_what_cannot_be():
    assert one([at(17.0)], [OLD], accepted=["list"]).offers == (at(17.0),)
    assert one([at(5504.0)], [OLD], accepted=["list"]).offers == (OLD,)


def test_a_source_that_prints_two_prices_for_a_place_is_believed_in_neither():
    verdict = one([H100, at(40.0)], [OLD])
    assert verdict.offers == (OLD,)
    assert [q.rule for q in verdict.quarantined] == ["duplicate", "duplicate"]
    assert "at 40 and 55.04 USD/h" in verdict.quarantined[0].sentence


def test_the_same_row_twice_is_one_row():
    assert one([H100, H100]).offers == (H100,)


def test_spot_without_a_market_is_held_back():
    verdict = one([H100, replace(H100, purchase="spot")])
    assert verdict.offers == (H100,)
    assert verdict.quarantined[0].rule == "spot"


def test_a_place_whose_new_price_is_held_back_twice_keeps_one_old_row():
    verdict = one([at(0.0), at(-1.0)], [OLD])
    assert verdict.offers == (OLD,)


@pytest.mark.parametrize(
    ("fetched", "last", "lost"),
    [(0, 1000, True), (0, 0, True), (499, 1000, True), (500, 1000, False), (5, 19, False)],
)
def test_a_list_that_lost_half_of_itself_is_not_believed(fetched, last, lost):
    assert has_shrunk(fetched, last) is lost

"""Which rows of a refresh are published, held back, or kept from before."""

from dataclasses import replace
from datetime import date

import pytest

from core.machine.offer import Offer
from pricing.integrity import price_bands
from pricing.judgement import judged
from pricing.series import sku_of
from pricing.whole_source import has_shrunk

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


def one(fresh, last=(), others=(), accepted=(), released=None, waiting=(), in_part=(), **sources):
    """The verdict on the source 'list'."""
    return judged(
        {"list": fresh, **sources},
        {"list": last},
        others,
        bands=price_bands(),
        today=TODAY,
        accepted=accepted,
        released=released,
        waiting=waiting,
        in_part=in_part,
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
    [
        (0, 1000, True),
        (0, 0, True),
        (499, 1000, True),
        (500, 1000, False),
        (1, 5, True),
        (1, 3, False),
    ],
)
def test_a_list_that_lost_half_of_itself_is_not_believed(fetched, last, lost):
    assert has_shrunk(fetched, last) is lost


# --- what waits for a second statement -----------------------------------------------------------

SIX = [at(40.0 + n, region=f"r{n}") for n in range(6)]


def scaled(factor):
    return [replace(o, usd_per_hour=o.usd_per_hour * factor) for o in SIX]


@pytest.mark.parametrize("factor", [0.4, 0.7, 1.4, 2.99])
def test_a_list_that_moved_as_a_whole_waits_for_a_second_refresh(factor):
    verdict = one(scaled(factor), SIX)
    assert set(verdict.offers) == set(SIX)
    assert (verdict.changed, verdict.kept_old) == (0, 6)
    assert [q.rule for q in verdict.quarantined] == ["moved"]
    assert f"{factor:.2f} times the last ones" in verdict.quarantined[0].sentence
    again = one(scaled(factor), SIX, waiting=verdict.quarantined)
    assert again.offers == tuple(scaled(factor))
    other = one(scaled(factor * 0.5), SIX, waiting=verdict.quarantined)
    assert set(other.offers) == set(SIX)


def test_a_list_that_shrank_waits_for_a_second_refresh_that_lists_as_few():
    verdict = one(SIX[:2], SIX)
    assert set(verdict.offers) == set(SIX)
    assert [q.rule for q in verdict.quarantined] == ["shrunk"]
    assert "lists 2 where there were 6 prices" in verdict.quarantined[0].sentence
    assert "4 of 6 places would go" in verdict.quarantined[0].sentence
    assert one(SIX[:2], SIX, waiting=verdict.quarantined).offers == tuple(SIX[:2])
    assert set(one(SIX[:1], SIX, waiting=verdict.quarantined).offers) == set(SIX)
    assert one(SIX[:2], SIX, accepted=("list",)).offers == tuple(SIX[:2])
    assert one(SIX[:2], SIX, in_part=("list",)).offers == tuple(SIX[:2])


def test_a_list_that_shrank_and_moved_is_confirmed_in_both_by_one_refresh():
    fresh = scaled(0.5)[:3]
    last = [*SIX, *(at(50.0, region=f"s{n}") for n in range(4))]
    verdict = one(fresh, last)
    assert {q.rule for q in verdict.quarantined} == {"moved", "shrunk"}
    assert one(fresh, last, waiting=verdict.quarantined).offers == tuple(fresh)


def test_a_list_that_a_person_leaves_waits_until_it_says_something_else():
    held = one(scaled(0.5), SIX).quarantined
    left = [replace(q, left_by="ada") for q in held]
    second = [replace(o, source="second") for o in scaled(0.5)]
    verdict = one(scaled(0.5), SIX, waiting=left, second=second)
    assert set(verdict.offers) == set(SIX)
    assert verdict.quarantined == tuple(left)
    other = one(scaled(0.7), SIX, waiting=left).quarantined
    assert other[0].left_by == ""
    assert one(scaled(0.7), SIX, waiting=other).offers == tuple(scaled(0.7))


def test_a_list_that_waits_says_what_would_become_cheapest():
    (row,) = one(scaled(0.4), SIX).quarantined
    assert row.sentence == (
        "list: its prices are 0.40 times the last ones, in the median; 0 of 6 places would go; the "
        "cheapest H100-80GB-SXM (on_demand) would cost 2 instead of 5 USD per GPU-hour. It waits "
        "for a second refresh or another source."
    )


def test_a_list_that_moved_a_little_or_is_accepted_or_witnessed_is_published():
    assert one(scaled(1.3), SIX).offers == tuple(scaled(1.3))
    assert one(scaled(1.6), SIX, accepted=("list",)).offers == tuple(scaled(1.6))
    second = [replace(o, source="second") for o in scaled(1.55)]
    assert one(scaled(1.6), SIX, second=second).offers == tuple(scaled(1.6))


def test_a_new_place_that_would_be_the_cheapest_waits():
    new = at(24.0, instance_type="8H100.new")
    verdict = one([*SIX, new], SIX)
    assert verdict.offers == tuple(SIX)
    assert [q.rule for q in verdict.quarantined] == ["cheapest"]
    assert "at 3 USD per GPU-hour, would be the cheapest" in verdict.quarantined[0].sentence
    assert verdict.quarantined[0].releasable
    assert new in one([*SIX, new], SIX, waiting=verdict.quarantined).offers
    cheaper = at(12.0, instance_type="8H100.new")
    assert cheaper not in one([*SIX, cheaper], SIX, waiting=verdict.quarantined).offers
    assert new in one([*SIX, new], SIX, accepted=("list",)).offers
    assert new in one([*SIX, new], SIX, second=[replace(new, source="second")]).offers
    assert new in one([*SIX, new], SIX, released={("list", sku_of(new)): [24.0]}).offers


def test_a_new_place_waits_only_where_something_cheaper_is_not_known():
    dear = at(50.0, instance_type="8H100.new")
    assert dear in one([*SIX, dear], SIX).offers
    first = at(20.0, accelerator="H200-141GB-SXM", instance_type="p5e.48xlarge")
    assert first in one([*SIX, first], SIX).offers  # nothing to compare with
    known = at(20.0, region="elsewhere", observed_at="2025-01-01")  # of whatever age: it competes
    assert at(24.0, region="new") in one([*SIX, at(24.0, region="new")], SIX, [known]).offers


def test_in_the_first_answer_of_a_source_only_what_is_cheapest_by_far_waits():
    known = [at(40.0, region="elsewhere", observed_at="2026-10-01")]
    assert at(31.0) in one([at(31.0)], (), known).offers
    assert at(29.0) not in one([at(29.0)], (), known).offers

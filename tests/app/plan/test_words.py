"""The answer in words: what it claims, what it admits, and what it never says."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest

from app.document import format as fmt
from app.document import vocabulary
from app.forecast import answer as forecast_answer
from app.forecast.resolve import resolve_strict
from app.plan import words as plan_words
from core.scenario import Scenario
from hardware.facts import NUMBERS
from tests.made_up import plans as made_up

SCENARIO = Scenario(model="llama3.1-8b", num_tokens=1e11)
TODAY = dt.date(2026, 11, 21)


def sentence(*plans, scenario=SCENARIO, **answer):
    return plan_words.answer_sentence(scenario, made_up.answer(*plans, **answer))


def test_a_priced_plan_is_one_sentence():
    assert sentence(made_up.plan()) == (
        "Llama 3.1 8B, 100B tokens: $12,400 expected (P10-P90 $10.9k-$14.2k), 3.1 days (P90 "
        "3.62 days) on 64 x H100-80GB-SXM (aws p5.48xlarge, on demand); price of 2026-07-20; "
        "stack generic, uncalibrated."
    )


def test_a_share_of_a_reservation_is_said_with_what_the_whole_term_costs():
    """8 instances of 8 GPUs at $30 an hour for 8,760 hours: $2.1M, however short the run."""
    offer = made_up.offer(purchase="reserved_1y", usd_per_hour=30.0)
    plan = made_up.plan(offer=offer)
    term = made_up.spread(2.1e6, 2.1e6, 2.1e6)
    committed = replace(plan.cost, paid=term, committed_usd=2.1e6, num_terms=1.0)
    plan = replace(plan, cost=committed)
    assert plan.term_usd == 2.1e6
    said = sentence(plan)
    assert "$2,100,000 committed (P10-P90 $2.1M-$2.1M)" in said
    assert "; paid whole for 1 year; this run uses $12.4k of it; stack" in said
    twice = replace(plan, cost=replace(committed, num_terms=2.0))
    assert "; paid whole for 2 times 1 year; this run" in sentence(twice)
    shared = replace(plan, cost=replace(committed, paid=plan.cost.total))
    assert "its share of a reservation for 1 year that others use, too; stack" in sentence(shared)
    assert "needs a commitment of 1 year, $2.1M" in plan_words.badges(plan, TODAY)
    assert made_up.plan().term_usd is None
    unpriced = made_up.plan(
        offer=made_up.offer(purchase="reserved_3y", usd_per_hour=None), usd=None
    )
    assert unpriced.term_usd is None
    assert "needs a commitment of 3 years" in plan_words.badges(unpriced, TODAY)


@pytest.mark.parametrize(
    ("offer", "against", "says"),
    [
        ({"observed_at": "2026-11-09"}, (), "; price 12 days old; stack"),
        ({"observed_at": "2026-11-21"}, (), "; price of today; stack"),
        ({"purchase": "owned"}, (), "(owned); stack"),
        ({"source": "price book acme"}, (), "on demand); stack"),
        ({"observed_at": "2025-11-21"}, ("old_price", "weak_price"),
         "; price 12 months old, past its life and of low quality: no plan stands on a "
         "better one; stack"),
    ],
)  # fmt: skip
def test_the_sentence_says_how_old_the_price_is_and_that_nothing_better_is_there(
    offer, against, says
):
    best = made_up.answer(made_up.plan(offer=made_up.offer(**offer), against=against))
    assert says in plan_words.answer_sentence(SCENARIO, best, TODAY)
    limited = plan_words.answer_sentence(Scenario(deadline_days=9), best, TODAY)
    assert ("no plan within the limits stands on" in limited) == bool(against)


def test_plans_on_prices_in_doubt_are_counted_with_what_they_would_cost():
    dear = made_up.plan()
    cheap = made_up.plan(id="b", rank=2, usd=made_up.spread(1.0, 900.0, 2e3))
    old, alone = (replace(cheap, against=a) for a in (("old_price",), ("old_price", "more")))
    said = plan_words.prices_sentence(made_up.answer(dear, old))
    assert said == (
        "1 of 2 plans stand on prices past their life or of low quality; with them the least cost "
        "is $900."
    )
    assert said in plan_words.coverage_line(made_up.answer(dear, old))
    assert "with them" not in plan_words.prices_sentence(made_up.answer(dear, alone))
    assert "with them" not in plan_words.prices_sentence(made_up.answer(old))
    assert plan_words.prices_sentence(made_up.answer(dear, cheap)) == ""


def test_without_a_price_the_spread_is_of_the_time():
    """74.4 h at 373,357 tokens/s is 86.8 h at 320,000."""
    said = sentence(made_up.plan(usd=None, usd_per_gpu_hour=None))
    assert ": 3.1 days (P90 3.62 days) on 64 x" in said
    assert "at a price that is not known" in said
    assert "$" not in said


def test_what_was_asked_and_is_not_kept_is_said():
    scenario = Scenario(num_tokens=1e11, deadline_days=2, budget_usd=10_000)
    late = made_up.plan(meets_deadline=False, meets_budget=False)
    said = sentence(late, scenario=scenario)
    assert (
        "; misses the deadline of 2 days; over the budget of $10,000; price of 2026-07-20;" in said
    )
    likely = made_up.cost(late.hours, late.usd, chance_on_time=0.86)
    said = sentence(replace(late, cost=likely), scenario=scenario)
    assert ", 14% chance to be late; less sure of the deadline of 2 days than asked (90%);" in said
    assert "misses" not in said
    kept = sentence(made_up.plan(), scenario=scenario)
    assert "deadline" not in kept
    assert "budget" not in kept


@pytest.mark.parametrize(
    ("changes", "tokens"),
    [
        ({"epochs": 2}, "200B tokens"),
        ({"packing_efficiency": 0.8}, "125B tokens with padding"),
        ({"num_examples": 52_000, "tokens_per_example": 100, "epochs": 3}, "15.6M tokens"),
    ],
)
def test_the_tokens_are_those_that_are_processed(changes, tokens):
    said = sentence(made_up.plan(), scenario=Scenario(**changes))
    assert said.startswith(f"Llama 3.1 8B, {tokens}: $12,400")


def test_nothing_fits_says_why():
    why = "Nothing fits: 12 GiB too much, mostly optimizer states; 16 GPUs would hold it."
    assert sentence(nothing_fits=why) == f"Llama 3.1 8B, 100B tokens: {why}"
    assert sentence().endswith("100B tokens: no offer matches what was asked.")


def test_coverage_counts_offers_and_not_layouts():
    said = plan_words.coverage_line(made_up.answer(made_up.plan(), num_plans=412))
    assert said == (
        "403 of 440 options priced; 37 not: no price 9, does not fit 28. "
        "Offers that are not compared: other purchase kinds 90. From 5,300 layouts."
    )
    whole = made_up.answer(made_up.plan(), excluded=())
    assert plan_words.coverage_line(whole) == "1 of 1 options priced. From 5,300 layouts."


def test_every_part_has_a_label_and_an_unknown_one_its_name():
    assert {vocabulary.step_part(n) for n in made_up.STEP_S} == set(vocabulary.STEP_PARTS.values())
    assert {vocabulary.memory_part(n) for n in made_up.MEMORY_BYTES} == set(
        vocabulary.MEMORY_PARTS.values()
    )
    assert vocabulary.step_part("offload_exposed") == "Host transfer not hidden"
    assert vocabulary.step_part("checkpoint_saving") == "checkpoint saving"
    assert vocabulary.memory_part("kv_cache") == "kv cache"
    assert vocabulary.purchase("reserved_3y") == "reserved 3 years"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"observed_at": "2026-11-20"}, ()),
        ({"observed_at": "2026-11-01"}, ("price 20 days old",)),
        ({"observed_at": "2026-03"}, ("price 9 months old",)),
        ({"observed_at": "unknown"}, ("price of unknown age",)),
        ({"observed_at": "2026-11-20", "quality": "low"}, ("low quality price",)),
        ({"observed_at": "2026-11-20", "purchase": "spot"}, ("spot: can be interrupted",)),
        (
            {"observed_at": "2026-11-20", "purchase": "reserved_3y"},
            ("needs a commitment of 3 years",),
        ),
        ({"observed_at": "", "purchase": "owned", "quality": ""}, ()),
        (
            {
                "observed_at": "2026-11-20",
                "note": "interconnect from memory (IB per node), unverified",
            },
            ("interconnect unverified",),
        ),
    ],
)
def test_badges_name_what_is_uncertain(changes, expected):
    assert plan_words.badges(made_up.plan(offer=made_up.offer(**changes)), TODAY) == expected


def test_an_assumed_network_is_a_badge_where_it_was_assumed():
    fresh = made_up.offer(observed_at="2026-11-20", scale_out_gbit_per_s=None)
    assert plan_words.badges(made_up.plan(offer=fresh), TODAY) == ()
    known, guessed = (made_up.network(is_assumed=a) for a in (False, True))
    assert plan_words.badges(made_up.plan(offer=fresh, network=known), TODAY) == ()
    assumed = made_up.plan(offer=fresh, network=guessed)
    assert plan_words.badges(assumed, TODAY) == ("network assumed",)


@pytest.mark.parametrize(
    ("basis", "says"),
    [
        ("given", "given by you"),
        ("offer", "stated by the offer (a page)"),
        ("product", "documented for Pods (a page)"),
        ("usual", "assumed as usual for H100-80GB-SXM (a page)"),
    ],
)
def test_the_network_is_shown_with_who_says_so(basis, says):
    plan = made_up.plan(network=made_up.network(basis=basis, is_assumed=basis == "usual"))
    assert plan_words.network_sentence(plan) == f"Network: 3,200 Gbit/s a machine, {says}."
    assert plan_words.network_sentence(made_up.plan()) == ""
    assert plan_words.half_network_sentence(made_up.plan()) == ""


def test_what_half_of_an_assumed_network_would_give_is_shown():
    half = made_up.at_half_network()
    sentence = plan_words.half_network_sentence(made_up.plan(at_half_network=half))
    assert sentence == "At half this network: 90k tokens/s, 10 days, $1,000."


def test_a_machine_of_ones_own_has_no_seller():
    own = made_up.offer(accelerator="custom", provider="custom", purchase="owned")
    assert vocabulary.machine(made_up.plan(offer=own)) == "64 x custom (owned)"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "aws p5.48xlarge us-east-1"),
        ({"region": "*"}, "aws p5.48xlarge"),
        ({"region": "*", "purchase": "owned"}, "owned"),
    ],
)
def test_a_place_names_its_region_where_it_has_one(changes, expected):
    assert vocabulary.place(made_up.offer(**changes)) == expected


def test_the_gravest_badge_comes_first():
    risky = made_up.plan(probability_oom=0.31, usd=None, meets_deadline=False)
    assert plan_words.badges(risky, TODAY) == (
        "may run out of memory (31%)",
        "misses the deadline",
        "no price",
    )


def test_the_slow_end_of_the_time_is_the_slow_end_of_the_speed():
    steady = made_up.plan(tokens_per_s=made_up.spread(50.0, 100.0, 200.0))
    hours = steady.hours
    assert (hours.p10, hours.p50, hours.p90) == pytest.approx((37.2, 74.4, 148.8))


def test_every_number_of_an_accelerator_has_a_name_for_people():
    for quantity in NUMBERS:
        if quantity != "fp16_only":
            assert quantity not in vocabulary.assumed_fact(quantity, "1 unit"), quantity


def test_the_way_from_a_run_without_failures_to_the_mean_is_said():
    scenario = Scenario(model="llama3.1-405b", gpu="h100", num_gpus="16384", num_tokens=15e12)
    scenario = resolve_strict(scenario)
    plan = forecast_answer.answer(scenario).plans[0]
    said = plan_words.unfailing_sentence(plan)
    alone, median, mean = plan.hours.p50, plan.cost.hours.p50, plan.expected_hours
    assert alone < median < mean
    assert said.endswith(
        f"; with failures half of all runs end within {fmt.days(median)}. The average, "
        f"{fmt.days(mean)}, is later because delays are longer than gains"
    )
    certain = replace(plan, cost=replace(plan.cost, hours=made_up.spread(median, median, median)))
    assert "average" not in plan_words.unfailing_sentence(certain)

"""Smallest, fastest, cheapest, best of a cluster: each against looking at every plan."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.document import format as fmt
from app.forecast import alternatives as said
from app.forecast import answer as forecast_answer
from app.forecast import resolve
from app.plan import cards
from app.plan.decided import recommended_sentence
from app.plan.words import answer_sentence, badges
from core.scenario import Scenario
from core.search import alternatives as search_alternatives

NAN = float("nan")
TODAY = dt.date(2026, 11, 9)
ROWS = st.lists(
    st.tuples(
        st.integers(1, 6), st.one_of(st.integers(1, 6).map(float), st.just(NAN)),
        st.integers(1, 6).map(float),
    ),
    max_size=12,
)  # fmt: skip
LIMIT = st.one_of(st.none(), st.floats(0.5, 6.5))


def columns(rows):
    counts, usd, hours = (np.array([r[i] for r in rows]) for i in range(3))
    return {"num_gpus": counts.astype(int), "usd": usd.astype(float), "hours": hours.astype(float)}


def least(rows, allowed, key):
    """Row number of the least allowed row, by brute force; the first of equal ones."""
    best = None
    for n, row in enumerate(rows):
        if allowed(row) and (best is None or key(row) < key(rows[best])):
            best = n
    return best


def price(row):
    return math.inf if math.isnan(row[1]) else row[1]


@given(rows=ROWS, limit=LIMIT)
def test_each_pick_is_that_of_looking_at_every_plan(rows, limit):
    c = columns(rows)
    of = {"usd": c["usd"], "hours": c["hours"]}
    most = math.inf if limit is None else limit
    assert search_alternatives.smallest_count(**c) == least(
        rows, lambda r: True, lambda r: (r[0], price(r), r[2])
    )
    assert search_alternatives.fastest(**of, budget_usd=limit) == least(
        rows, lambda r: limit is None or r[1] <= most, lambda r: (r[2], price(r))
    )
    assert search_alternatives.cheapest(**of, on_time=c["hours"] <= most) == least(
        rows, lambda r: not math.isnan(r[1]) and r[2] <= most, lambda r: (r[1], r[2])
    )
    mine = c["num_gpus"] == 3
    assert search_alternatives.best_of_cluster(is_cluster=mine, **of) == least(
        rows, lambda r: r[0] == 3, lambda r: (r[2], price(r))
    )


def answered(**fields):
    scenario = resolve.resolve_strict(Scenario.parse(fields))
    return scenario, forecast_answer.answer(scenario, top=1000)


def test_the_picks_of_an_answer_are_plans_of_it():
    scenario, answer = answered(gpu="h100,b200", deadline_days=60, budget_usd="100k")
    found = {p.question: p for p in said.picks_of(scenario, answer)}
    assert list(found) == ["smallest_count", "fastest", "cheapest"]
    plans = [p for p in answer.plans if not p.against]
    ids = {p.id: p for p in plans}
    assert found["smallest_count"].point["num_gpus"] == min(p.num_gpus for p in plans)
    in_budget = [p.expected_hours for p in plans if p.paid_usd <= 100e3]
    assert ids[found["fastest"].point["id"]].expected_hours == min(in_budget)
    on_time = [p.paid_usd for p in plans if p.meets_deadline]
    assert ids[found["cheapest"].point["id"]].paid_usd == min(on_time)
    assert "Fastest within $100,000: " in found["fastest"].sentence
    assert found["cheapest"].sentence.startswith("Cheapest within 60 days: ")
    assert found["fastest"].limit == 100e3


@pytest.mark.parametrize(
    ("days", "usd", "says"),
    [
        (None, None, ""),
        (14, None, ", which misses the deadline"),
        (None, 1000, ", which is over the budget"),
        (14, 1000, ", which misses the deadline and is over the budget"),
    ],
)
def test_a_pick_says_which_limits_it_does_not_keep(days, usd, says):
    scenario, answer = answered(gpu="h100", num_gpus="8,64", deadline_days=days, budget_usd=usd)
    (first, *_) = said.picks_of(scenario, answer)
    assert (first.question, first.point["num_gpus"]) == ("smallest_count", 8)
    assert first.sentence.endswith(f" days{says}.")


def test_a_chance_above_one_half_is_less_sure_than_asked_and_not_a_miss():
    scenario, answer = answered(
        gpu="h100", num_gpus="8", deadline_days=17, deadline_confidence=0.99
    )
    (first, *_) = said.picks_of(scenario, answer)
    assert 0.5 < first.point["chance_on_time"] < 0.99
    assert first.sentence.endswith(", which is less sure of the deadline than asked.")


def test_a_plan_that_something_speaks_against_is_picked_only_if_no_other_is_left():
    fields = {"gpu": "h100", "num_gpus": "8,16", "prices": "418dd4911f7e"}
    scenario, answer = answered(**fields)
    assert answer.points["in_doubt"].any()
    doubted = dict(zip(answer.points["id"], answer.points["in_doubt"], strict=True))
    picks = said.picks_of(scenario, answer)
    assert not any(doubted[p.point["id"]] for p in picks)
    alone, only = answered(**fields, cloud="coreweave")
    assert only.points["in_doubt"].all()
    assert len(said.picks_of(alone, only)) == len(picks)


@pytest.mark.parametrize(
    ("fields", "is_doubted"),
    [
        ({"model": "mixtral-8x7b", "num_tokens": "1T", "gpu": "H200-141GB-SXM,B200-180GB",
          "deadline_days": 60, "budget_usd": 240_000}, True),
        ({"gpu": "h100", "num_gpus": "8,64", "purchase": "spot"}, True),
        ({"gpu": "h100,b200", "deadline_days": 60, "budget_usd": "100k"}, False),
    ],
)  # fmt: skip
def test_no_pick_is_worse_than_the_recommended_plan_at_what_it_is_picked_for(fields, is_doubted):
    scenario, answer = answered(**fields)
    best = answer.plans[0]
    assert bool(best.against) is is_doubted
    found = {p.question: p.point for p in said.picks_of(scenario, answer)}
    assert found["fastest"]["expected_hours"] <= best.expected_hours
    assert found["cheapest"]["expected_usd"] <= best.expected_usd
    on_frontier = answer.points["frontier"]
    for name, of_best in (("usd", best.expected_usd), ("hours", best.expected_hours)):
        assert answer.points[f"expected_{name}"][on_frontier].min() <= of_best
    shown = {h.label: h for h in cards.headlines(scenario, answer, best, TODAY)}
    money = "Fastest for your money" if scenario.budget_usd else "Fastest"
    assert fmt.days(float(found["fastest"]["expected_hours"])) == shown[money].value


def test_of_a_cluster_that_is_given_the_best_use_is_told():
    scenario, answer = answered(gpu="h100", num_gpus="24", global_batch_size=384)
    found = {p.question: p for p in said.picks_of(scenario, answer)}
    quickest = min(p.hours.p50 for p in answer.plans if p.usd and not p.against)
    assert found["fixed_cluster"].point["hours"] == pytest.approx(quickest)
    assert found["fixed_cluster"].sentence.startswith("Best use of 24 x H100-80GB-SXM: 24 x ")


def test_the_smallest_count_need_not_be_a_power_of_two():
    fields = {"model": "llama3.1-70b", "gpu": "h100", "cloud": "gcp", "global_batch_size": 960,
              "offload_optimizer": "none"}  # fmt: skip
    scenario, answer = answered(**fields)
    tried = min(p.num_gpus for p in answer.plans)
    fewer = said.smaller_count(scenario, answer)
    by_hand = [
        n for n in range(8, tried, 8)
        if answered(**fields, num_gpus=str(n))[1].num_plans
    ]  # fmt: skip
    assert fewer == min(by_hand, default=None)
    assert fewer is not None
    assert fewer % 8 == 0
    assert np.log2(fewer) % 1


def test_counts_that_are_given_are_not_gone_below():
    scenario, answer = answered(model="llama3.1-8b", gpu="h100", num_gpus="64")
    assert said.smaller_count(scenario, answer) is None


@pytest.mark.parametrize(
    ("model", "more", "says"),
    [
        # Megatron's files cannot say its sliding windows.
        ("llama4-maverick", {"gpu": "gb200"}, True),
        ("llama4-maverick", {"stack": "megatron-lm"}, False),  # asked for by name
        ("llama4-scout", {"task": "lora"}, False),  # adapters fit a machine
        ("qwen3-30b-a3b", {}, False),  # Megatron's files take it
        ("llama3.1-8b", {}, False),
    ],
)
def test_software_without_a_launch_file_is_named_where_it_alone_spreads_experts(model, more, says):
    asked = {"model": model, "gpu": "h100", "num_gpus": "256", "global_batch_size": 2048, **more}
    scenario, answer = answered(**asked)
    assert answer.plans
    faster = said.spread_experts(scenario, answer)
    assert (faster is not None) is says
    sentence = recommended_sentence(scenario, answer)
    assert ("No stack with a launch file here spreads the experts" in sentence) is says
    if says:
        assert faster > 2
        assert f"about {faster:.2g} times as fast" in sentence


@pytest.mark.parametrize("rank_by", ["usd", "time"])
def test_plans_without_a_price_are_recommended_for_their_time(rank_by):
    scenario, answer = answered(gpu="H800-80GB-SXM", num_gpus="8,64", rank_by=rank_by)
    assert [p.expected_usd for p in answer.plans] == [None] * len(answer.plans)
    assert answer.plans[0].num_gpus == 64
    assert recommended_sentence(scenario, answer).startswith(
        "No price is known: the fastest of 2 that pass every gate."
    )
    assert "budget" not in answer_sentence(scenario, answer)
    asked, limited = answered(gpu="H800-80GB-SXM", num_gpus="8,64", rank_by=rank_by, budget_usd=5e5)
    assert "; nothing to hold against the budget of $500,000; " in answer_sentence(asked, limited)
    assert "Nothing can be held against the budget of $500,000." in recommended_sentence(
        asked, limited
    )
    assert "over budget" not in badges(limited.plans[0], TODAY)
    # One that passes no gate less is chosen over it only if it is simpler.
    found = replace(answer.recommendation, base=1)
    nearly = replace(answer, recommendation=found)
    assert " than the fastest of 2 that pass every gate, and simpler." in recommended_sentence(
        scenario, nearly
    )


@pytest.mark.parametrize(
    ("against", "says"),
    [
        ("old_price", "stands on a price of {}, past its life."),
        ("weak_price", "stands on a price of low quality."),
        ("old_price weak_price", "stands on a price of {}, past its life and of low quality."),
    ],
)
def test_what_is_wrong_with_the_price_of_the_cheapest_of_all_is_said(against, says):
    scenario, answer = answered(gpu="h100", num_gpus="8,64")
    found = replace(answer.recommendation, cheapest=1, failed=("price",), gates=())
    points = {**answer.points, "against": np.full(len(answer.plans), against, dtype=object)}
    doubted = replace(answer, recommendation=found, points=points)
    seen = answer.points["observed_at"][1]
    assert says.format(seen) in recommended_sentence(scenario, doubted)


@pytest.mark.parametrize(("days", "said"), [(14, "is late."), (45, "is late (chance ")])
def test_how_late_the_cheapest_of_all_is_stands_there_where_it_is_not_certain(days, said):
    """Otherwise '>99.99%' fills a line of the first screen, and says no more than its days."""
    scenario, answer = answered(deadline_days=days)
    assert answer.recommendation.failed[0] == "deadline"
    assert said in recommended_sentence(scenario, answer)

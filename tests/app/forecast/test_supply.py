"""Plans that nobody can buy in that number, and what a start and a minimum cost."""

from urllib.parse import parse_qs

import pytest

from app.bill.bill import bill_of
from app.buy.purchases import purchases_of
from app.forecast import answer as forecast_answer
from app.forecast import price_book, resolve
from app.plan import words
from app.prices.book_file import read_book
from app.scenario.link import parse
from app.scenario.link_query import link_query
from core.scenario import Scenario
from pricing.book.files import save_book
from tests.pricing.book.test_price_book import RATE, csv_of

SMALL = {"model": "llama3.1-8b", "gpu": "h100", "cloud": "hyperstack"}
LORA = {"model": "llama3.1-8b", "task": "lora", "num_tokens": "1M", "global_batch_size": 16}


def scenario_of(**fields):
    return resolve.resolve_strict(Scenario.parse(fields))


def answer(top=50, **fields):
    return forecast_answer.answer(scenario_of(**fields), top=top)


def test_what_a_seller_does_not_have_comes_after_all_others_and_is_on_no_frontier():
    found = answer(**SMALL, num_gpus="64,16384", rank_by="time", num_tokens="15T", top=100)
    few = [p for p in found.plans if p.num_gpus == 64]
    many = [p for p in found.plans if p.num_gpus == 16_384]
    assert found.plans == (*few, *many)  # though the many are the faster ones
    assert min(p.hours.p50 for p in few) > max(p.hours.p50 for p in many)
    assert {p.against for p in few} == {()}
    assert {p.against for p in many} == {("reservation",)}
    assert not any(p.frontier for p in many)
    assert words.badges(many[0], price_book.today())[0] == "ask for a reservation"
    assert words.reservation_sentence(few[0]) == ""
    assert words.reservation_sentence(many[0]).startswith(
        "hyperstack sells at most 256 GPUs on demand (assumed: "
    )


def test_a_plan_that_nobody_sells_is_recommended_only_if_nothing_else_is_left_and_says_so():
    scenario = scenario_of(gpu="h100", cloud="vast", num_gpus="256", network_gbit_per_gpu="400",
                           max_price_age_days="0")  # fmt: skip
    found = forecast_answer.answer(scenario)
    assert {p.against[0] for p in found.plans} == {"reservation"}
    assert "; ask for a reservation; " in words.answer_sentence(scenario, found)
    assert words.reservation_sentence(found.plans[0]).startswith("vast sells at most 8 GPUs")


def is_above(plan):
    return "reservation" in plan.against


def test_what_is_agreed_or_owned_has_no_bound_and_a_block_has_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))
    day = price_book.today()
    save_book(read_book(csv_of(RATE), file_name="b.csv", name="acme", today=day))
    job = {"model": "llama3.1-70b", "gpu": "h100", "num_gpus": "512,1024", "num_tokens": "1T"}
    found = answer(**job, cloud="aws", purchase="on_demand,capacity_block", top=1000).plans
    listed = [p for p in found if p.offer.gpu_count == 8]
    above = {(p.offer.purchase, p.num_gpus) for p in listed if is_above(p)}
    assert above == {("on_demand", 1024), ("capacity_block", 1024)}
    assert {p.offer.purchase for p in listed if "reservation" not in p.against} == {
        "on_demand",
        "capacity_block",
    }
    assert not any(
        "reservation" in p.against
        for p in answer(**job, cloud="aws", price_book="acme", top=1000).plans
    )
    reserved = answer(**job, cloud="gcp", purchase="reserved_1y,reserved_3y", top=1000).plans
    assert reserved
    assert not any(map(is_above, reserved))


def test_a_short_run_takes_its_start_and_pays_the_minimum():
    runpod = answer(**LORA, gpu="h100", cloud="runpod", num_gpus="1").plans[0]
    assert runpod.wall_clock_hours < 0.1
    assert runpod.startup_hours == pytest.approx(2 / 60)
    assert runpod.billed_hours == pytest.approx(runpod.startup_hours + runpod.wall_clock_hours)
    hourly = answer(**LORA, gpu="h100", cloud="digitalocean", num_gpus="1").plans[0]
    assert hourly.hours.p50 == pytest.approx(12.5 / 60 + hourly.wall_clock_hours)
    assert hourly.hours.p50 < hourly.billed_hours == 1
    assert hourly.usd.p10 == hourly.usd.p50 == hourly.usd.p90 == hourly.offer.usd_per_hour
    assert any("At least 1 h are billed" in a for a in hourly.assumptions)


def test_the_fastest_of_all_is_not_faster_than_machines_start():
    found = answer(num_tokens="1M", rank_by="time", top=1)
    assert found.points["hours"].min() >= 2 / 60


def test_a_plan_costs_the_same_wherever_it_is_priced():
    scenario = scenario_of(
        **LORA, gpu="h100", cloud="aws", num_gpus="8", purchase="on_demand,capacity_block,spot",
        failures_per_node_day=0, checkpoint_s=0, preemptions_per_day=0,
    )  # fmt: skip
    for kind in ("on_demand", "capacity_block", "spot"):
        one = scenario.model_copy(update={"purchase": (kind,)})
        plan = forecast_answer.answer(one).plans[0]
        if kind != "capacity_block":  # which is paid whole
            assert plan.cost.failures_only_usd == pytest.approx(plan.usd.p50)
        assert bill_of(one, plan).total.mean == plan.expected_usd
        name = "spot_only" if kind == "spot" else kind
        way = purchases_of(one, plan).named(name)
        assert way.cost == plan.cost


def test_what_the_user_knows_better_replaces_the_table_and_is_in_the_link():
    asked = {**SMALL, "num_gpus": "512", "num_tokens": "10B"}
    usual = answer(**asked).plans[0]
    scenario = scenario_of(**asked, most_gpus_on_demand="512", startup_minutes="90")
    mine = forecast_answer.answer(scenario).plans[0]
    assert (usual.against, mine.against) == (("reservation",), ())
    assert mine.startup_hours == 1.5
    assert mine.usd.p50 - usual.usd.p50 == pytest.approx(
        (1.5 - usual.startup_hours) * mine.num_gpus * mine.usd_per_gpu_hour
    )
    assert any("after the machines are asked for, as given" in a for a in mine.assumptions)
    query = link_query(scenario, resolve.current_prices())
    again, notes = parse(parse_qs(query), resolve.resolve, resolve.current_prices())
    assert notes == []
    assert forecast_answer.answer(again).plans[0] == mine
    fewer = scenario_of(**asked, most_gpus_on_demand="8")
    assert forecast_answer.answer(fewer).plans[0].supply.source == "typed in by the user"


def test_a_seller_whose_clusters_are_apart_is_named():
    found = answer(gpu="h100", cloud="lambda", num_gpus="64")
    assert "(lambda sells 1-Click Clusters apart, at prices of their own)" in found.nothing_fits
    (left_out,) = (e for e in found.excluded if e.reason == "not_a_cluster")
    assert "lambda sells 1-Click Clusters apart" in left_out.sentence

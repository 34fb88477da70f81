"""When and how big: other numbers of GPUs, waiting, the best model for the money."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import time
from pathlib import Path

import numpy as np
import pytest

from app.document import format as fmt
from app.forecast import answer as forecast_answer
from app.forecast import resolve
from app.plan.planned import asked_plan
from app.scale import charts as scale_charts
from app.scale import document as scale_document
from app.scale import waiting
from app.scale.points import scale_of
from app.scale.words import optimal_sentences, scale_sentences, waiting_sentences
from core.scenario import Scenario
from pricing import trend as trends
from pricing.trend import Trend, trend_of
from tests.support.documented_keys import keys

DOCUMENT = Path(__file__).parents[3] / "docs/scale.md"
ASKED = {
    "model": "llama3.1-8b", "num_tokens": "1e12", "gpu": "H100-80GB-SXM", "cloud": "aws",
    "num_gpus": "64",
}  # fmt: skip
JOB = ["scale", "--model", "llama3.1-8b", "--tokens", "1e12", "--seq-len", "8k"]
JOB += ["--global-batch-size", "512", "--gpu", "h100", "--cloud", "aws", "--num-gpus", "64"]
SLOWEST_S = 1.5


def scaled(**more):
    scenario = resolve.resolve_strict(Scenario.parse({**ASKED, **more}))
    plan = asked_plan(scenario, forecast_answer.answer(scenario, top=1))
    return scenario, plan, scale_of(scenario, plan)


@pytest.fixture(scope="module")
def usual():
    return scaled(deadline_days="40", budget_usd="350000")


def test_own_count_costs_what_the_plan_costs(usual):
    _, plan, found = usual
    own = found.at(64)
    assert own.plan.layout == plan.layout
    assert own.plan.wall_clock_hours == pytest.approx(plan.wall_clock_hours)
    assert own.plan.usd.p50 == pytest.approx(plan.usd.p50)
    cost = plan.cost
    for ours, theirs in (
        (own.expected_hours, plan.expected_hours), (own.hours_p90, cost.hours.p90),
        (own.expected_usd, plan.expected_usd), (own.expected_usd_p90, cost.total.p90),
        (own.paid_usd, plan.paid_usd), (own.plan.cost.goodput, cost.goodput),
    ):  # fmt: skip
        assert ours == pytest.approx(theirs, rel=1e-9)


def test_another_count_is_the_answer_at_that_count(usual):
    _, plan, found = usual
    there = plan.job.scenario.model_copy(update={"num_gpus": (128,)})  # with its stack
    same = next(p for p in forecast_answer.answer(there, top=100).plans if p.offer == plan.offer)
    assert found.at(128).plan.wall_clock_hours == pytest.approx(same.wall_clock_hours)
    assert found.at(128).plan.usd.p50 == pytest.approx(same.usd.p50)


def test_what_is_named_is_what_the_points_say(usual):
    scenario, _, found = usual
    points = found.points
    assert 16 <= len(points) <= 24
    least = min(points, key=lambda p: p.paid_usd)
    assert found.cheapest is least
    fewest = found.on_time.plan
    assert fewest.cost.hours.p90 <= 40 * 24
    fewer = [p.hours_p90 for p in points if p.plan.num_gpus < fewest.num_gpus]
    assert all(p90 > 40 * 24 for p90 in fewer)
    within = found.in_budget(350_000)
    assert within.paid_usd <= 350_000
    assert all(p.expected_hours >= within.expected_hours for p in points if p.paid_usd <= 350_000)
    assert found.in_budget(1.0) is None
    said = " ".join(scale_sentences(scenario, found, 5000.0))
    for part in (
        "Cheapest of", "The fewest that end within 40 days",
        "costs at most $350,000 on average", "Twice as many GPUs, 128 GPUs, take",
        "Where a day is worth $5,000",
    ):  # fmt: skip
        assert part in said


def test_a_commitment_is_compared_by_what_is_signed_for():
    scenario, plan, found = scaled(purchase="reserved_1y", cloud="", budget_usd="1e6")
    assert plan.cost.commits
    own = found.at(64)
    assert own.expected_usd < own.paid_usd / 3
    assert found.cheapest is min(found.points, key=lambda p: p.paid_usd)
    assert all(p.paid_usd > 1e6 for p in found.points if p.plan.num_gpus >= 64)
    within = found.in_budget(1e6)
    assert within is None or within.paid_usd <= 1e6
    said = " ".join(scale_sentences(scenario, found))
    assert f"You commit to {fmt.usd(own.paid_usd, digits=3)}" in said


def test_points_compare_with_the_one_before_and_with_their_double(usual):
    _, _, found = usual
    first, second = found.points[:2]
    assert first.efficiency == 1.0
    assert first.usd_per_day_saved is None
    days = (first.expected_hours - second.expected_hours) / 24
    more = second.paid_usd - first.paid_usd
    assert second.usd_per_day_saved == pytest.approx(more / days)
    own, double = found.at(64), found.at(128)
    assert own.doubling_saves == pytest.approx(1 - double.expected_hours / own.expected_hours)
    assert own.gpu_hours_per_trillion == pytest.approx(64 * own.expected_hours)
    assert own.usd_per_trillion == pytest.approx(own.expected_usd)
    compared = [p for p in found.points if p.doubling_saves is not None]
    assert found.knee is next((p for p in compared if p.doubling_saves < 0.2), None)


def test_the_dearer_a_day_the_more_gpus(usual):
    _, _, found = usual
    counts = [found.worth(x).plan.num_gpus for x in (1.0, 1e3, 1e5, 1e9)]
    assert counts == sorted(counts)
    assert counts[0] == found.cheapest.plan.num_gpus
    assert found.at(counts[-1]) is min(found.points, key=lambda p: p.expected_hours)
    best = found.worth(1e3)
    assert all(
        p.expected_usd + 1e3 * p.expected_hours / 24
        >= best.expected_usd + 1e3 * best.expected_hours / 24
        for p in found.points
    )


def test_a_price_that_is_not_known_leaves_the_time():
    scenario, _, found = scaled(purchase="owned", cloud="", budget_usd="1000")
    assert found.cheapest is None
    assert found.optimal is None
    assert found.at(128).doubling_saves > 0
    assert found.at(128).doubling_usd_per_day is None
    assert "price" in " ".join(waiting_sentences(found, 100.0))
    assert all("nan" not in s.lower() for s in scale_sentences(scenario, found, 100.0))


def test_what_never_ends_is_no_number():
    scenario, _, found = scaled(failures_per_node_day="40", checkpoint_s="3600")
    endless = [p for p in found.points if not math.isfinite(p.expected_hours)]
    assert endless
    assert all(p.expected_usd is None and p.usd_per_day_saved is None for p in endless)
    assert all(p.hours_p90 == math.inf and p.paid_usd is None for p in endless)
    table = scale_document.counts(found)
    assert not {"nan", "inf"} & {cell for row in table.cells() for cell in row}
    assert not np.isinf(table.frame().select_dtypes("number")).any().any()
    assert "does not end" in scale_sentences(scenario, found)[0]


def test_small_machines_stop_at_what_fits():
    _, _, found = scaled(model="llama3.1-70b", seq_len="8192", offload_optimizer="none")
    assert 8 in found.no_layout
    assert found.points[0].plan.num_gpus > 8


def test_the_trend_of_h100_is_that_of_its_sellers():
    found = trend_of("H100-80GB-SXM", "on_demand")
    assert len(found.by_seller) >= 4
    assert found.log_per_month == pytest.approx(np.mean(list(found.by_seller.values())))
    assert -0.02 < found.log_per_month < 0
    assert found.num_changes >= 5
    assert (found.last - found.first).days > 365


def test_a_seller_is_first_to_last_price_over_the_months(monkeypatch):
    from datetime import UTC, datetime

    from pricing.history import History
    from pricing.series import Sku, Spell

    def spell(usd, first, last, source="a"):
        at = [datetime.fromisoformat(d).replace(tzinfo=UTC) for d in (first, last)]
        return Spell(source=source, usd_per_hour=usd, first_at=at[0], last_at=at[1], until=at[1])

    skus = {
        Sku("one", "m", "X", 8, "r", "on_demand"): (
            spell(100.0, "2024-01-01", "2024-06-01"),
            spell(50.0, "2024-07-01", "2025-01-01"),
            spell(7.0, "2024-02-01", "2024-03-01", source="b"),  # another source, shorter
        ),
        Sku("two", "m", "X", 8, "r", "on_demand"): (spell(9.0, "2024-01-01", "2025-01-01"),),
        Sku("three", "m", "X", 8, "r", "on_demand"): (
            spell(9.0, "2024-01-01", "2024-02-01"),
            spell(1.0, "2024-03-01", "2024-04-01"),
        ),
    }
    monkeypatch.setattr(trends, "known_skus", lambda **_: list(skus))
    monkeypatch.setattr(trends, "history", lambda sku: History(sku=sku, spells=skus[sku], gaps=()))
    found = trend_of("X", "on_demand")
    months = 366 / (365.25 / 12)
    assert found.by_seller == {"one": pytest.approx(math.log(0.5) / months, abs=1e-6), "two": 0.0}
    assert found.log_per_month == pytest.approx(math.log(0.5) / months / 2, abs=1e-6)
    assert (found.num_prices, found.num_changes) == (2, 1)
    del skus[next(iter(skus))]
    short = trend_of("X", "on_demand")
    assert short.log_per_month is None
    assert short.why_not.startswith("1 seller has 180 days or more of history")


def test_too_short_a_history_is_refused_and_said():
    assert trend_of("B200-180GB", "on_demand").log_per_month is None
    assert trend_of("no such thing", "spot").why_not.startswith("0 sellers have")


def test_waiting_in_words(usual, monkeypatch):
    _, plan, found = usual
    said = waiting_sentences(found, 1000.0)
    assert "few points" in said[0]
    assert "it pays if a day is worth less than" in said[1]
    assert "waiting a month pays from a price that is" in said[-1]
    assert "at no price" in waiting.break_even_sentence(plan, 1e9)
    rising = Trend(
        accelerator="X", purchase="spot", log_per_month=0.01, by_seller={"a": 0.01, "b": 0.01},
        num_prices=2, num_changes=2, first=None, last=None,
    )  # fmt: skip
    monkeypatch.setattr(waiting, "trend_of", lambda *_: rising)
    waits = waiting.waiting_of(plan).waits
    assert "more (between -$" in waiting.wait_sentence(waits[0])
    booked = dataclasses.replace(
        plan, offer=dataclasses.replace(plan.offer, source="price book acme")
    )
    assert "your own" in waiting.waiting_of(booked).why_not


def test_the_best_model_for_the_money(usual):
    _, plan, found = usual
    best = found.optimal
    own = found.at(64)
    assert best.usd == own.expected_usd
    flops = 6 * best.parameters * best.tokens
    assert best.flops_per_usd * best.usd == pytest.approx(flops)
    for point in best.same_usd:
        assert 6 * point.parameters * point.tokens == pytest.approx(flops)
        assert point.loss <= dict(best.losses)[point.law]
        # At the size of the scenario's model the speed is that of the run, failures counted.
        speed = point.tokens_per_s * point.parameters / best.parameters
        assert speed == pytest.approx(best.tokens / (own.expected_hours * 3600))
        assert point.usd_per_trillion == pytest.approx(best.usd / point.tokens * 1e12)
        hours = point.gpu_hours_per_trillion * point.tokens / 1e12
        assert hours == pytest.approx(64 * own.expected_hours)
    assert best.chinchilla_usd == pytest.approx(6 * 20 * best.parameters**2 / best.flops_per_usd)
    assert plan.num_gpus == 64
    assert "extrapolation" in optimal_sentences(found)[-1]


def test_no_curve_for_fine_tuning_and_a_warning_for_experts():
    _, _, tuned = scaled(task="sft")
    assert tuned.optimal is None
    assert "fine-tuning" in optimal_sentences(tuned)[0]
    _, _, experts = scaled(model="mixtral-8x7b", num_gpus="128")
    assert experts.optimal.has_experts
    assert "experts" in optimal_sentences(experts)[-1]


def test_files_keep_the_names_and_the_order_of_their_columns(usual):
    _, _, found = usual
    assert list(scale_document.counts(found).frame()) == [
        "num_gpus", "days_steady", "days_expected", "days_p90", "days_p90_all", "usd_steady",
        "usd_expected", "usd_p90", "usd_p90_all", "goodput", "efficiency", "tokens_per_s",
        "gpu_hours_per_trillion_tokens", "usd_per_trillion_tokens", "usd_per_day_saved",
        "doubling_saves", "doubling_usd_per_day_saved", "layout", "expected_days",
        "expected_days_p90", "expected_usd", "expected_usd_p90", "paid_usd", "paid_usd_p90",
    ]  # fmt: skip
    assert list(scale_document.optimal(found).frame()) == [
        "law", "usd", "flops", "parameters", "tokens", "tokens_per_parameter", "loss",
        "tokens_per_s", "gpu_hours_per_trillion_tokens", "usd_per_trillion_tokens",
    ]  # fmt: skip


def test_charts_and_tables_hold_every_point(usual):
    _, _, found = usual
    rows = scale_document.counts(found).frame()
    assert len(rows) == len(found.points)
    drawn = scale_charts.against_count(
        rows, what="usd", chosen=64, limit=3e5, theme="dark"
    ).to_dict()
    (axis,) = {str(x["encoding"]["x"]["scale"].get("base")) for x in drawn["layer"][:3]}
    assert axis == "2"
    times = [n for n in rows if "days" in n]
    short = rows.assign(**{n: rows[n] / 10_000 for n in times})
    drawn = scale_charts.against_count(short, what="days", chosen=64, limit=1e-3, theme="dark")
    assert "Time (minutes)" in drawn.to_json()
    assert "Deadline 1.4 min" in drawn.to_json()
    curve = scale_charts.optimal(
        scale_document.optimal_drawn(found), scale_document.own_run(found), theme="light"
    ).to_dict()
    assert len(curve["layer"]) == 4
    budgets = [b.usd for b in scale_document.optimal_read(found).rows]
    assert budgets == sorted(budgets)
    assert (len(budgets), len(scale_document.optimal(found).rows)) == (2 * 5, 2 * 17)
    assert "with 64 GPUs" not in scale_document.alt(found, "days")
    assert scale_document.alt(found, "usd").startswith("Dollars of the run")
    assert "parameters on" in scale_document.optimal_alt(found)


def test_one_machine_is_scaled_fast_enough():
    scenario, plan, _ = scaled(model="llama3.1-70b", num_gpus="256")
    took = []
    for _ in range(3):  # other processes of the machine may hold one of them up
        begun = time.process_time()
        scale_of(scenario, plan)
        took.append(time.process_time() - begun)
    assert min(took) < SLOWEST_S


def test_the_command_prints_the_table_and_the_json_is_documented(run):
    status, out, err = run(*JOB, "--deadline-days", "40", "--usd-per-day", "5k")
    assert (status, err) == (0, "")
    flat = " ".join(out.split())
    for part in ("Efficiency", "Waiting:", "Compute-optimal:", "Besiroglu et al. 2024"):
        assert part in flat
    assert "nan" not in flat.lower()
    status, out, err = run(*JOB, "--json", "--deadline-days", "40", "--usd-per-day", "5k")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert found["meets_deadline_num_gpus"] in [p["num_gpus"] for p in found["points"]]
    assert found["worth_num_gpus"] >= found["least_usd_num_gpus"]
    named = set(re.findall(r"`(\w+)`", DOCUMENT.read_text(encoding="utf-8")))
    assert set(keys(found)) <= named


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--usd-per-day", "lots"), "--usd-per-day: 'lots' is not a number like"),
        (("--usd-per-day", "0"), "is not above 0"),
        (("--usd-per-day", "-5"), "--usd-per-day"),
        (("--gpu", "h1000"), "h1000"),
    ],
)
def test_a_mistake_is_a_sentence(run, arguments, says):
    status, out, err = run(*JOB, *arguments)
    assert (status, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1

"""A number that several places show is one number, or has another name: scenarios of all kinds."""

import datetime as dt
import math
import re

import orjson
import pytest

from app.bill import document as bill_document
from app.bill.bill import bill_of, bill_sentences
from app.buy import charts as buy_charts
from app.buy import document as buy_document
from app.buy import words as buy_words
from app.buy.purchases import purchases_of
from app.document import format as fmt
from app.document import markdown
from app.forecast import answer as forecast_answer
from app.forecast import resolve
from app.forecast.alternatives import picks_of
from app.forecast.with_failures import of_plans
from app.launch.job import forecast_sentences
from app.options import document as options_document
from app.options import side_by_side
from app.plan import cards, words
from app.plan import document as plan_document
from app.plan.answer_document import ranked
from app.plan.as_json import plan_json
from app.plan.decided import recommended_sentence
from app.report import answer as report_answer
from app.report.report import report_of
from app.risk.as_json import risk_json
from app.risk.risk import risk_of
from app.risk.words import risk_sentences
from app.scale.points import scale_of
from app.scenario.link_query import link_query
from core.scenario import Scenario
from pricing.offers import snapshot

TODAY = dt.date(2026, 11, 23)
SMALL = {"gpu": "H100-80GB-SXM", "cloud": "aws", "num_gpus": "8,64"}
SCENARIOS = {
    "pretrain": {**SMALL},
    "a deadline": {**SMALL, "deadline_days": "7"},
    "a deadline that nothing meets": {**SMALL, "deadline_days": "0.5"},
    "surely, within a budget": {
        **SMALL, "deadline_days": "9", "deadline_confidence": "0.99", "budget_usd": "30k"
    },
    "the fastest": {**SMALL, "rank_by": "time"},
    "spot": {**SMALL, "purchase": "spot", "max_price_age_days": "0", "deadline_days": "9"},
    "sft": {**SMALL, "task": "sft", "num_tokens": "50M", "global_batch_size": "64"},
    "lora": {**SMALL, "task": "lora", "num_tokens": "5M", "global_batch_size": "16"},
    "qlora": {**SMALL, "task": "qlora", "num_tokens": "5M", "global_batch_size": "16"},
    "mixture of experts": {**SMALL, "model": "mixtral-8x7b", "num_gpus": "64"},
    "tpu": {"gpu": "TPU-v6e", "cloud": "gcp", "max_price_age_days": "0"},
    "a quote": {"quotes": "acme,h100,2.20", "gpu": "H100-80GB-SXM", "num_gpus": "64"},
    "a custom model": {
        **SMALL, "model": "custom", "num_layers": "32", "hidden_size": "4096",
        "ffn_hidden_size": "14336", "num_attention_heads": "32", "num_kv_heads": "8",
        "head_dim": "128", "vocab_size": "128256",
    },
    "failures as given": {**SMALL, "failures_per_node_day": "0.2", "checkpoint_s": "60"},
    "experts on 2,048": {
        "model": "deepseek-v3", "gpu": "H100-80GB-SXM", "num_gpus": "2048", "num_tokens": "14.8T",
        "seq_len": "4096", "global_batch_size": "15360", "deadline_days": "90",
    },
    "custom experts": {
        **SMALL, "model": "custom", "num_layers": "24", "hidden_size": "2048",
        "ffn_hidden_size": "5632", "num_attention_heads": "16", "num_kv_heads": "16",
        "head_dim": "128", "vocab_size": "128256", "num_experts": "64", "experts_per_token": "8",
        "moe_ffn_hidden_size": "1024",
    },
    "fp8 where it is faster": {**SMALL, "allow_fp8": "true", "deadline_days": "5"},
    "no particular stack": {**SMALL, "stack": "generic"},
    "reserved for a year": {
        "gpu": "H100-80GB-SXM", "num_gpus": "64", "purchase": "reserved_1y",
        "max_price_age_days": "0",
    },
    "a quote by a deadline, among others": {
        "quotes": "acme,h100,2.20", "num_gpus": "64", "deadline_days": "3",
        "gpu": "H100-80GB-SXM,MI300X",
    },
}  # fmt: skip


@pytest.fixture(scope="module", params=SCENARIOS)
def found(request):
    scenario = resolve.resolve_strict(Scenario.parse(SCENARIOS[request.param]))
    return scenario, forecast_answer.answer(scenario, top=5, with_frontier=True)


def test_every_plan_has_one_expected_cost_and_time(found):
    scenario, answer = found
    assert answer.plans
    json = orjson.loads(orjson.dumps(plan_json(scenario, answer)))["plans"]
    failing = of_plans(scenario, answer.plans)
    table = plan_document.ranked(scenario, answer.plans, failing).frame()
    every = options_document.every(scenario, answer).set_index(options_document.ID)
    for n, plan in enumerate(answer.plans):
        usd, hours = plan.total.usd, plan.total.hours
        row = every.loc[plan.id]
        assert json[n]["expected_usd"] == usd.expected == row[plan_document.EXPECTED_COST]
        assert table[plan_document.EXPECTED_COST][n] == usd.expected
        assert json[n]["expected_hours"] == hours.expected
        for days in (row, table.loc[n]):
            assert days[plan_document.EXPECTED_TIME] == pytest.approx(hours.expected / 24)
        assert json[n]["expected_usd_p90"] == usd.p90
        assert json[n]["chance_on_time"] == plan.total.chance_on_time
        for outcome in (usd, hours):
            assert outcome.p10 <= outcome.p50 <= outcome.p90
            assert outcome.p10 < outcome.expected <= outcome.p90
        # All in is never less than what happens if nothing fails, nor than failures alone.
        assert hours.expected >= failing[n].hours_expected * (1 - 1e-9)
        assert json[n]["with_failures"]["hours_expected"] == failing[n].hours_expected


def test_limits_and_ranking_are_by_these(found):
    scenario, answer = found
    p = answer.points
    if scenario.deadline_days is not None:
        sure = p["chance_on_time"] >= scenario.deadline_confidence
        assert (p["meets_deadline"] == sure).all()
    if scenario.budget_usd is not None:
        assert (p["meets_budget"] == (p["expected_usd"] <= scenario.budget_usd)).all()
    by = p["expected_hours" if scenario.rank_by == "time" else "expected_usd"]
    alike = [
        (not (p["meets_deadline"][n] and p["meets_budget"][n]), len(p["against"][n].split()), by[n])
        for n in range(1, answer.num_plans)
        if math.isfinite(by[n])
    ]
    assert alike == sorted(alike)


def test_words_cards_and_reports_show_the_same_figures(found):
    scenario, answer = found
    plan = answer.plans[0]
    usd, days = plan.total.usd, fmt.days(plan.expected_hours)
    said = words.answer_sentence(scenario, answer, TODAY)
    assert f"{fmt.usd(usd.expected, digits=3)} expected" in said
    assert f", {days} (P90 {fmt.days(plan.total.hours.p90)}) on" in said
    card = cards.headlines(scenario, answer, plan, TODAY)[0]
    assert card.value == fmt.usd_short(usd.expected)
    (line,) = ranked(answer.plans[:1]).cells()
    assert days in line
    assert fmt.usd(usd.expected, digits=3) in line
    facts = dict(plan_document.facts(scenario, plan, of_plans(scenario, (plan,))[0], TODAY))
    assert facts["Expected cost"].startswith(fmt.usd(usd.expected))
    assert facts["Expected time"].startswith(days)
    report = {name: cells for name, *cells in report_answer.decision_table(plan).rows}
    assert report["Cost of the run, all in"][0] == fmt.usd_short(usd.expected)
    assert report["Time of the run, all in"][0] == days
    assert plan_document.label(plan).startswith(f"#1: {fmt.usd_short(usd.expected)}, {days}, ")
    assert f"{days} and {fmt.usd(usd.expected)} expected, all in" in (
        forecast_sentences(plan, None)  # of launch files
    )
    assert recommended_sentence(scenario, answer)
    chance = plan.total.chance_on_time
    if chance is not None:
        late = fmt.chance(1 - chance)
        assert f", {late} chance to be late" in said
        assert any(
            f"with a chance of {late}." in s
            for s in risk_sentences(scenario, risk_of(scenario, plan))
        )


def test_the_command_line_and_the_report_show_the_same_figures(found, run):
    scenario, answer = found
    plan = answer.plans[0]
    link = ("--link", f"?{link_query(scenario, snapshot(scenario.prices).id)}")
    status, out, err = run("plan", *link, "--json")
    assert (status, err) == (0, "")
    (json, *_) = orjson.loads(out)["plans"]
    hours, usd = plan.total.hours, plan.total.usd
    assert json["id"] == plan.id
    assert (json["expected_usd"], json["expected_hours"]) == (usd.expected, hours.expected)
    assert (json["expected_usd_p90"], json["expected_hours_p10"]) == (usd.p90, hours.p10)
    assert json["chance_on_time"] == plan.total.chance_on_time
    luck = plan.chosen_correction
    assert (json["chosen_correction"] is None) == (luck is None)
    status, out, err = run("risk", *link)
    assert (status, err) == (0, "")
    expected = (
        f"Expected, all in: {fmt.days(hours.expected)} (P90 {fmt.days(hours.p90)}) and "
        f"{fmt.usd(usd.expected, digits=3)} (P90 {fmt.usd_short(usd.p90)})."
    )
    assert expected in " ".join(out.split())
    report = " ".join(markdown.written(report_of(scenario, answer, date=TODAY)).decode().split())
    assert plain(expected) in plain(report)
    assert plain(words.answer_sentence(scenario, answer)) in plain(report)
    if luck is not None:
        assert luck.total.usd.expected > usd.expected
        assert json["chosen_correction"]["expected_usd"] == luck.total.usd.expected
        assert fmt.usd(luck.total.usd.expected) in words.chosen_sentence(plan)
        assert plain(words.chosen_sentence(plan)) in plain(report)


def plain(text):
    """Letters, digits and signs of numbers, without markup."""
    return re.sub(r"[^\w$%.]+", " ", text.replace("\\", ""))


def test_the_risk_page_names_other_figures_otherwise(found):
    scenario, answer = found
    plan = answer.plans[0]
    bought = purchases_of(scenario, plan)
    usd, days = fmt.usd(plan.expected_usd, digits=3), fmt.days(plan.expected_hours)
    assert f"is expected to cost {usd} in {days}, all in" in buy_words.all_in_sentence(bought)
    assert usd in bill_sentences(scenario, bill_of(scenario, plan))[0]
    tables = (buy_document.cheapest_first(bought), bill_document.lines(bill_of(scenario, plan)))
    heads = {column.head for table in tables for column in table.columns}
    assert {"Cost, mean", "Days, mean", "Mean"} <= heads
    assert not [head for head in heads if "xpected" in head]
    for label, _, line in buy_document.headlines(scenario, bought):
        assert "mean" in line or label == "Spot pays up to" or line.startswith("no ")
    for chart in buy_charts.of(scenario, bought, theme="light").values():
        assert "xpected" not in " ".join(titles(chart.to_dict()))


def titles(drawn):
    """Every title of axes and tooltips of a chart."""
    if isinstance(drawn, list):
        return [t for one in drawn for t in titles(one)]
    if not isinstance(drawn, dict):
        return []
    own = [str(drawn["title"])] if "title" in drawn else []
    return own + [t for name, one in drawn.items() if name != "datasets" for t in titles(one)]


def test_spot_in_closed_form_is_spot_played():
    scenario = resolve.resolve_strict(
        Scenario.parse({**SCENARIOS["spot"], "num_gpus": "16", "deadline_days": "30"})
    )
    plan = forecast_answer.answer(scenario, top=1).plans[0]
    played = purchases_of(scenario, plan).named("spot_only")
    assert plan.total.hours.p10 == pytest.approx(played.hours.p10_all, rel=0.03)
    assert plan.total.hours.p90 == pytest.approx(played.hours.p90_all, rel=0.03)
    assert played.hours.expected < plan.expected_hours < 1.05 * played.hours.expected


def test_other_questions_give_the_same_figures(found):
    scenario, answer = found
    plan = answer.plans[0]
    risk = risk_of(scenario, plan)
    assert risk_json(scenario, risk)["plan"]["expected_usd"] == plan.expected_usd
    if plan.total.chance_on_time is not None:
        assert risk.misses_deadline == 1 - plan.total.chance_on_time
    rows = {r.label: r for r in side_by_side.rows(side_by_side.subjects(scenario, [plan]), TODAY)}
    assert rows["Expected cost"].numbers == (plan.expected_usd,)
    assert rows["Expected time"].numbers == (plan.expected_hours,)
    own = scale_of(scenario, plan).at(plan.num_gpus)
    assert own.expected_usd == pytest.approx(plan.expected_usd, rel=1e-9)
    assert own.expected_hours == pytest.approx(plan.expected_hours, rel=1e-9)
    by_id = dict(zip(answer.points["id"], answer.points["expected_usd"], strict=True))
    for pick in picks_of(scenario, answer):
        assert fmt.usd(float(by_id[pick.point["id"]]), digits=3) in pick.sentence

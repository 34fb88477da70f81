"""The Risk & money page without a browser: its tables, charts and states."""

import json
import math
from dataclasses import replace

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app.buy import charts, document, words
from app.buy.labels import POLICIES, label
from app.buy.purchases import purchases_of
from app.document.chart_parts import INK
from app.forecast.answer import answer
from app.forecast.resolve import resolve_strict
from app.risk import document as risk_document
from core.scenario import Scenario
from tests.made_up.plans import SUMMER_2026

JOB = {
    "model": "llama3.1-8b", "num_tokens": "1T", "global_batch_size": "512",
    "gpu": "H100-80GB-SXM", "num_gpus": "64", "deadline_days": "30", "budget_usd": "70000",
}  # fmt: skip
THEMES = ("light", "dark")


def script(query):
    from app.buy import page as buy_page
    from app.forecast.answer import answer
    from app.forecast.resolve import resolve
    from app.web import link
    from core.scenario import Scenario

    link.edit(resolve(Scenario.from_query(query)[0])[0])
    found = answer(link.scenario().model_copy(update={"spares": None}), top=3)
    buy_page.draw(link.scenario(), found)


def page(**given):
    values = {k: v for k, v in {**JOB, **given}.items() if v is not None}
    return AppTest.from_function(script, default_timeout=120, args=(values,)).run()


def plain(text):
    return str(text).replace("\\", "").replace("\N{WORD JOINER}", "")


def shown(drawn):
    return plain("\n".join(e.value for e in (*drawn.markdown, *drawn.caption)))


@pytest.fixture(scope="module")
def scenario():
    return resolve_strict(Scenario.parse(JOB))


@pytest.fixture(scope="module")
def found(scenario):
    return purchases_of(scenario, answer(scenario, top=1).plans[0])


@pytest.fixture(scope="module")
def drawn():
    return page()


# --- the page ------------------------------------------------------------------------------------


def test_the_page_says_the_answer_first_and_everything_else(drawn, scenario, found):
    assert not drawn.exception
    assert not drawn.error
    assert plain(drawn.markdown[0].value) == f"**{words.headline(scenario, found)}**"
    text = shown(drawn)
    for sentence in words.sentences(scenario, found):
        assert sentence in text
    for ways, why in words.lacking(found):
        assert f"{ways}: {why}" in text
    titles = [m.label for m in drawn.metric]
    assert titles == ["Cheapest", "On demand", "Spot only", "Spot pays up to"]
    assert {"Ways to buy", "Policies on spot", "Every way"} <= {s.value for s in drawn.subheader}


def test_the_bill_and_the_scale_follow(drawn):
    assert [s.value for s in drawn.subheader][-2:] == ["Everything on the bill", "When and how big"]


def test_what_never_ends_is_a_sentence(scenario):
    drawn = page(failures_per_node_day="1e6")
    assert not drawn.exception
    text = shown(drawn)
    assert "Does not end: an attempt gets as far as its next checkpoint" in text
    assert "nan" not in text.lower()


def test_without_a_price_of_spot_the_page_says_so():
    drawn = page(prices=SUMMER_2026, cloud="coreweave", deadline_days=None, budget_usd=None)
    assert not drawn.exception
    assert "spot of H100-80GB-SXM at coreweave is not in this price snapshot" in shown(drawn)


def test_nothing_fits_is_an_error_and_no_more():
    drawn = page(model="llama3.1-405b", gpu="L4", num_gpus="1")
    assert not drawn.exception
    assert "GiB" in plain(drawn.error[0].value)
    assert not drawn.subheader


def test_a_mistake_among_the_inputs_is_a_sentence():
    drawn = page(spares="2")
    assert not drawn.exception
    assert "'Spare machines' needs 'Repair (s)'" in plain(drawn.error[0].value)


# --- tables --------------------------------------------------------------------------------------


def test_ways_are_sorted_by_cost_and_complete(found):
    rows = document.spreads(found)
    assert list(rows["paid_usd"]) == sorted(rows["paid_usd"])
    assert set(rows["way"]) == {label(w) for w in found.ways if w.hours}
    assert (rows["usd_p10"] <= rows["usd_p90"]).all()
    assert (rows["days_p10"] < rows["days_p90"]).all()
    table = document.read(document.cheapest_first(found), document.WAYS_READ)
    assert {"Misses the deadline", "Over the budget"} <= set(table.head)
    assert [cells[0] for cells in table.cells()] == list(rows["way"])


def test_files_keep_the_names_and_the_order_of_their_columns(found):
    assert list(document.spreads(found)) == [
        "way", "family", "machine", "usd", "usd_p10", "usd_p50", "usd_p90", "days", "days_p10",
        "days_p50", "days_p90", "late", "over_budget", "idle_usd", "preemptions",
        "paid_usd",
    ]  # fmt: skip
    assert list(document.played(found)) == [
        "policy", "market", "preemptions_per_day", "usd", "usd_p90", "days", "days_p90", "late",
        "on_spot", "preemptions",
    ]  # fmt: skip
    assert list(document.curves(found)) == ["way", "days", "late"]
    assert list(document.lost(found)) == ["way", "part", "order", "days", "share", "text"]


def test_a_limit_that_was_not_given_has_no_column(found):
    way = next(w for w in found.ways if w.hours)
    unlimited = replace(way.cost, chance_on_time=math.nan, chance_in_budget=math.nan)
    free = replace(way, cost=unlimited, outside_window=None)
    table = document.read(document.ways(replace(found, ways=(free,))), document.WAYS_READ)
    assert not {"Misses the deadline", "Over the budget"} & set(table.head)


def test_curves_and_lost_days_are_of_the_ways(found):
    curves = document.curves(found)
    for _, rows in curves.groupby("way"):
        assert rows["late"].is_monotonic_decreasing
        assert rows["late"].between(0, 1).all()
    said = document.late_from_words(curves)
    assert "on demand from" in said
    lost = document.lost(found)
    way = next(w for w in found.ways if w.name == "spot_only")
    days = lost.loc[lost["way"].str.startswith("spot only"), "days"].sum()
    assert days * 24 == pytest.approx(sum(way.lost_hours.values()))
    assert len(set(lost["way"])) == lost.groupby("way").ngroups


def test_policies_are_there_on_every_market(found):
    rows = document.played(found)
    assert len(rows) == len(POLICIES) * 3
    assert set(rows["market"]) == {"lowest", "in use", "highest"}
    cheapest = rows.loc[rows["usd"].idxmin()]
    assert f"({cheapest['market']}): {cheapest['policy']}" in words.policies_words(found)


def test_every_input_has_a_basis_and_a_source(found):
    rows = risk_document.inputs(found.inputs).texts()
    assert set(rows["Basis"]) <= {"published", "assumed", "as given"}
    assert rows["Source"].str.len().min() > 0
    assert rows["Input"].is_unique


# --- charts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", THEMES)
def test_charts_have_titles_with_units_and_the_ink_of_the_theme(scenario, found, theme):
    drawn = charts.of(scenario, found, theme=theme)
    assert set(drawn) == {"usd", "days", "curve", "lost", "policy_usd", "policy_days"}
    for name, chart in drawn.items():
        text = json.dumps(chart.to_dict())
        assert "NaN" not in text
        assert INK[theme] in text
        assert ("(USD)" if "usd" in name else "ays") in text
        assert '"tooltip"' in text


def test_limits_and_on_demand_are_lines(scenario, found):
    drawn = charts.of(scenario, found, theme="light")
    assert "budget $70k" in json.dumps(drawn["usd"].to_dict())
    assert "deadline 30 days" in json.dumps(drawn["days"].to_dict())
    assert '"deadline"' in json.dumps(drawn["curve"].to_dict())
    without = charts.of(
        scenario.model_copy(update={"deadline_days": None, "budget_usd": None}), found,
        theme="light",
    )  # fmt: skip
    assert "budget" not in json.dumps(without["usd"].to_dict()).replace("over_budget", "")


def test_axes_are_logarithmic_only_where_values_are_far_apart():
    near, far = pd.Series([50.0, 100.0]), pd.Series([50.0, 5000.0])
    assert charts._scale(near).to_dict()["domain"][0] == 0
    assert charts._scale(far).to_dict()["type"] == "log"


def test_colours_are_doubled_by_shape_or_dash(scenario, found):
    drawn = charts.of(scenario, found, theme="light")
    assert '"shape"' in json.dumps(drawn["usd"].to_dict())
    assert '"shape"' in json.dumps(drawn["policy_usd"].to_dict())
    assert '"strokeDash"' in json.dumps(drawn["curve"].to_dict())

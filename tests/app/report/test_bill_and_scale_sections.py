"""The bill and the GPU counts as sections of a page, without a browser."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from app.forecast import answer as forecast_answer
from app.forecast import resolve
from core.scenario import Scenario


def page():
    """What a page does that draws both sections."""
    import streamlit as st

    from app.bill import page as bill_page
    from app.forecast import answer as forecast_answer
    from app.scale import page as scale_page
    from core.scenario import Scenario

    scenario = Scenario.parse(dict(st.query_params.to_dict()))
    answer = forecast_answer.answer(scenario, top=1)
    bill_page.draw(scenario, answer, answer.plans[0])
    scale_page.draw(scenario, answer, answer.plans[0])


def opened(**query):
    asked = {"gpu": "H100-80GB-SXM", "cloud": "aws", "num_gpus": "64", "num_tokens": "1e12"}
    at = AppTest.from_function(page, default_timeout=60)
    for name, value in {**asked, "prices": resolve.current_prices(), **query}.items():
        at.query_params[name] = value
    for part in ("scale_part", "scale_optimal_part"):  # as if somebody had clicked on them
        at.session_state[part] = True
    return at.run()


def texts(at):
    return " ".join(m.value for m in at.markdown).replace("\\", "").replace("\N{WORD JOINER}", "")


@pytest.fixture(scope="module", autouse=True)
def _warm():
    forecast_answer.answer(Scenario.parse({"gpu": "H100-80GB-SXM", "num_gpus": "64"}), top=1)


def test_both_sections_are_drawn_with_their_limits():
    at = opened(deadline_days="40", budget_usd="300000")
    assert not at.exception
    said = texts(at)
    for part in (
        "on average, 8 times in 10 between $", "the budget of $300,000",
        "The fewest that end within 40 days",
        "Waiting for a lower price", "The best model for the money", "embodied carbon",
    ):  # fmt: skip
        assert part in said
    assert [s.value for s in at.subheader] == ["Everything on the bill", "When and how big"]
    assert len(at.table) == 1
    assert len(at.dataframe) == 2
    assert "Whole instances" in at.table[0].value.to_string()


def test_the_value_of_a_day_is_taken_in():
    at = opened()
    assert "Where a day is worth" not in texts(at)
    at.number_input(key="scale_usd_per_day").set_value(5000.0).run()
    assert not at.exception
    assert "Where a day is worth $5,000, days and dollars together are least with" in texts(at)


def test_what_never_ends_is_a_sentence_and_the_rest_is_drawn():
    at = opened(failures_per_node_day="50", checkpoint_s="7200")
    assert not at.exception
    assert "does not end" in at.warning[0].value
    assert "nan" not in texts(at).lower()


def test_fine_tuning_has_no_curve():
    at = opened(task="sft")
    assert not at.exception
    assert "The laws are of pre-training" in texts(at)
    assert len(at.dataframe) == 1

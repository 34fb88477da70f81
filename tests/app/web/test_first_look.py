"""The first look: the usual accelerators while the rest is searched, with every widget usable."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app.forecast import answer as forecast_answer
from app.forecast import resolve
from app.plan import page as plan_page
from app.web import answers, first_look
from core.scenario import Scenario

MAIN = str(Path(__file__).parents[3] / "app/main.py")
ONE_CLOUD = {"cloud": "oci", "num_gpus": "64"}  # every accelerator of a few machines
WAIT_S = 60.0


@pytest.fixture
def held(monkeypatch):
    """Searches of every accelerator wait until the test lets them go, and the page does not wait
    for them: as it looks meanwhile. What was searched."""
    st.cache_resource.clear()
    wait = first_look.wait
    monkeypatch.setattr(first_look, "wait", lambda: wait() if go.waits else None)
    monkeypatch.setattr(first_look, "WAIT_S", 0.01)
    go, seen = threading.Event(), []
    real = forecast_answer.answer

    def answer(scenario, *args, **kwargs):
        seen.append(scenario.gpu)
        assert scenario.gpu or go.wait(WAIT_S)
        return real(scenario, *args, **kwargs)

    monkeypatch.setattr(forecast_answer, "answer", answer)
    go.seen, go.waits = seen, False
    yield go
    go.set()
    st.cache_resource.clear()


def opened(**query):
    page = AppTest.from_file(MAIN, default_timeout=WAIT_S)
    for name, value in query.items():
        page.query_params[name] = value
    return page.run()


def note(page):
    return [i for i in page.info if first_look.NOTE in i.value]


def gpus(page):
    return set(page.dataframe[0].value["GPU"])


def end(go, **query):
    """Let the search go and wait until it has ended."""
    go.set()
    scenario = Scenario.parse({**query, "prices": resolve.current_prices()})
    assert answers.is_known(answers.key_of(scenario), within_s=WAIT_S)


def test_the_usual_accelerators_come_first_and_the_whole_answer_replaces_them(held):
    page = opened(**ONE_CLOUD)
    assert not page.exception
    assert note(page)
    assert gpus(page)
    assert gpus(page) <= set(first_look.GPUS)
    end(held, **ONE_CLOUD)
    page.run()
    assert not page.exception
    assert not note(page)
    whole = forecast_answer.answer(
        Scenario.parse({**ONE_CLOUD, "prices": resolve.current_prices()})
    )
    assert page.dataframe[0].value["GPU"].tolist() == [p.offer.accelerator for p in whole.plans]
    assert gpus(page) - set(first_look.GPUS)


def test_the_page_shows_the_whole_answer_by_itself(held):
    held.waits = True
    threading.Timer(1.0, held.set).start()
    page = opened(**ONE_CLOUD)
    assert not page.exception
    assert not note(page)
    assert held.seen.count(()) == 1
    assert first_look.GPUS in held.seen
    assert gpus(page) - set(first_look.GPUS)


def test_what_is_drawn_meanwhile_is_not_kept_for_the_whole_answer(held, monkeypatch):
    """Charts and tables are kept by the scenario that a view is given."""
    given = []
    draw = plan_page.draw
    monkeypatch.setattr(plan_page, "draw", lambda s, *rest: (given.append(s.gpu), draw(s, *rest)))
    held.waits = True
    threading.Timer(1.0, held.set).start()
    opened(**ONE_CLOUD)
    assert given == [first_look.GPUS, ()]


def test_an_edit_during_the_first_look_is_taken_at_once(held):
    page = opened(**ONE_CLOUD)
    page.text_input(key="form_num_tokens").set_value("2T").run()
    assert not page.exception
    assert note(page)
    assert page.text_input(key="form_num_tokens").value == "2T"
    assert "num_tokens" in page.query_params
    page.multiselect(key="form_gpu").set_value(["H100-80GB-SXM"]).run()
    assert not note(page)
    assert gpus(page) == {"H100-80GB-SXM"}


def test_each_question_is_searched_once_whoever_asks(held):
    opened(**ONE_CLOUD)
    opened(**ONE_CLOUD)
    end(held, **ONE_CLOUD)
    assert not note(opened(**ONE_CLOUD))
    assert held.seen.count(()) == 1
    assert held.seen.count(first_look.GPUS) == 1


def test_a_choice_of_accelerators_is_answered_at_once(held):
    page = opened(**ONE_CLOUD, gpu="H100-80GB-SXM")
    assert not page.exception
    assert not note(page)


def test_a_plan_that_the_first_look_lacks_waits_for_the_whole_answer(held):
    threading.Timer(0.5, held.set).start()
    whole = opened(**ONE_CLOUD)
    threading.Timer(0.5, held.set).start()
    for kind in ("plan", "pinned"):
        held.clear()
        st.cache_resource.clear()
        threading.Timer(0.3, held.set).start()
        page = opened(**ONE_CLOUD, **{kind: "gone~by~now"})
        assert not page.exception
        assert not note(page)
        assert any("gone" in w.value for w in page.warning)
    assert note(whole)


def test_where_the_usual_ones_have_no_plan_there_is_no_first_look(held):
    threading.Timer(0.3, held.set).start()
    page = opened(**{**ONE_CLOUD, "precision": "fp16", "tp": "3"})
    assert not page.exception
    assert page.error
    assert not note(page)


def test_an_error_of_the_search_is_carried_to_the_page(held, monkeypatch):
    from core.errors import ScenarioError

    page = opened(**ONE_CLOUD)
    assert note(page)
    real = forecast_answer.answer

    def fails(scenario, *args, **kwargs):
        if not scenario.gpu:
            raise ScenarioError("The search broke.")
        return real(scenario, *args, **kwargs)

    monkeypatch.setattr(forecast_answer, "answer", fails)
    st.cache_resource.clear()
    page.run()
    page.run()
    assert not page.exception
    assert not note(page)
    assert any("The search broke" in e.value for e in page.error)


def test_what_is_only_ranked_anew_is_waited_for_and_drawn_once(held):
    page = opened(**ONE_CLOUD)
    end(held, **ONE_CLOUD)
    page.run()
    held.clear()
    threading.Timer(0.3, held.set).start()  # longer than a first look waits
    page.query_params["deadline_days"] = "30"
    page.run()
    assert not page.exception
    assert not note(page)
    assert held.seen[-1] == ()

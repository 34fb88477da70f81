"""The first look: the usual accelerators while the rest is searched, once, and then the answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import estimate, first_look
from app.views import first_look as view
from core.scenario import Scenario
from hardware import facts

MAIN = str(Path(__file__).parent.parent / "app/main.py")
ONE_CLOUD = {"cloud": "lambda", "num_gpus": "64"}  # every accelerator of a few machines


@pytest.fixture
def looks(monkeypatch):
    """What first looks were drawn of."""
    first_look._known.clear()
    seen = []
    draw = view.draw

    def drawn(scenario, answer):
        seen.append({p.offer.accelerator for p in answer.plans})
        draw(scenario, answer)

    monkeypatch.setattr(view, "draw", drawn)
    yield seen
    first_look._known.clear()


def opened(**query):
    page = AppTest.from_file(MAIN, default_timeout=60)
    for name, value in query.items():
        page.query_params[name] = value
    return page.run()


def test_the_usual_accelerators_come_first_and_the_whole_answer_replaces_them(looks):
    page = opened(**ONE_CLOUD)
    assert not page.exception
    assert len(looks) == 1
    assert looks[0] <= set(first_look.GPUS)
    assert looks[0]
    assert not [i for i in page.info if first_look.NOTE[:20] in i.value]
    assert len(page.metric) == 4
    whole = estimate.answer(Scenario.parse({**ONE_CLOUD, "prices": estimate.current_prices()}))
    assert page.dataframe[0].value["GPU"].tolist() == [p.offer.accelerator for p in whole.plans]
    assert set(page.dataframe[0].value["GPU"]) - set(first_look.GPUS)


def test_what_is_known_is_not_looked_at_first(looks):
    opened(**ONE_CLOUD)
    opened(**ONE_CLOUD)
    assert len(looks) == 1


@pytest.mark.parametrize("chosen", [{"gpu": "H100-80GB-SXM"}, {"plan": "gone"}], ids=str)
def test_a_choice_is_answered_at_once(looks, chosen):
    assert not opened(**ONE_CLOUD, **chosen).exception
    assert not looks


def test_where_the_usual_ones_have_no_plan_there_is_no_first_look(looks):
    page = opened(**{**ONE_CLOUD, "precision": "fp16", "tp": "3"})
    assert not page.exception
    assert page.error
    assert not looks


def test_the_first_look_is_of_accelerators_that_exist_and_is_forgotten_in_time(monkeypatch, looks):
    assert set(first_look.GPUS) <= set(facts.accelerators())
    monkeypatch.setattr(first_look, "MOST_KNOWN", 2)
    for n in range(5):
        first_look.remember((n,))
        assert len(first_look._known()) <= 2

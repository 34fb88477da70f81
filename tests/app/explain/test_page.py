"""The section of the Plan page that says why, without a browser."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app.explain import explained
from app.explain import page as explain_page
from app.explain import words as explain_words
from app.forecast import answer as forecast_answer
from app.forecast import resolve
from core.scenario import Scenario

MAIN = str(Path(__file__).parents[3] / "app/main.py")
QUICK = {"gpu": "H100-80GB-SXM", "cloud": "aws", "num_gpus": "64"}
SLOWEST_S = 0.15


@pytest.fixture(scope="module", autouse=True)
def _warm():
    """Read the tables of facts once, outside every test's own time."""
    forecast_answer.answer(Scenario.parse(QUICK), top=1)


def opened(*, section=True, **query):
    page = AppTest.from_file(MAIN, default_timeout=60)
    for name, value in {**QUICK, **query}.items():
        page.query_params[name] = value
    page.session_state[explain_page.OPEN] = section
    return page.run()


def texts(page):
    return [m.value.replace("\\", "").replace("\N{WORD JOINER}", "") for m in page.markdown]


def test_the_next_bottleneck_is_said_without_a_click():
    page = opened(section=False)
    assert not page.exception
    scenario = Scenario.parse({**QUICK, "prices": resolve.current_prices()})
    plan = forecast_answer.answer(scenario, top=1).plans[0]
    found = explained.why(plan, None)
    said = next(t for t in texts(page) if t.startswith("**Why this plan**"))
    assert explain_words.next_sentence(found.faster) in said
    assert explain_page.MINE not in {t.key for t in page.text_input}  # nothing else is worked out


def test_the_open_section_holds_everything():
    page = opened()
    assert not page.exception
    said = texts(page)
    for title in (
        "**Against the next plan**",
        "**Against the next best layout on the same machines**",
        "**What would make it faster**",
        "**What moves the answer**",
        "**Why not my layout?**",
    ):
        assert title in said
    assert len(page.table) >= 2


def test_another_plan_is_held_against_the_first():
    scenario = Scenario.parse({**QUICK, "prices": resolve.current_prices()})
    second = forecast_answer.answer(scenario, top=2).plans[1]
    page = opened(plan=second.id)
    assert "**Against the other plan**" in texts(page)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tp=3", "tp=3 is not possible: 4 rules are broken."),
        ("tp=8", " fits."),
        ("tp=1,pp=1,sharding=ddp,micro_batch_size=4", "does not fit the memory."),
    ],
)
def test_a_layout_of_ones_own_gets_a_verdict(text, says):
    page = opened()
    page.text_input(key=explain_page.MINE).set_value(text).run()
    assert not page.exception
    assert not page.error
    assert any(says in t for t in texts(page))
    page.text_input(key=explain_page.MINE).set_value("").run()
    assert not any(says in t for t in texts(page))


@pytest.mark.parametrize(
    "text",
    [
        "fast please",
        "<img src=x onerror=alert(1)>=1",
        "tp=eight",
        "tp=1e9",
        "tp=8,tp=8",
        "dp=7",
        "$tp=8$",
        "\\u202etp=8",
        "=" * 600,
    ],
)
def test_hostile_text_is_one_sentence(text):
    page = opened()
    page.text_input(key=explain_page.MINE).set_value(text).run()
    assert not page.exception
    assert len(page.error) == 1
    assert len(page.error[0].value) < 700
    assert "**Why not my layout?**" in texts(page)


def test_the_section_adds_little_to_a_page_that_is_warm():
    """Every explanation of a plan, and of a layout that nobody asked for before."""
    scenario = Scenario.parse(QUICK)
    answer = forecast_answer.answer(scenario, top=20)
    plan = answer.plans[0]
    other = explained.other_of(answer, plan)
    seconds = []
    for n in range(4):
        st.cache_data.clear()
        began = time.thread_time()
        explain_page._why((), plan.id, str(n), plan, other)
        explain_page._sensitivity((), plan.id, plan)
        explain_page._named((), plan.id, f"tp={2 ** (n % 4)}", plan)
        seconds.append(time.thread_time() - began)
    assert min(seconds) < SLOWEST_S


def test_a_plan_without_a_price_is_explained_in_time():
    custom = {"tflop_per_s": "989", "memory_gib": "80", "memory_gb_per_s": "3350",
              "scale_up_gb_per_s": "450", "scale_out_gbit_per_s": "400"}  # fmt: skip
    page = opened(gpu="custom", **{f"custom_{k}": v for k, v in custom.items()})
    assert not page.exception
    said = texts(page)
    assert "**What moves the answer**" in said
    begins = next(n for n, t in enumerate(said) if t.startswith("**Why this plan**"))
    assert not any("$" in t for t in said[begins:] if "less a step" in t)
    page.text_input(key=explain_page.MINE).set_value("tp=1,pp=1,sharding=ddp").run()
    assert not page.exception
    assert any("no dollars to compare" in t for t in texts(page))

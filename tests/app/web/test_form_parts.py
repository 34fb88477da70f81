"""Closed parts of the form: drawn when opened, open while wrong, and nothing is lost by closing."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.forecast import resolve
from app.scenario import fields as scenario_fields
from app.scenario import starting
from app.web import form_part
from core.scenario import Scenario

MAIN = str(Path(__file__).parents[3] / "app/main.py")
QUICK = {"gpu": "H100-80GB-SXM", "cloud": "aws", "num_gpus": "64"}


def opened(*parts, **query):
    page = AppTest.from_file(MAIN, default_timeout=60)
    page.session_state[form_part.OPEN] = list(parts)
    for name, value in {**QUICK, **query}.items():
        page.query_params[name] = value
    return page.run()


def link_of(page):
    return {k: v if isinstance(v, str) else v[-1] for k, v in page.query_params.items()}


def drawn(page):
    kinds = ("text_input", "selectbox", "multiselect", "checkbox")
    return {w.key for kind in kinds for w in page.sidebar.get(kind)}


def test_closed_parts_draw_nothing_and_open_ones_all_of_it():
    closed, some = drawn(opened()), drawn(opened("memory"))
    memory = next(s for s in scenario_fields.sections() if s.key == "memory")
    assert {f"form_{n}" for n in memory.fields} == some - closed
    assert len(closed) < 15  # of a hundred
    assert [e.label for e in opened().sidebar.expander] == ["Saved scenarios"]


def test_a_part_that_is_closed_and_opened_again_shows_the_scenario():
    page = opened("parallelism", tp="8")
    page.text_input(key="form_pp").set_value("2").run()
    page.button(key="form_more").click().run()
    page.run()
    assert "form_pp" not in drawn(page)
    page.session_state[form_part.OPEN] = ["parallelism"]
    page.run()
    assert not page.exception
    assert page.text_input(key="form_pp").value == "2"
    assert page.text_input(key="form_tp").value == "8"
    assert "Parallelism (2 changed)" in [e.label for e in page.sidebar.expander]


def test_a_task_brings_its_usual_values_and_leaves_what_was_typed():
    page = opened()
    page.text_input(key="form_global_batch_size").set_value("64").run()
    page.selectbox(key="form_task").set_value("sft").run()
    assert not page.exception
    query = link_of(page)
    assert (query["task"], query["seq_len"], query["epochs"]) == ("sft", "4096", "3")
    assert (query["global_batch_size"], query["num_gpus"]) == ("64", "64")  # as given
    assert "form_num_tokens" not in drawn(page)
    assert page.text_input(key="form_num_examples").value == "52000"
    page.selectbox(key="form_task").set_value("continue").run()
    assert page.selectbox(key="form_task").value == "continue"
    assert page.text_input(key="form_num_tokens").value == "20B"
    assert page.text_input(key="form_global_batch_size").value == "64"


def test_a_link_of_a_continued_pretraining_opens_as_one_until_another_task_is_chosen():
    page = opened(num_tokens="20B", global_batch_size="256", gpu="H100-80GB-SXM")
    assert page.selectbox(key="form_task").value == "continue"
    page.selectbox(key="form_task").set_value("pretrain").run()
    assert page.selectbox(key="form_task").value == "pretrain"
    assert page.text_input(key="form_num_tokens").value == "100B"


@pytest.mark.parametrize("task", ["continue", "pretrain"])
def test_any_number_of_tokens_reopens_as_the_task_that_was_chosen(task):
    page = opened()
    page.selectbox(key="form_task").set_value("continue").run()
    page.selectbox(key="form_task").set_value(task).run()
    for tokens in ("35B", "20B"):  # 20B in a batch of 256 look continued by themselves
        page.text_input(key="form_num_tokens").set_value(tokens).run()
        page.text_input(key="form_global_batch_size").set_value("256").run()
        again = opened(**link_of(page))
        for shown in (page, again):
            assert not shown.exception
            assert not shown.warning
            assert shown.selectbox(key="form_task").value == task
            assert shown.text_input(key="form_num_tokens").value == tokens
    page.selectbox(key="form_task").set_value("lora").run()
    assert "continued" not in link_of(page)


def test_a_typed_number_of_tokens_is_kept_by_every_task():
    page = opened(num_tokens="1B")
    page.selectbox(key="form_task").set_value("lora").run()
    assert page.text_input(key="form_num_tokens").value == "1B"
    assert page.text_input(key="form_global_batch_size").value == "32"


def test_an_example_opens_as_its_link_and_a_reset_as_the_first_visit():
    page = opened(tp="8")
    name = "LoRA of 70B on one machine"
    page.menu_button(key="form_example").click(name).run()
    query = link_of(page)
    assert not page.exception
    assert not page.warning
    assert (query["task"], query["num_gpus"], query.get("tp")) == ("lora", "8", None)
    page.button(key="form_reset").click().run()
    assert set(page.query_params) == {"v", "deadline_days", "made", "prices"}


@pytest.mark.parametrize("query", starting.EXAMPLES.values(), ids=starting.EXAMPLES)
def test_every_example_is_a_link_without_a_note(query):
    assert Scenario.from_query(dict(query))[1] == []
    resolve.resolve_strict(Scenario.from_query(dict(query))[0])

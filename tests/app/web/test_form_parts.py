"""Closed parts of the form: drawn when opened, open while wrong, and nothing is lost by closing."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.scenario import fields as scenario_fields
from app.web import form_part

MAIN = str(Path(__file__).parents[3] / "app/main.py")
QUICK = {"gpu": "H100-80GB-SXM", "cloud": "aws", "num_gpus": "64"}


def opened(*parts, **query):
    page = AppTest.from_file(MAIN, default_timeout=60)
    page.session_state[form_part.OPEN] = list(parts)
    for name, value in {**QUICK, **query}.items():
        page.query_params[name] = value
    return page.run()


def plain(text):
    return text.replace("\\", "").replace("\N{WORD JOINER}", "")


def drawn(page):
    kinds = ("text_input", "selectbox", "multiselect", "checkbox")
    return {w.key for kind in kinds for w in page.sidebar.get(kind)}


def test_closed_parts_draw_nothing_and_open_ones_all_of_it():
    closed, some = drawn(opened()), drawn(opened("memory"))
    memory = next(s for s in scenario_fields.sections() if s.key == "memory")
    assert {f"form_{n}" for n in memory.fields} == some - closed
    assert len(closed) < 15  # of a hundred


def test_a_part_that_is_closed_and_opened_again_shows_the_scenario():
    page = opened("parallelism", tp="8")
    page.text_input(key="form_pp").set_value("2").run()
    page.session_state[form_part.OPEN] = []
    page.run()
    assert "form_pp" not in drawn(page)
    page.session_state[form_part.OPEN] = ["parallelism"]
    page.run()
    assert not page.exception
    assert page.text_input(key="form_pp").value == "2"
    assert page.text_input(key="form_tp").value == "8"
    assert "Parallelism (2 changed)" in [e.label for e in page.sidebar.expander]


def test_a_wrong_value_in_a_part_is_seen_and_leaves_with_a_right_one():
    page = opened("parallelism")
    page.text_input(key="form_tp").set_value("many").run()
    assert "form_tp" in drawn(page)
    assert len(page.sidebar.error) == 1
    page.text_input(key="form_tp").set_value("4").run()
    assert not page.sidebar.error


@pytest.mark.parametrize(
    ("key", "typed", "says"),
    [
        ("num_tokens", "ten", "Training tokens: 'ten' is not a number like 8192, 1e12, 15T or 8k"),
        ("seq_len", "16777217", "Sequence length: '16777217' should be at most 16,777,216"),
        ("tp", "0", "Tensor parallel: '0' should be at least 1"),
    ],
)
def test_a_wrong_value_is_named_by_the_label_above_it_and_by_its_key(key, typed, says):
    page = opened("parallelism")
    field = page.text_input(key=f"form_{key}").set_value(typed)
    field.run()
    (error,) = page.sidebar.error
    assert plain(error.value) == f"{says} ({key} in a link)."
    assert says.startswith(f"{field.label}: ")


def test_a_wrong_value_in_a_link_is_named_by_its_key_alone():
    (note,) = opened(num_tokens="ten").warning
    assert "link: num_tokens: 'ten' is not a number" in plain(note.value)


@pytest.mark.parametrize("is_open", [True, False])
def test_who_closes_a_part_forgets_what_is_wrong_in_it(monkeypatch, is_open):
    state = {form_part.OPEN: ["a", "b"], "form_section_a": is_open}
    monkeypatch.setattr(form_part.st, "session_state", state)
    errors = {"tp": "wrong", "model": "wrong"}
    form_part._toggled("a", errors, ("tp", "pp"))
    assert state[form_part.OPEN] == (["a", "b"] if is_open else ["b"])
    assert errors == ({"tp": "wrong", "model": "wrong"} if is_open else {"model": "wrong"})

"""Saved scenarios on the page without a browser: the section, short links, what goes wrong."""

import sqlite3
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from app.forecast import answer as forecast_answer
from app.saved import saved
from core.scenario import Scenario
from pricing.store import engine
from pricing.store.opening import open_store
from pricing.store.saved import save_scenario, saved_scenarios

MAIN = str(Path(__file__).parents[3] / "app/main.py")
QUICK = {"gpu": "H100-80GB-SXM", "cloud": "aws", "num_gpus": "64"}  # few machines: a fast answer
FOREIGN = [
    "<script>alert(1)</script>",
    "![x](http://evil.example/x.png)",
    "=HYPERLINK(1)",
    ":red[x] $y$ | `z`",
    "# 1. *x*",
]


@pytest.fixture(autouse=True)
def _own_store(monkeypatch, tmp_path):
    """An empty store for each test; the prices stay those of the installation."""
    monkeypatch.setenv("RUNCAST_DATABASE_URL", f"sqlite:///{tmp_path}/store.sqlite")


@pytest.fixture(scope="module", autouse=True)
def _warm():
    forecast_answer.answer(Scenario.parse(QUICK), top=1)


def script():
    """The sidebar alone, as app/main.py draws it."""
    import streamlit as st

    from app.document.escape import as_text
    from app.forecast import resolve
    from app.saved import saved
    from app.saved import sidebar as section
    from app.web import form as web_form
    from app.web import link

    if link.take_over(resolve.resolve, resolve.current_prices(), saved.expanded):
        web_form.fill(link.scenario())
    link.write()
    web_form.draw({"model": resolve.model_names, "gpu": resolve.accelerator_names})
    section.draw()
    for note in link.notes():
        st.warning(as_text(note))


def opened(**query):
    page = AppTest.from_function(script, default_timeout=60)
    page.query_params.update(query)
    return page.run()


def whole(**query):
    """The whole page, its answer with it."""
    page = AppTest.from_file(MAIN, default_timeout=60)
    page.query_params.update(query)
    return page.run()


def section(page):
    """The page with the section open, as a click on its title opens it."""
    page.session_state["saved_section"] = True
    return page.run()


def saving(page, name):
    section(page).text_input(key="saved_name").set_value(name).run()
    return page.button(key="saved_save").click().run()


def link_of(page):
    return {k: v[-1] if isinstance(v, list) else v for k, v in page.query_params.items()}


def plain(elements):
    return " ".join(e.value for e in elements).replace("\\", "").replace("\N{WORD JOINER}", "")


def mine():
    return saved_scenarios(open_store(), owner="local")


def test_the_section_is_closed_and_asks_nothing_of_the_store(tmp_path):
    page = opened(**QUICK)
    assert "saved_section" in page.session_state
    assert not [b for b in page.button if b.key == "saved_save"]
    assert not (tmp_path / "store.sqlite").exists()


def test_a_short_link_takes_overrides_and_is_read_as_it_was_typed():
    kept = saved.keep(Scenario.parse(QUICK), owner="ada", name="a", replace=False)
    page = opened(s=f" {kept.id.upper()} ", num_tokens="2e12", show_tab="x")
    assert not page.warning
    link = link_of(page)
    assert (link["num_tokens"], link["gpu"], link["show_tab"]) == ("2e12", QUICK["gpu"], "x")
    assert "s" not in link
    page = opened(s=kept.id, num_tokens="lots")
    assert "'lots' is not a number" in plain(page.warning)
    assert link_of(page)["gpu"] == QUICK["gpu"]


@pytest.mark.parametrize("id", ["", "nonsense", "a" * 16, "x" * 9000, "' OR 1=1 --", "\x00"])
def test_a_short_link_to_nothing_is_one_sentence_and_the_first_page(id):
    page = opened(s=id)
    assert not page.exception
    (note,) = [w.value for w in page.warning]
    assert "is of no scenario on this server" in note
    assert len(note) < 300
    assert link_of(page) == link_of(opened())


def test_a_taken_name_is_replaced_only_by_the_button_that_says_so():
    page = section(opened(**QUICK))
    page.text_input(key="saved_name").set_value("a").run()
    first = saved.keep(Scenario.parse(QUICK), owner="local", name="a", replace=False)
    page.button(key="saved_save").click().run()  # drawn as Save: somebody was faster
    assert "already a saved scenario 'a'" in plain(page.error)
    assert mine() == [first]
    assert page.button(key="saved_save").label == "Replace"
    page.text_input(key="form_num_tokens").set_value("3T").run()
    page.button(key="saved_save").click().run()
    (kept,) = mine()
    assert (kept.id, saved.query_of(kept)["num_tokens"]) == (first.id, "3e12")


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_name_is_shown_as_text(name):
    page = saving(opened(**QUICK), name)
    (label,) = page.radio(key="saved_which").options
    assert label.replace("\\", "").replace("\N{WORD JOINER}", "") == name
    assert label != name  # something in each of them would be read as Markdown
    assert name in plain(page.success).replace("\\", "")


@pytest.mark.parametrize("name", ["", "a\tb"])
def test_a_name_that_cannot_be_is_a_sentence(name):
    page = saving(opened(**QUICK), name)
    assert "1 to 200 printable characters" in plain(page.error)
    assert mine() == []


# --- a store that cannot be used -----------------------------------------------------------------


def test_a_locked_store_is_a_sentence_and_the_page_stands(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "BUSY_S", 0.1)
    saved.keep(Scenario.parse(QUICK), owner="local", name="a", replace=False)
    other = sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        page = saving(opened(**QUICK), "b")
        assert "another process writes to it" in plain(page.error)
    finally:
        other.close()
    assert [s.name for s in mine()] == ["a"]
    assert not page.exception


@pytest.mark.parametrize(
    "url",
    ["nonsense", "sqlite:////dev/null/store.sqlite", "postgresql://ada:s3cret@127.0.0.1:1/runcast"],
)
def test_without_a_store_a_short_link_is_a_sentence_and_the_page_stands(monkeypatch, url):
    monkeypatch.setenv("RUNCAST_DATABASE_URL", url)
    page = whole(s="a" * 16, **QUICK)
    assert not page.exception
    assert len(page.metric) == 4
    notes = plain(page.warning)
    assert "The short link could not be opened: " in notes
    page.session_state["saved_section"] = True
    notes = plain(page.run().warning)
    assert notes.count("RUNCAST_DATABASE_URL is no address") + notes.count(" cannot be ") == 2
    assert "s3cret" not in notes
    assert link_of(page)["gpu"] == QUICK["gpu"]


# --- what a short link is not --------------------------------------------------------------------


def test_the_key_of_a_short_link_is_no_field_of_a_scenario(run, tmp_path):
    assert saved.SHORT not in Scenario.model_fields
    _, notes = Scenario.from_query({"s": "a" * 16})
    assert "is not a field of a scenario" in notes[0]
    file = tmp_path / "scenario.yaml"
    file.write_text("v: 1\ns: aaaaaaaaaaaaaaaa\n")
    status, _, said = run("plan", "--scenario", file)
    assert (status, "s='aaaaaaaaaaaaaaaa' is not a field" in said) == (2, True)


def test_a_saved_query_never_leads_to_another_short_link():
    save_scenario(open_store(), owner="ada", name="b", query="s=" + "b" * 16 + "&num_tokens=2e12")
    (kept,) = saved_scenarios(open_store(), owner="ada")
    query, said = saved.expanded({"s": [kept.id]})
    assert (query, said) == ({"num_tokens": ["2e12"]}, [])


def test_a_price_book_is_in_it_by_name_only():
    kept = saved.keep(Scenario.parse({"price_book": "acme"}), owner="a", name="b", replace=False)
    assert set(parse_qs(kept.query)) == {"v", "price_book", "made", "prices"}
    assert saved.query_of(kept)["price_book"] == "acme"

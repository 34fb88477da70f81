"""The version that made a link: written, read, compared, and without a say in any answer."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.forecast import answer as forecast_answer
from app.forecast import resolve
from app.launch import job as launch_job
from app.plan import as_json as plan_json
from app.saved import saved
from app.scenario import age as scenario_age
from app.scenario import link_query
from app.scenario.link import parse, query_of
from app.scenario.version import made_with
from app.web import answers
from core.scenario import Scenario
from core.scenario.types import MOST_VERSION_CHARS
from pricing.store.opening import open_store
from pricing.store.saved import save_scenario
from tests.made_up import plans as made_up
from tests.support.golden_links import FOLDER, differing, opened, rows_of

# A search of a few layouts.
SMALL = {
    "num_gpus": "8", "gpu": "H100-80GB-SXM", "cloud": "aws", "tp": "8", "pp": "1",
    "sharding": "zero1", "recompute": "full", "micro_batch_size": "1", "stack": "generic",
}  # fmt: skip
versions = st.from_regex(
    r"[0-9]{1,3}(\.[0-9]{1,3}){0,3}((a|b|rc)[0-9])?(\.post[0-9])?(\.dev[0-9])?", fullmatch=True
)


@pytest.fixture
def here(monkeypatch, tmp_path):
    """Pretend that a version is installed, with a table of changes of (since, reason)."""

    def pretend(version, *changes):
        table = tmp_path / f"{version}.csv"
        rows = [f'0.1.0,some link,usd,1,2,{since},"{why}",abcdef0' for since, why in changes]
        header = ",".join(scenario_age.Change.__slots__)
        table.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
        monkeypatch.setattr(scenario_age, "TABLE", table)
        monkeypatch.setattr(scenario_age, "installed", lambda: version)

    return pretend


def parsed(**query):
    return parse({n: [v] for n, v in query.items()}, resolve.resolve, "beef")


# --- what a link says of the version that made it ------------------------------------------------


def test_a_link_without_a_version_opens_without_a_note(here):
    here("0.3.0", ("0.2.0", "A number moved."))
    scenario, notes = parsed(num_tokens="1e12")
    assert (scenario.made, notes) == ("0.3.0", [])


def test_a_link_of_this_version_opens_without_a_note(here):
    here("0.3.0", ("0.3.0", "A number moved."))
    for same in ("0.3.0", "0.3"):
        scenario, notes = parsed(made=same)
        assert (scenario.made, notes) == ("0.3.0", [])


def test_an_older_link_is_told_what_changed_since_then_and_until_here(here):
    here(
        "0.10.0",
        ("0.1.1", "Before it."), ("0.2.0", "In its own version."), ("0.3.0", "First."),
        ("0.10.0", "Second, as a number later than 0.9."), ("0.9.0", "First."),
        ("0.11.0", "Not here yet."),
    )  # fmt: skip
    scenario, notes = parsed(made="0.2.0")
    assert scenario.made == "0.10.0"
    assert notes == [
        "This link was made with Runcast 0.2.0, here is 0.10.0. Since then: First. Second, as a "
        "number later than 0.9."
    ]


def test_without_an_installed_version_nothing_is_compared_or_written(here):
    here("")
    scenario, notes = parsed(made="0.1.0")
    assert (scenario.made, notes) == ("", [])
    assert "made" not in link_query.link_query(Scenario(made="0.1.0"), "beef")


@pytest.mark.parametrize(
    "junk",
    ["zzz", "0.1.0 ", "0.1.0\n", "v0.1.0", "1.0-1", "1.", "0.1.0+mine", "-1", "1e999", "0,1",
     "\u0661.\u0662", "<script>alert(1)</script>", "1." * 20 + "1", "9" * 33],
)  # fmt: skip
def test_what_is_no_version_is_ignored_with_one_note(here, junk):
    here("0.3.0")
    scenario, notes = parsed(made=junk)
    assert scenario.made == "0.3.0"
    assert len(notes) == 1
    assert notes[0].startswith("Ignored from the link: made: ")
    assert "is not a version like 0.1.0" in notes[0]


@given(versions, versions)
def test_every_version_is_read_and_two_are_newer_one_way_only(one, two):
    scenario, notes = Scenario.from_query({"made": one})
    if len(one) > MOST_VERSION_CHARS:
        assert notes
        return
    assert (scenario.made, notes) == (one, [])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scenario_age, "installed", lambda: two)
        there = scenario_age.since(scenario, "This link")
        patch.setattr(scenario_age, "installed", lambda: one)
        back = scenario_age.since(Scenario(made=two), "This link")
    assert len(there) == len(back) <= 1
    assert sum("newer" in note for note in (*there, *back)) == len(there)


def test_the_installed_version_is_one_that_a_link_can_carry(monkeypatch):
    assert scenario_age.installed() == Scenario(made=scenario_age.installed()).made != ""
    for installed, carried in (
        ("0.2.0rc1+mine", "0.2.0rc1"), ("1.0-1", "1.0.post1"), ("", ""), ("unknown", ""),
        ("1." * 40 + "1", ""),
    ):  # fmt: skip
        monkeypatch.setattr(scenario_age, "version", lambda installed=installed: installed)
        assert scenario_age.installed.__wrapped__() == carried
        assert Scenario(made=carried).made == carried


# --- every link that is written carries it -------------------------------------------------------


def test_every_link_that_is_written_carries_the_installed_version(here):
    here("0.3.0")
    scenario = Scenario.parse({**SMALL, "made": "0.1.0"})
    answer = made_up.answer(made_up.plan())
    for query in (
        link_query.link_query(scenario, "beef"),
        plan_json.plan_json(scenario, answer, with_inputs=False)["link"],
        launch_job.header_of(scenario, made_up.plan()).link.removeprefix("?"),
    ):
        assert dict(parse_qsl(query))["made"] == "0.3.0", query


def test_a_saved_scenario_carries_it_and_an_older_one_says_what_changed(
    here, tmp_path, monkeypatch
):
    monkeypatch.setenv("RUNCAST_DATABASE_URL", f"sqlite:///{tmp_path}/store.sqlite")
    here("0.3.0", ("0.3.0", "A number moved."))
    kept = saved.keep(Scenario.parse(SMALL), owner="ann", name="a", replace=False)
    assert saved.query_of(kept)["made"] == "0.3.0"
    assert saved.opened(kept)[1] == []
    older = save_scenario(open_store(), owner="ann", name="b", query="v=1&made=0.2.0")
    scenario, (note,) = saved.opened(older)
    assert scenario.made == "0.3.0"
    assert note.endswith("Since then: A number moved.")


def test_the_command_line_writes_it_and_says_what_changed(here, run, tmp_path, monkeypatch):
    monkeypatch.setattr("app.forecast.answer.answer", lambda scenario, **_: made_up.answer())
    here("0.3.0", ("0.3.0", "A number moved."))
    path = tmp_path / "run.yaml"
    query = "v=1&" + "&".join(f"{n}={v}" for n, v in SMALL.items())
    status, out, err = run("plan", "--link", query, "--save", path, "--json")
    assert (status, err) == (0, "")
    assert re.search(r"&made=0\.3\.0&prices=\w+\"", out)
    assert run("plan", "--scenario", path, "--json")[::2] == (0, "")
    said = "was made with Runcast 0.2.0, here is 0.3.0. Since then: A number moved."
    path.write_text(path.read_text().replace("made: 0.3.0", "made: 0.2.0"))
    assert run("plan", "--scenario", path, "--json") == (0, out, f"The scenario file {said}\n")
    assert run("plan", "--link", f"{query}&made=0.2.0", "--json") == (0, out, f"The link {said}\n")


def script():
    """What a page does with its address, and a file that another version wrote."""
    import streamlit as st

    from app.forecast import resolve
    from app.web import link
    from core.scenario import Scenario

    link.take_over(resolve.resolve, resolve.current_prices())
    link.write()
    st.button("file", on_click=lambda: link.edit(Scenario(made="0.2.0"), ["Read."]))
    for note in link.notes():
        st.warning(note)


# --- and it has no say in any answer -------------------------------------------------------------


@given(versions)
def test_the_version_is_no_part_of_the_key_of_an_answer(made):
    made = made[:MOST_VERSION_CHARS].rstrip(".")
    scenario = Scenario.parse(SMALL)
    with_it = scenario.model_copy(update={"made": made})
    assert answers.key_of(with_it) == answers.key_of(scenario)
    assert query_of(with_it) == query_of(scenario)
    other = scenario.model_copy(update={"prices": "beef"})  # the control: prices are
    assert answers.key_of(other) != answers.key_of(scenario)


def test_the_version_never_changes_an_answer():
    plain = Scenario.parse({**SMALL, "prices": resolve.current_prices()})
    wanted = plan_json.plan_json(plain, forecast_answer.answer(plain, top=2))
    assert wanted["plans"]
    for made in ("0.0.1", scenario_age.installed(), "99.0"):
        scenario = plain.model_copy(update={"made": made})
        found = plan_json.plan_json(scenario, forecast_answer.answer(scenario, top=2))
        assert found.pop("scenario") == wanted["scenario"] | {"made": made}
        assert found == {n: v for n, v in wanted.items() if n != "scenario"}


def test_a_golden_link_opens_to_the_same_numbers_whoever_made_it(here):
    here("0.9.0")
    query = rows_of(FOLDER / "0.1.0.csv")[0]["link"]
    found = differing(opened(query), opened(f"{query}&made=0.1.0"))
    assert found == {"num_notes": ("0", "1")}


def test_the_table_of_changes_is_no_table_that_a_forecast_reads(tmp_path, monkeypatch):
    """A row of it must not make every sweep that is half done one of other tables."""
    from app.scenario import version as module

    folder = tmp_path / "app/scenario"
    folder.mkdir(parents=True)
    (folder / "facts.csv").write_text("a\n")
    monkeypatch.setattr(module, "__file__", str(folder / "version.py"))
    tables = [made_with.__wrapped__()["tables"]]
    (folder / "link_changes.csv").write_text("b\n")
    tables.append(made_with.__wrapped__()["tables"])
    (folder / "facts.csv").write_text("c\n")
    tables.append(made_with.__wrapped__()["tables"])
    assert tables[0] == tables[1] != tables[2]

"""Published advice: every published row has our answer, on the page, in the terminal, as JSON."""

import json
import re
from urllib.parse import parse_qsl

import pytest
from playwright.sync_api import expect
from streamlit.testing.v1 import AppTest

from app import cli
from app.forecast import resolve
from app.guides.document import counts
from core.errors import FactError
from core.scenario import Scenario
from hardware.decision_tables import (
    DECISIONS_CSV,
    TABLES,
    Advice,
    decision_tables,
    load_decision_tables,
)


@pytest.fixture(scope="module")
def rows():
    return {row.id: row for row in decision_tables()}


# --- every row ------------------------------------------------------------------------------------


# --- links ----------------------------------------------------------------------------------------


def test_every_link_opens_the_case(rows):
    for name, d in rows.items():
        assert bool(d.link) is (d.kind not in ("memory", "none")), name
        scenario, notes = Scenario.from_query(dict(parse_qsl(d.link)))
        assert not notes, name
        if d.link:
            assert resolve.resolve_strict(scenario) == scenario, name
            assert scenario.rank_by == "time"
            for field, value in d.scenario.items():
                if field not in ("task", "stack"):
                    given = Scenario.parse({field: value})
                    assert getattr(scenario, field) == getattr(given, field), name


# --- the table ------------------------------------------------------------------------------------


HEAD = DECISIONS_CSV.read_text().splitlines()[0]
GOOD = dict(zip(
    HEAD.split(","),
    ["x", "A", "a case", "DDP", "strategy", "model=llama3.2-1b&num_gpus=8", "ddp", "", "", "", "",
     "", "", "a guide", "2026", "a job", "DDP", "", "It fits.|It is fast.", "agrees", "", "", "",
     "0.1.0", "2026-11-28"],
    strict=True,
))  # fmt: skip


def written(tmp_path, *rows):
    path = tmp_path / "decision_tables.csv"
    path.write_text("\n".join([HEAD, *(",".join(r.values()) for r in rows)]) + "\n")
    return path


def test_a_good_row_is_read(tmp_path):
    (advice,) = load_decision_tables(written(tmp_path, GOOD))
    assert isinstance(advice, Advice)
    assert advice.ways == ("ddp",)
    assert advice.reasons == ("It fits.", "It is fast.")
    assert advice.scenario == dict(parse_qsl(GOOD["scenario"]))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"table": "Z"}, "is of table 'Z'"),
        ({"kind": "guess"}, "kind 'guess'"),
        ({"ways": ""}, "x has no ways"),
        ({"scenario": ""}, "x has no scenario"),
        ({"kind": "none"}, "x has no note"),
        ({"kind": "memory"}, "x has no claims, gb_per_billion, gb_more"),
        ({"claims": "no_such"}, "names the claim no_such"),
        ({"gb_per_billion": "many"}, "could not convert"),
        ({"scenario": "model"}, "x: bad query field"),
        ({"source": ""}, "x has no source"),
        ({"source_date": "soon"}, "source date"),
        ({"id": ""}, "is empty or given twice"),
        ({"recommends": ""}, "x has no recommends"),
        ({"verdict": "perhaps"}, "has the verdict 'perhaps'"),
        ({"computed": "today"}, "of 'today'"),
    ],
)
def test_a_bad_row_is_refused_with_its_line(tmp_path, change, says):
    with pytest.raises(FactError, match=r"decision_tables.csv:2.*" + re.escape(says)):
        load_decision_tables(written(tmp_path, {**GOOD, **change}))


def test_a_row_given_twice_is_refused(tmp_path):
    with pytest.raises(FactError, match=r"decision_tables.csv:3: the id 'x'"):
        load_decision_tables(written(tmp_path, GOOD, GOOD))


# --- the command and the page ---------------------------------------------------------------------


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        cli.main(["advice", *arguments])
    out, err = capsys.readouterr()
    return end.value.code, out, err


def test_the_command_prints_every_row(capsys, rows):
    code, out, err = run(capsys)
    assert (code, err) == (0, "")
    told = " ".join(out.split())
    for letter, title in TABLES.items():
        assert f"{letter}. {title}" in told
    for d in rows.values():
        assert f"{d.case}: {d.advice} ({d.verdict})" in told
        assert d.disagreement in told


def test_the_json_holds_what_the_page_shows(capsys, rows):
    code, out, _ = run(capsys, "--table", "c,e", "--json")
    document = json.loads(out)
    assert code == 0
    assert [t["table"] for t in document["tables"]] == ["C", "E"]
    printed = {r["id"]: r for t in document["tables"] for r in t["rows"]}
    assert set(printed) == {n for n, d in rows.items() if d.table in "CE"}
    for name, row in printed.items():
        assert row["recommends"] == rows[name].recommends
        assert row["verdict"] == rows[name].verdict.replace(" ", "_")
        assert row["reasons"] == list(rows[name].reasons)
    assert sum(document["verdicts"].values()) == len(printed)


def test_the_former_name_of_the_command_still_works(capsys):
    with pytest.raises(SystemExit):
        cli.main(["decide", "--json"])
    assert capsys.readouterr().out == run(capsys, "--json")[1]


def test_every_json_key_is_documented(capsys, project_files):
    from tests.support.documented_keys import paths

    (document,) = [p for p in project_files if p.as_posix().endswith("docs/decision-tables.md")]
    keys = set(paths(json.loads(run(capsys, "--json")[1])))
    listed = set(re.findall(r"^\| `([^`]+)` \|", document.read_text(), re.MULTILINE))
    assert keys == listed


@pytest.mark.parametrize(("table", "says"), [("Z", "'Z' is not one of A (by model"),
                                             (" , ", "names no table")])  # fmt: skip
def test_an_unknown_table_is_one_sentence(capsys, table, says):
    code, out, err = run(capsys, "--table", table)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def script():
    from app.guides import page as guides_page

    guides_page.draw()


@pytest.fixture(scope="module")
def page():
    """The page with every table chosen."""
    page = AppTest.from_function(script, default_timeout=60).run()
    assert [s.value for s in page.subheader] == [f"A. {TABLES['A']}"]
    return page.multiselect(key="decisions_table").set_value(list(TABLES)).run()


def plain(text):
    return text.replace("\\", "").replace("\N{WORD JOINER}", "")


def test_the_page_shows_every_row_and_its_disagreement(page, rows):
    assert not page.exception
    shown = plain("\n".join(e.value for e in page.markdown))
    for d in rows.values():
        assert d.advice in shown
        assert d.recommends in shown
        assert d.disagreement in shown
        assert all(r in shown for r in d.other_reasons)
    assert [int(m.value) for m in page.metric] == list(counts(rows.values()).values())


def test_the_page_is_filtered_by_table_and_verdict(rows):
    page = AppTest.from_function(script, default_timeout=60).run()
    page.multiselect(key="decisions_table").set_value(["D"]).run()
    assert [s.value for s in page.subheader] == [f"D. {TABLES['D']}"]
    page.multiselect(key="decisions_verdict").set_value(["disagrees"]).run()
    shown = plain("\n".join(e.value for e in page.markdown))
    kept = [d for d in rows.values() if d.table == "D"]
    assert {d.verdict for d in kept} > {"disagrees"}
    for d in kept:
        if d.disagreement:
            assert (d.disagreement in shown) is (d.verdict == "disagrees")
    assert not page.exception
    page.multiselect(key="decisions_table").set_value([]).run()
    assert not page.subheader
    assert not page.exception


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1440])
def test_the_page_fits_a_screen_and_its_links_lead_to_plans(new_user, width):
    user = new_user(viewport={"width": width, "height": 900})
    user.open("/decisions")
    expect(user.page.get_by_role("heading", name=f"A. {TABLES['A']}")).to_be_visible()
    assert user.page.get_by_test_id("stMain").evaluate("m => m.scrollWidth <= m.clientWidth + 1")
    address = user.page.get_by_role("link", name="Open as a plan").first.get_attribute("href")
    assert address.startswith(f"{user.base_url}/?v=1&")
    user.page.goto(address)
    user.settle()
    expect(user.page.get_by_text("Llama 3.2 1B").first).to_be_visible()

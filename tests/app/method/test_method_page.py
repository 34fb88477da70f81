"""The Method page: everything it promises is on it, in words a person can read."""

import datetime as dt
import re

import pytest
from streamlit.testing.v1 import AppTest

from app.document import format as fmt
from app.method import tables as method_tables
from app.method.page import TOPIC
from hardware.claims import claims, formulas, guide_cases, modelled, not_modelled
from pricing import offers as prices


def script():
    from app.method import page as method_page

    method_page.draw()


@pytest.fixture(scope="module")
def page():
    """The page with every part opened."""
    page = AppTest.from_function(script, default_timeout=60)
    for n in range(len(method_tables.by_topic(claims()))):
        page.session_state[f"{TOPIC}{n}"] = True
    return page.run()


def test_a_part_that_is_closed_is_not_sent():
    closed = AppTest.from_function(script, default_timeout=60).run()
    arithmetic = claims()[0].arithmetic
    assert arithmetic not in text(closed)
    assert len(closed.expander) == len(method_tables.by_topic(claims()))


def text(page):
    shown = "\n".join(e.value for e in (*page.markdown, *page.caption))
    return shown.replace("\\", "").replace("\N{WORD JOINER}", "")


def frames(page):
    return [e.value.reset_index() for e in (*page.dataframe, *page.table)]


def plain(cell):
    return str(cell).replace("\\", "").replace("\N{WORD JOINER}", "")


def test_the_page_stands(page):
    assert not page.exception
    assert not page.error
    assert page.subheader[0].value == "How a forecast is made"


def test_every_claim_is_shown_with_its_arithmetic_and_reason(page):
    shown = text(page)
    for c in claims():
        for part in (c.statement, c.arithmetic, c.why, c.formula):
            assert part in shown, c.id
    table = next(f for f in frames(page) if "Verdict" in f)
    assert len(table) == len(claims())
    assert set(table["Verdict"]) >= {"reproduced", "reproduced as a limit", "refuted", "input"}


def test_the_claims_are_grouped_and_each_group_counts_its_verdicts(page):
    checked = claims()
    groups = method_tables.by_topic(checked)
    assert [c.id for group in groups.values() for c in group] == [c.id for c in checked]
    assert 10 < len(groups) < 25
    labels = [e.label for e in page.expander]
    for title, group in groups.items():
        assert sum(map(int, re.findall(r"\b(\d+) (?:rep|ref|inp)", title))) == len(group)
        assert any(label.startswith(title) for label in labels)


def test_a_statement_is_short_enough_for_its_column():
    for c in claims():
        assert len(c.statement) <= 85, c.id


def test_what_is_refuted_has_its_reason_beside_it():
    checked = claims()
    table = method_tables.refuted(checked)
    assert len(table.rows) == sum(c.verdict == "refuted" for c in checked) > 0
    assert all(why.endswith(".") for *_, why in table.rows)


def test_where_and_when_a_figure_is_printed_is_shown(page):
    shown = text(page)
    for c in claims():
        source, date = c.source, c.source_date
        assert (source if source.endswith(date) else f"{source} ({date})") in shown


def test_our_forecasts_stand_beside_the_printed_figures(page):
    table = next(f for f in frames(page) if "Our forecast" in f)
    shown = [tuple(map(plain, row)) for row in table.iloc[:, -3:].values.tolist()]
    assert shown == [(c.case, c.printed, c.forecast) for c in guide_cases()]
    assert f"Computed with Runcast {guide_cases()[0].computed_with} on" in text(page)


def test_everything_that_is_not_modelled_is_shown_with_its_reason(page):
    table = next(f for f in frames(page) if {"Name", "Why"} <= set(f))
    shown = [[plain(x) for x in row] for row in table[["Name", "Why"]].values.tolist()]
    assert shown == [[m.name, m.why] for m in not_modelled()]
    assert any("DPO" in m.name for m in not_modelled())


def test_everything_that_is_modelled_names_its_field(page):
    table = next(f for f in frames(page) if "Set by" in f)
    assert len(table) == len(modelled())
    assert "schedule=zero_bubble" in set(table["Set by"])


def test_the_accountings_are_16_18_and_20(page):
    table = next(f for f in frames(page) if "Bytes per parameter" in f)
    assert sorted({float(x) for x in table["Bytes per parameter"]}) == [16, 18, 20]


def test_every_formula_names_a_module_that_exists_and_a_source(page, project_files):
    names = {p.as_posix() for p in project_files}
    for f in formulas():
        assert any(n.endswith("/" + f.module) for n in names), f.module
        assert f.source


def test_the_data_has_an_age(page):
    lines = method_tables.data_lines(dt.date(2026, 11, 21))
    assert prices.snapshot().id in lines[0]
    assert f"(newest {fmt.age(prices.snapshot().newest, dt.date(2026, 11, 21))})" in lines[0]
    assert all(line.split(" (")[0] in text(page) for line in lines)

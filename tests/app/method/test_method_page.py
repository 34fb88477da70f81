"""The Method page: everything it promises is on it, in words a person can read."""

import pytest
from streamlit.testing.v1 import AppTest

from app.method import tables as method_tables
from app.method.page import TOPIC
from hardware.claims import claims, formulas, guide_cases


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


def test_every_claim_is_shown_with_its_arithmetic_and_reason(page):
    shown = text(page)
    for c in claims():
        for part in (c.statement, c.arithmetic, c.why, c.formula):
            assert part in shown, c.id
    table = next(f for f in frames(page) if "Verdict" in f)
    assert len(table) == len(claims())
    assert set(table["Verdict"]) >= {"reproduced", "reproduced as a limit", "refuted", "input"}


def test_our_forecasts_stand_beside_the_printed_figures(page):
    table = next(f for f in frames(page) if "Our forecast" in f)
    shown = [tuple(map(plain, row)) for row in table.iloc[:, -3:].values.tolist()]
    assert shown == [(c.case, c.printed, c.forecast) for c in guide_cases()]
    assert f"Computed with Runcast {guide_cases()[0].computed_with} on" in text(page)


def test_every_formula_names_a_module_that_exists_and_a_source(page, project_files):
    names = {p.as_posix() for p in project_files}
    for f in formulas():
        assert any(n.endswith("/" + f.module) for n in names), f.module
        assert f.source

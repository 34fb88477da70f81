"""The Method page: everything it promises is on it, in words a person can read."""

import datetime as dt
import re

import pytest
from streamlit.testing.v1 import AppTest

from app.document import format as fmt
from app.guides import claims as guides_claims
from app.guides import fixes as claimed_fixes
from app.guides import forecasts
from app.method import tables as method_tables
from app.method.page import TOPIC
from hardware.claims import formulas, modelled, not_modelled
from pricing import offers as prices


def script():
    from app.method import page as method_page

    method_page.draw()


@pytest.fixture(scope="module")
def page():
    """The page with every part opened."""
    page = AppTest.from_function(script, default_timeout=60)
    for n in range(len(method_tables.by_topic(guides_claims.all_checked()))):
        page.session_state[f"{TOPIC}{n}"] = True
    return page.run()


def test_a_part_that_is_closed_is_not_sent():
    closed = AppTest.from_function(script, default_timeout=60).run()
    arithmetic = guides_claims.all_checked()[0].ours.arithmetic
    assert arithmetic not in text(closed)
    assert len(closed.expander) == len(method_tables.by_topic(guides_claims.all_checked()))


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
    for c in guides_claims.all_checked():
        for part in (c.claim.statement, c.ours.arithmetic, c.claim.why, c.claim.formula):
            assert part in shown, c.claim.id
    table = next(f for f in frames(page) if "Verdict" in f)
    assert len(table) == len(guides_claims.all_checked())
    assert set(table["Verdict"]) >= {"reproduced", "reproduced as a limit", "refuted", "input"}


def test_the_claims_are_grouped_and_each_group_counts_its_verdicts(page):
    checked = guides_claims.all_checked()
    groups = method_tables.by_topic(checked)
    assert [c.claim.id for group in groups.values() for c in group] == [c.claim.id for c in checked]
    assert 10 < len(groups) < 25
    labels = [e.label for e in page.expander]
    for title, group in groups.items():
        assert sum(map(int, re.findall(r"\b(\d+) (?:rep|ref|inp)", title))) == len(group)
        assert any(label.startswith(title) for label in labels)


def test_a_statement_is_short_enough_for_its_column():
    for c in guides_claims.all_checked():
        assert len(c.claim.statement) <= 85, c.claim.id


def test_what_is_refuted_has_its_reason_beside_it():
    checked = guides_claims.all_checked()
    table = method_tables.refuted(checked)
    assert len(table.rows) == sum(c.verdict == "refuted" for c in checked) > 0
    assert all(why.endswith(".") for *_, why in table.rows)


def test_where_and_when_a_figure_is_printed_is_shown(page):
    shown = text(page)
    for c in guides_claims.all_checked():
        source, date = c.claim.source, c.claim.source_date
        assert (source if source.endswith(date) else f"{source} ({date})") in shown


def test_what_makes_70b_fit_is_ranked_on_the_page(page):
    table = next(f for f in frames(page) if "Our forecast" in f)
    cases = [plain(x) for x in table["Case"]]
    fixes = claimed_fixes.fixes()
    assert cases[-len(fixes) :] == [
        f"70B on 8 H100, {f'fix {n}' if f.plan else 'no fix'}: {f.change}"
        for n, f in enumerate(fixes, start=1)
    ]


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


def test_our_forecast_stands_beside_the_printed_one():
    found = {f.case: f for f in forecasts.forecasts()}
    assert found["70B on 8 H100, states on the GPUs"].plan is None
    assert "GiB" in found["70B on 8 H100, states on the GPUs"].text
    for case in ("7B QLoRA on one 16 GB card", "13B QLoRA on one 24 GB card"):
        assert found[case].plan is not None
    bf16, fp8 = (found[f"70B on 256 H100, {p}, 1T tokens"].plan for p in ("bf16", "fp8"))
    assert bf16.wall_clock_hours > fp8.wall_clock_hours > 25 * 24
    offloaded = found["70B on 8 H100, optimizer on the host"].plan
    assert offloaded.mfu < 0.45


def test_the_data_has_an_age(page):
    lines = method_tables.data_lines(dt.date(2026, 11, 21))
    assert prices.snapshot().id in lines[0]
    assert f"(newest {fmt.age(prices.snapshot().newest, dt.date(2026, 11, 21))})" in lines[0]
    assert all(line.split(" (")[0] in text(page) for line in lines)

"""The Compare page without a browser: its list, its heatmap, its pins and its links."""

import datetime as dt
import io
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from app.document import chart_files, vocabulary
from app.forecast import answer as forecast_answer
from app.forecast import price_book, resolve
from app.forecast.excluded import SENTENCES
from app.options import charts as options_charts
from app.options import document as plans
from app.options import heatmap as heat
from app.options.document import Filters
from app.plan import products
from app.plan import words as plan_words
from app.scenario import fields as scenario_fields
from app.scenario.link import query_of
from app.web import answers
from core.scenario import Scenario
from core.scenario.list_fields import LIST
from core.scenario.types import MOST_PINNED
from core.search.plan import Answer, Exclusion

JOB = {
    "model": "llama3.1-8b", "num_tokens": "100B", "gpu": "H100-80GB-SXM,A100-80GB-SXM",
    "cloud": "aws,azure,lambda", "num_gpus": "32,64", "deadline_days": "14",
}  # fmt: skip
EVERY_FILTER = {
    "list_gpu": "A100-80GB-SXM", "list_cloud": "aws", "list_purchase": "spot",
    "list_min_gpus": "8", "list_max_gpus": "64", "list_max_usd": "1e6", "list_max_days": "9",
    "list_within_limits": "1", "list_frontier": "1", "list_order": "mfu", "list_unit": "mtoken",
    "list_measure": "days",
}  # fmt: skip
THEMES = ("light", "dark")


@pytest.fixture(scope="module")
def scenario():
    return resolve.resolve_strict(Scenario.parse(JOB))


@pytest.fixture(scope="module")
def answer(scenario):
    return forecast_answer.answer(scenario, top=5)


@pytest.fixture(scope="module")
def every(scenario, answer):
    return plans.every(scenario, answer)


# --- the list ------------------------------------------------------------------------------------


def test_the_list_has_every_ranked_plan_and_says_what_the_plan_says(every, answer):
    assert len(every) == answer.num_plans > len(answer.plans)
    assert every["#"].tolist() == list(range(1, answer.num_plans + 1))
    for plan in answer.plans:
        row = every.set_index(plans.ID).loc[plan.id]
        assert row["Cost (USD)"] == plan.usd.p50
        assert row["MFU"] == plan.mfu
        assert row["Tokens/s"] == plan.tokens_per_s.p50
        assert row["GPU-hours"] == plan.gpu_hours
        assert row["Price (USD per GPU-hour)"] == pytest.approx(plan.usd_per_gpu_hour)
        assert row["Peak memory (GiB)"] * 2**30 == pytest.approx(sum(plan.memory_bytes.values()))
        assert row[plans.OOM] == plan.probability_oom
        assert row["With failures (days)"] > row["Time (days)"] > 0
        assert row[plans.EXPECTED_COST] == plan.expected_usd
        assert row[plans.EXPECTED_TIME] == pytest.approx(plan.expected_hours / 24)
    mtokens = every[plans.MTOKEN] * 100e9 / 1e6
    assert mtokens.to_numpy() == pytest.approx(every[plans.EXPECTED_COST].to_numpy(), rel=1e-4)


@pytest.mark.parametrize(
    ("filters", "column", "holds"),
    [
        (Filters(gpu=("A100-80GB-SXM",)), "GPU", lambda v: v == "A100-80GB-SXM"),
        (Filters(cloud=("aws", "azure")), "Cloud", lambda v: v in ("aws", "azure")),
        (Filters(purchase=("on demand",)), "Purchase", lambda v: v == "on demand"),
        (Filters(min_gpus=64), "GPUs", lambda v: v >= 64),
        (Filters(max_gpus=32), "GPUs", lambda v: v <= 32),
        (Filters(max_usd=30_000), plans.EXPECTED_COST, lambda v: v <= 30_000),
        (Filters(max_days=7), plans.EXPECTED_TIME, lambda v: v <= 7),
        (Filters(within_limits=True), "Within limits", lambda v: v == "yes"),
        (Filters(frontier=True), "Fastest or cheapest", lambda v: v == "yes"),
    ],
)
def test_a_filter_keeps_all_rows_that_it_is_about_and_no_other(every, filters, column, holds):
    kept = plans.narrowed(every, filters)
    expected = [plan_id for plan_id, v in zip(every[plans.ID], every[column], strict=True)
                if holds(v)]  # fmt: skip
    assert kept[plans.ID].tolist() == expected
    assert expected
    assert filters.num_given == 1


def test_a_plan_without_a_price_is_within_no_budget(every):
    free = every.assign(**{plans.EXPECTED_COST: np.nan})
    assert plans.narrowed(free, Filters(max_usd=1e12)).empty
    assert len(plans.narrowed(free, Filters())) == len(every)


@pytest.mark.parametrize("order", plans.ORDERS)
def test_an_order_puts_the_best_first_and_what_has_no_figure_last(every, order):
    _, column, more_first = plans.ORDERS[order]
    some = every.copy()
    if order != "rank" and column != "GPUs":
        some.loc[some.index[0], column] = np.nan
    found = plans.in_order(some, order)[column].to_numpy(dtype=float)
    known = found[np.isfinite(found)]
    assert (np.diff(known) <= 0).all() if more_first else (np.diff(known) >= 0).all()
    assert np.isfinite(found[: len(known)]).all()


@pytest.mark.parametrize("unit", plans.UNITS)
def test_what_is_listed_is_bounded_and_in_one_unit(every, unit):
    many = pd.concat([every] * 40, ignore_index=True)
    shown = plans.listed(many, unit, has_limits=True)
    assert len(many) > len(shown) == plans.LISTED
    assert [c for c in shown.columns if c in plans.COST_IN.values()] == [plans.COST_IN[unit]]
    days = shown[plans.EXPECTED_TIME].iloc[0]
    assert days == pytest.approx(every[plans.EXPECTED_TIME].iloc[0], rel=1e-4)
    assert len(f"{days:.15g}") <= 7


def test_the_coverage_adds_up(answer):
    counts = {e.reason: e.count for e in answer.excluded}
    told = plan_words.coverage_sentence(answer)
    assert told.startswith(f"{answer.num_plans - counts.get('no_price', 0)} of ")
    made = Answer(
        plans=(), num_plans=10, points={}, num_candidates=1, nothing_fits=None,
        excluded=tuple(
            Exclusion(reason=r, count=n, sentence="")
            for r, n in (("no_price", 3), ("memory", 4), ("wasteful", 2), ("purchase", 5),
                         ("candidate_memory", 99))
        ),
    )  # fmt: skip
    assert plan_words.coverage_sentence(made) == (
        "7 of 16 options priced; 9 not: no price 3, does not fit 4, starved by the network 2."
    )
    assert "other purchase kinds 5" in plan_words.not_compared_sentence(made)


def test_the_file_has_every_row_and_every_column(every):
    table = pq.read_table(io.BytesIO(chart_files.parquet(every, "/?v=1")))
    assert table.num_rows == len(every)
    assert {plans.ID, plans.MTOKEN, "Layout", "Goodput"} <= set(table.column_names)


# --- the heatmap ---------------------------------------------------------------------------------


def cell(table, gpu, cloud):
    return table[(table["gpu"] == gpu) & (table["cloud"] == cloud)].iloc[0]


@pytest.mark.parametrize("measure", heat.MEASURES)
def test_a_cell_has_the_best_figure_of_its_pair(answer, every, measure):
    column, unit = heat.MEASURES[measure][1:]
    table = heat.table(answer, every, every, measure)
    for (gpu, cloud), rows in every.groupby(["GPU", "Cloud"]):
        assert cell(table, gpu, cloud)[unit] == rows[column].min()
        best = rows.set_index(plans.ID).loc[cell(table, gpu, cloud)["plan"]]
        assert best[column] == rows[column].min()


def test_a_cell_without_a_number_says_why(answer, every):
    drawn = heat.drawn_of(answer, every, every, "usd").cells
    assert cell(drawn, "A100-80GB-SXM", "aws")["text"].startswith("$")
    kept = plans.narrowed(every, Filters(gpu=("H100-80GB-SXM",)))
    hidden = heat.drawn_of(answer, every, kept, "usd").cells
    assert cell(hidden, "A100-80GB-SXM", "aws")["text"] == heat.HIDDEN
    unpriced = every.assign(
        **{plans.EXPECTED_COST: every[plans.EXPECTED_COST].where(every["Cloud"] == "aws")}
    )
    assert cell(
        heat.drawn_of(answer, unpriced, unpriced, "usd").cells, "H100-80GB-SXM", "azure"
    )["text"] == heat.NO_PRICE  # fmt: skip
    absent = heat.table(answer, every, every, "usd")
    absent = absent[absent["best plan, or reason"] == heat.MARKS[heat.NOT_OFFERED]]
    pairs = {(m.offer.accelerator, m.offer.provider) for m in price_book.machines_of(Scenario())[0]}
    assert not {(r.gpu, r.cloud) for r in absent.itertuples()} & pairs


def test_a_cell_that_was_left_out_says_which_limit_it_met(answer, every):
    one = every[every["Cloud"] == "aws"]
    limits = {("H100-80GB-SXM", "azure"): {"memory": 2, "too_slow": 5, "purchase": 1}}
    left_out = replace(answer, left_out_at=limits)
    drawn = heat.drawn_of(left_out, one, one, "usd").cells
    said = "left out: too slow 5, does not fit 2, other purchase kinds 1"
    assert cell(drawn, "H100-80GB-SXM", "azure")["text"] == heat.NO_PLAN
    assert cell(drawn, "H100-80GB-SXM", "azure")["where"] == said
    table = heat.table(left_out, one, one, "usd")
    assert cell(table, "H100-80GB-SXM", "azure")["best plan, or reason"] == said
    assert "left out (most often: too slow 1)" in heat.marks_sentence(left_out, drawn)


def test_what_each_pair_lost_adds_up_to_what_all_lost(answer):
    found = forecast_answer.answer(
        resolve.resolve_strict(
            Scenario.parse(
                {**JOB, "num_gpus": "", "gpu": "A100-40GB-SXM,L4,V100-16GB", "cloud": ""}
            )
        ),
        top=1,
    )
    everywhere = Counter()
    for counts in found.left_out_at.values():
        everywhere.update(counts)
    counted = {e.reason: e.count for e in found.excluded}
    assert len(everywhere) > 2
    assert everywhere == {
        r: n
        for r, n in counted.items()
        if r not in ("no_price", "stacks") and not r.startswith("candidate_")
    }
    assert {r for counts in answer.left_out_at.values() for r in counts} <= {
        *vocabulary.NO_PLAN, *vocabulary.NO_OFFER
    }  # fmt: skip
    assert set(SENTENCES) == {*vocabulary.NO_PLAN, *vocabulary.NO_OFFER}


def test_the_axes_are_sorted_and_cut_and_it_is_said(answer, every):
    many = {(f"gpu {n:02d}", f"cloud {n:02d}"): {"memory": 1} for n in range(30)}
    everywhere = replace(answer, left_out_at=many)
    drawn = heat.drawn_of(everywhere, every, every, "usd")
    assert drawn.cells["gpu"].nunique() == heat.MOST_GPUS
    assert "the file has all" in drawn.sentence
    best = every.groupby("GPU")[plans.EXPECTED_COST].min().sort_values()
    assert list(drawn.cells["gpu"].unique())[: len(best)] == list(best.index)
    assert heat.drawn_of(answer, every, every.iloc[:0], "usd") is None


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def test_the_number_reads_on_every_colour():
    lights = [luminance(c) for c in options_charts.VIRIDIS]
    assert len(lights) == heat.LEVELS
    assert lights == sorted(lights, reverse=True)  # the order shows without colour, too
    for level, light in enumerate(lights):
        ink = 1.0 if level >= options_charts.WHITE_FROM else 0.0
        assert (max(light, ink) + 0.05) / (min(light, ink) + 0.05) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
def test_the_heatmap_is_drawn_as_a_file_too(answer, every, theme):
    drawn = heat.drawn_of(answer, every, every, "days")
    spec = options_charts.heatmap(drawn.cells, title="Time", theme=theme)
    svg = chart_files.svg(spec, theme=theme)
    for gpu in drawn.cells["gpu"].unique():
        assert f">{gpu}<" in svg
    for text in drawn.cells["text"]:
        assert f">{text}<" in svg


# --- the page ------------------------------------------------------------------------------------


def script(query):
    import json

    import streamlit as st

    from app.forecast import answer as forecast_answer
    from app.forecast import resolve
    from app.options import page as options_page
    from app.web import link
    from core.scenario import Scenario

    if "test_begun" not in st.session_state:
        st.session_state["test_begun"] = True
        link.edit(resolve.resolve(Scenario.from_query(query)[0])[0])
    scenario = link.scenario()
    st.code(",".join(scenario.pinned))
    st.code(json.dumps(scenario.to_query()))
    options_page.draw(scenario, forecast_answer.answer(scenario, top=5), {})


def opened(**given):
    values = {k: v for k, v in {**JOB, **given}.items() if v is not None}
    return AppTest.from_function(script, default_timeout=120, args=(values,)).run()


def pinned(page):
    text = page.code[0].value
    return text.split(",") if text else []


def plain(elements):
    return "\n".join(
        str(e.value).replace("\\", "").replace("\N{WORD JOINER}", "") for e in elements
    )


@pytest.fixture(scope="module")
def page():
    return opened()


def test_the_page_lists_every_product_and_says_how_much_is_priced(page, answer, every):
    assert not page.exception
    assert not page.warning
    assert "options priced" in page.markdown[0].value
    assert f"All {answer.num_plans} ranked plans" in plain(page.markdown)
    listed = page.dataframe[0].value
    assert not listed.duplicated(list(products.PRODUCT)).any()
    assert len(listed) == len(every.drop_duplicates(list(products.PRODUCT)))
    assert "Pin two to four plans" in page.info[0].value


def asked(page):
    """What the link says beyond the scenario that was opened."""
    query = json.loads(page.code[1].value)
    return {n: v for n, v in query.items() if n not in (*JOB, "v", "made")}


def test_filters_narrow_the_list_and_can_be_cleared():
    page = opened()
    page.multiselect(key="options_list_gpu").set_value(["A100-80GB-SXM"]).run()
    page.number_input(key="options_list_max_gpus").set_value(32).run()
    table = page.dataframe[0].value
    assert set(table["GPU"]) == {"A100-80GB-SXM"}
    assert set(table["GPUs"]) == {32}
    page.selectbox(key="options_list_order").set_value("mfu").run()
    assert page.dataframe[0].value["MFU"].is_monotonic_decreasing
    page.number_input(key="options_list_max_days").set_value(0.01).run()
    assert "take a filter away" in page.info[0].value
    assert not page.exception
    page.button(key="options_clear").click().run()
    assert "All " in plain(page.markdown)
    assert page.multiselect(key="options_list_gpu").value == []
    assert asked(page) == {"list_order": "mfu"}


def test_filters_are_in_the_link_and_a_link_sets_them():
    page = opened()
    page.multiselect(key="options_list_cloud").set_value(["aws", "azure"]).run()
    page.multiselect(key="options_list_purchase").set_value(["on_demand"]).run()
    page.number_input(key="options_list_min_gpus").set_value(64).run()
    page.number_input(key="options_list_max_usd").set_value(1e6).run()
    page.radio(key="options_list_unit").set_value("mtoken").run()
    page.radio(key="options_list_measure").set_value("days").run()
    page.checkbox(key="options_list_within_limits").check().run()
    query = asked(page)
    assert query == {
        "list_cloud": "aws,azure", "list_purchase": "on_demand", "list_min_gpus": "64",
        "list_max_usd": "1000000", "list_unit": "mtoken", "list_measure": "days",
        "list_within_limits": "1",
    }  # fmt: skip
    other = opened(**query)
    assert not other.exception
    assert not other.warning
    assert other.dataframe[0].value.equals(page.dataframe[0].value)
    assert set(other.dataframe[0].value["Cloud"]) == {"aws", "azure"}
    assert other.multiselect(key="options_list_purchase").value == ["on_demand"]
    assert other.button(key="options_clear").label == "Clear filters (5)"


def test_a_filter_that_lets_nothing_through_is_shown_to_be_taken_away():
    page = opened(list_gpu="<b>no</b>,B200-180GB,nothing")
    assert page.multiselect(key="options_list_gpu").value == []  # one bad name: none of the field
    page = opened(list_gpu="nothing", list_within_limits="1", deadline_days=None)
    assert page.multiselect(key="options_list_gpu").value == ["nothing"]
    assert page.checkbox(key="options_list_within_limits").disabled
    assert "take a filter away" in page.info[0].value
    assert page.button(key="options_clear").label == "Clear filters (1)"


def test_what_a_filter_cannot_be_is_a_sentence_and_changes_nothing():
    def refused():
        import streamlit as st

        from app.options import filters as options_filters
        from app.web import link
        from core.scenario import Scenario

        link.edit(Scenario.parse({"list_cloud": "aws"}))
        st.session_state[options_filters.key("list_cloud")] = ["A cloud; of a price book"]
        options_filters.edited("list_cloud")
        st.code(",".join(link.scenario().list_cloud))
        st.code(st.session_state[options_filters.WRONG])

    page = AppTest.from_function(refused, default_timeout=60).run()
    assert not page.exception
    kept, said = (c.value for c in page.code)
    assert kept == "aws"
    assert said.startswith("Listed clouds: 'A cloud; of a price book'")
    assert said.endswith("(list_cloud in a link).")


def test_no_search_and_no_figure_depends_on_what_is_looked_at():
    plain_one = Scenario.parse(JOB)
    looked = Scenario.parse({**JOB, **EVERY_FILTER})
    assert set(looked.to_query()) == {*plain_one.to_query(), *LIST}
    assert answers.key_of(looked) == answers.key_of(plain_one)
    assert query_of(looked) == query_of(plain_one)


def test_each_choice_of_the_scenario_is_one_of_the_page():
    for field, choices in (
        ("list_order", plans.ORDERS), ("list_unit", plans.UNITS), ("list_measure", heat.MEASURES)
    ):  # fmt: skip
        assert scenario_fields.literals(Scenario.model_fields[field].annotation) == tuple(choices)
    assert set(plans.FILTERS) | {"list_order", "list_unit", "list_measure"} == LIST


def test_a_plan_beyond_the_described_ones_is_pinned_and_compared(answer):
    page = opened()
    far = [str(i) for i in answer.points["id"][[0, -1]]]
    page.multiselect(key="options_pins").set_value(far).run()
    assert pinned(page) == far
    assert not page.exception
    told = plain(page.markdown)
    assert "B (" in told
    assert "Over the run" in told
    table = page.table[0].value
    assert next(iter(table.columns)).startswith("A: ")
    assert len(table) > 15
    page.selectbox(key="options_baseline").set_value(far[1]).run()
    assert pinned(page) == far[::-1]
    page.multiselect(key="options_pins").set_value([]).run()
    assert pinned(page) == []
    assert not page.table


def test_four_pins_are_one_table_of_what_differs(answer):
    ids = ",".join(map(str, answer.points["id"][:MOST_PINNED]))
    page = opened(pinned=ids)
    assert not page.exception
    assert [len(t.value.columns) for t in page.table] == [MOST_PINNED]
    assert len(plain(page.markdown).split("Over the run")) == MOST_PINNED


def test_rows_of_the_table_are_pins_and_a_fifth_is_refused(answer):
    ids = tuple(map(str, answer.points["id"]))
    assert plans.pinned_by_rows(ids[:2], ids, ids[1:4]) == ids[1:4]
    assert plans.pinned_by_rows(("far", ids[0]), ids[:3], [ids[2]]) == ("far", ids[2])

    def refused(ids):
        import streamlit as st

        from app.options import page as options_page
        from app.web import link
        from core.scenario import Scenario

        link.edit(Scenario())
        st.session_state["t"] = {"selection": {"rows": [0, 1, 2, 3]}}
        options_page._rows_chosen(ids, "t")
        st.code(",".join(link.scenario().pinned))
        st.session_state["t"] = {"selection": {"rows": [0, 1, 2, 3, 4]}}
        options_page._rows_chosen(ids, "t")
        st.code(",".join(link.scenario().pinned))
        st.code(str(st.session_state[options_page.REFUSED]))

    page = AppTest.from_function(refused, default_timeout=60, args=(ids,)).run()
    assert not page.exception
    first, second, said = (c.value for c in page.code)
    assert first == second == ",".join(ids[:4])
    assert said == "True"


def test_another_link_is_held_against_this_one():
    page = opened()
    area = page.text_area(key="options_other_link")
    area.set_value("http://x/?v=1&model=llama3.1-8b&num_tokens=200B&gpu=H100-80GB-SXM"
                   "&cloud=aws&num_gpus=64&colour=red").run()  # fmt: skip
    assert not page.exception
    assert "colour='red' is not a field" in plain(page.warning)
    fields = page.table[0].value
    assert {"Training tokens", "GPUs", "Clouds", "GPU counts"} <= set(fields.index)
    assert "A is the recommended plan of this page" in plain(page.markdown)
    assert "B (64 x H100-80GB-SXM, aws)" in plain(page.markdown)
    page.text_area(key="options_other_link").set_value("<script>alert(1)</script>").run()
    assert "no scenario in it" in plain(page.error)
    assert not page.exception
    impossible = "model=llama3.1-405b&num_gpus=1&gpu=A100-80GB-SXM&cloud=aws"
    page.text_area(key="options_other_link").set_value(impossible).run()
    assert "There is no plan for the other link" in plain(page.error)


def test_a_scenario_without_a_plan_says_why_and_still_takes_a_link():
    page = opened(model="llama3.1-405b", num_gpus="1")
    assert not page.exception
    assert page.error
    assert page.text_area(key="options_other_link").value == ""


def test_the_price_of_the_list_has_its_date(every):
    seen = every["Price of"].iloc[0]
    assert dt.date.fromisoformat(seen[:10] if len(seen) > 7 else f"{seen[:7]}-01")

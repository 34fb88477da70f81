"""The Risk & money page: what each way to buy a plan's machines costs, and when it ends."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

import pandas as pd
import streamlit as st

from app.bill import page as bill_page
from app.buy import charts as buy_charts
from app.buy import document, labels, words
from app.buy.purchases import Purchases, purchases_of
from app.buy.trace_file import read_trace
from app.document import chart_files, page
from app.document import format as fmt
from app.document.escape import as_text
from app.document.glossary import explained
from app.forecast import price_book
from app.plan import answer_section, products
from app.plan import words as plan_words
from app.programme import stages_section
from app.risk import document as risk_document
from app.scale import page as scale_page
from app.scenario.link import Query, query_of
from app.web import figure, link
from app.web.answers import KEPT_S
from app.web.selection import chosen
from core.errors import RuncastError
from core.failures.availability import Trace
from core.scenario import Scenario
from core.search.plan import Answer, Plan

KEPT = 64  # cached answers, up to 100 kB each
TRACE = "risk_trace"
LIST, COUNT = "risk_plan", "risk_count"
TRACE_TYPES, MAX_UPLOAD_MB = ["csv", "json"], 2
Specs = dict[str, chart_files.Spec]
Data = Callable[[], pd.DataFrame]


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner="Comparing the ways to buy")
def _purchases(
    query: Query, book_id: str, plan_id: str, trace_id: str,
    _scenario: Scenario, _plan: Plan, _trace: Trace | None,
) -> Purchases:  # fmt: skip
    return purchases_of(_scenario, _plan, _trace)


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _charts(
    query: Query, book_id: str, plan_id: str, trace_id: str, theme: str,
    _scenario: Scenario, _found: Purchases,
) -> Specs:  # fmt: skip
    """The charts as specs, cached: building them takes longer than computing their figures."""
    drawn = buy_charts.of(_scenario, _found, theme=theme)
    return {name: chart_files.spec_of(chart) for name, chart in drawn.items()}


def draw(scenario: Scenario, answer: Answer) -> None:
    """Draw the page for a scenario and its answer."""
    if not answer.plans:
        st.error(as_text(plan_words.answer_sentence(scenario, answer)))
        return
    plan = chosen(scenario, answer)
    _draw_choice(answer, plan)
    theme = figure.theme()
    trace, trace_id, wrong = _trace()
    book_id = price_book.book_id(scenario)
    query = query_of(scenario)
    try:
        found = _purchases(query, book_id, plan.id, trace_id, scenario, plan, trace)
    except RuncastError as e:
        if trace is None:
            st.error(as_text(str(e)))
            return
        wrong, trace_id = str(e), ""
        found = _purchases(query, book_id, plan.id, "", scenario, plan, None)
    charts = _charts(query, book_id, plan.id, trace_id, theme, scenario, found)
    _draw_answer(scenario, found)
    stages_section.draw_ways(scenario)
    _draw_spreads(found, charts)
    _draw_lateness(found, charts)
    _draw_spot(found, charts, wrong)
    _draw_ways(found)
    _draw_inputs(found)
    bill_page.draw(scenario, answer, plan)
    if any(w.hours for w in found.ways):  # otherwise no number of GPUs has a time
        scale_page.draw(scenario, answer, plan)


def _draw_choice(answer: Answer, plan: Plan) -> None:
    """Draw the list of plans, and the numbers of GPUs at which the plan's machine is offered."""
    left, right = st.columns([5, 1])
    answer_section.draw_choice(left, answer, plan, key=LIST, about="The choice of every page")
    of_count = products.counts(answer, plan)
    st.session_state[COUNT] = plan.num_gpus
    right.selectbox(
        "GPUs of this machine",
        sorted(of_count),
        key=COUNT,
        format_func=fmt.count,
        on_change=_count_chosen,
        args=(of_count,),
    )


def _count_chosen(of_count: dict[int, str]) -> None:
    if (plan_id := of_count.get(st.session_state[COUNT])) is not None:
        link.choose(plan_id)
        link.redraw()


def _trace() -> tuple[Trace | None, str, str]:
    """The uploaded trace, its name, and what is wrong with it."""
    file = st.session_state.get(TRACE)
    if file is None:
        return None, "", ""
    content = file.getvalue()
    try:
        return read_trace(content, name=file.name), sha256(content).hexdigest(), ""
    except RuncastError as e:
        return None, "", str(e)


def _draw_answer(scenario: Scenario, found: Purchases) -> None:
    st.markdown(f"**{as_text(words.headline(scenario, found))}**")
    headlines = document.headlines(scenario, found)
    for column, (name, value, line) in zip(st.columns(4), headlines, strict=False):
        with column, st.container(border=True, height="stretch", gap="xsmall"):
            st.metric(name, as_text(value), help=explained(f"{name} {line}"))
            st.caption(as_text(line))
    for sentence in (
        words.doubted_sentence(found),
        words.budget_sentence(scenario, found),
        words.break_even_sentence(found),
    ):
        if sentence:
            st.markdown(as_text(sentence))


def _draw_pair(charts: Specs, *pair: tuple[str, str, str, str, str, Data]) -> None:
    """Draw two charts side by side: of each its name, title, alternative text, caption, file and
    numbers."""
    for column, chart in zip(st.columns(2, gap="medium"), pair, strict=True):
        with column:
            figure.draw_named("risk", charts, *chart)


def _draw_spreads(found: Purchases, charts: Specs) -> None:
    st.subheader("Ways to buy", anchor=False)
    cheapest = words.cheapest_first_words(found)
    _draw_pair(
        charts,
        ("usd", "Cost of the run", f"Cost by way to buy, P10 to P90. {cheapest}",
         "Bar: P10 to P90; tick: P50; mark: mean. Failures, interruptions, an uncertain speed and "
         "an uncertain price are included. Dashed: on demand.",
         "runcast_ways", lambda: document.spreads(found)),
        ("days", "Time of the run", f"Days by way to buy, P10 to P90. {cheapest}",
         "In the same order, the cheapest first.", "runcast_ways_time",
         lambda: document.spreads(found)),
    )  # fmt: skip


def _draw_lateness(found: Purchases, charts: Specs) -> None:
    curves, lost = document.curves(found), document.lost(found)
    from_when, sums = document.late_from_words(curves), document.lost_sentence(lost)
    _draw_pair(
        charts,
        ("curve", "Chance to miss a deadline", f"Chance to miss a deadline. {from_when}",
         f"{from_when} Greedy, uniform progress and safety net plan for the form's deadline.",
         "runcast_deadline", lambda: curves),
        ("lost", "Where lost time goes", f"Mean days that are not training: {sums}.",
         f"Mean: {sums}.", "runcast_lost_time", lambda: lost),
    )  # fmt: skip


def _draw_spot(found: Purchases, charts: Specs, wrong: str) -> None:
    st.subheader("Policies on spot", anchor=False)
    table = document.policies(found)
    if not table.rows:
        st.markdown(as_text(found.named("spot_only").why_not))
    else:
        page.draw_list(words.spot_sentences(found)[1:])
        rules = "; ".join(f"{labels.POLICIES[n]}: {rule}" for n, rule in labels.RULES.items())
        st.caption(as_text(f"{rules}."))
        _draw_pair(
            charts,
            ("policy_usd", "Mean cost of each policy",
             "Mean cost of each policy by how often spot is interrupted.",
             words.policies_words(found), "runcast_policies", lambda: document.played(found)),
            ("policy_days", "Mean time of each policy",
             "Mean days of each policy by how often spot is interrupted.",
             "", "runcast_policies_time", lambda: document.played(found)),
        )  # fmt: skip
        title = f"Every policy in figures: {len(table.rows)} rows"
        part = st.expander(title, key="risk_policies_part", on_change="rerun")
        if part.open:
            with part:
                shown = document.read(table, document.POLICIES_READ)
                page.draw_rows(shown, "risk_policies", table.caption, is_whole=True)
    st.file_uploader(
        "Your own trace of spot capacity: CSV or JSON of when it was up",
        type=TRACE_TYPES,
        key=TRACE,
        max_upload_size=MAX_UPLOAD_MB,
        help="Columns start_hours,end_hours (or start_s,end_s, or start,end as ISO 8601): one "
        "spell in which all machines of the job were up a row. It is replayed and not kept.",
    )
    if wrong:
        st.error(as_text(wrong))


def _draw_ways(found: Purchases) -> None:
    st.subheader("Every way", anchor=False)
    page.draw_list(words.kept_sentences(found))
    table = document.cheapest_first(found)
    if table.rows:
        shown = document.read(table, document.WAYS_READ)
        page.draw_rows(shown, "risk_ways", table.caption, is_whole=True)
    for name, why in words.lacking(found):
        st.caption(as_text(f"{name}: {why}"))


def _draw_inputs(found: Purchases) -> None:
    part = st.expander("What this rests on", key="risk_inputs_part", on_change="rerun")
    if not part.open:
        return
    with part:
        rests_on = risk_document.inputs(found.inputs)
        st.caption(
            "Each is a field of the form, under Failures or Market: empty, it is a published or an "
            f"assumed figure. {fmt.count(len(rests_on.rows))} inputs."
        )
        page.draw_table(rests_on)

"""Entry point of the page: `streamlit run app/main.py`. Reads the link, asks, draws."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from app import calibration_files, estimate, first_look, form, link, price_books
from app.escape import as_text
from app.views import (
    accuracy,
    audit,
    calibration,
    decisions,
    launch,
    method,
    plan,
    prices,
    risk,
)
from app.views import first_look as first
from core.errors import RuncastError
from core.plan import Answer
from core.scenario import Scenario
from core.scenario_risk import NOT_SEARCHED

TOP = 50  # plans that the table lists
KEPT_ANSWERS = 64  # up to 1 MB each
KEPT_S = 6 * 3600

PAGE = "main_page"  # which one the session saw last

NOT_IN_ANSWER = {"plan", *NOT_SEARCHED}

OPTIONS: form.Options = {
    "model": estimate.model_names,
    "gpu": estimate.accelerator_names,
    "cloud": estimate.cloud_names,
    "stack": estimate.stack_names,
    "price_book": lambda: ["", *price_books.names()],
    "calibration": lambda: calibration_files.kept(),
    "anchor_gpu": lambda: ["", *estimate.accelerator_names()],
}


@st.cache_data(max_entries=KEPT_ANSWERS, ttl=KEPT_S, show_spinner="Searching for plans")
def _kept(query: tuple[tuple[str, str], ...], book_id: str) -> Answer:
    """The answer to a link, kept for everybody who opens it while its price book is the same."""
    scenario, _ = Scenario.from_query(dict(query))
    return estimate.answer(scenario, top=TOP, with_frontier=True)


def _searched(scenario: Scenario) -> tuple[tuple[str, str], ...]:
    """What the search takes of a scenario: an answer is kept while it is the same."""
    return tuple((k, v) for k, v in scenario.to_query().items() if k not in NOT_IN_ANSWER)


def answer_of(scenario: Scenario) -> Answer:
    """The answer to a scenario. A plan beyond the listed ones is asked for by its name."""
    query = _searched(scenario)
    book_id = price_books.book_id(scenario)
    answer = _kept(query, book_id)
    if plan.is_listed(scenario, answer) or not plan.is_point(scenario, answer):
        return answer
    return _kept((*query, ("plan", scenario.plan)), book_id)


def draw_plan() -> None:
    """The Plan page: the form in the sidebar, the answer beside it."""
    if answer := _answered(_answer_after_a_first_look):
        plan.draw(link.scenario(), answer, OPTIONS)


def draw_risk() -> None:
    """The Prices & risk page: the same form and answer, and what a plan comes to in money."""
    if answer := _answered(answer_of):
        risk.draw(link.scenario(), answer)


def _answered(answer_to: Callable[[Scenario], Answer]) -> Answer | None:
    """The form in the sidebar, notes, and the answer; None where a sentence was drawn instead."""
    with st.sidebar:
        st.markdown("**Runcast**")
        form.draw(OPTIONS)
    try:
        answer = answer_to(link.scenario())
    except RuncastError as e:
        _draw_notes()
        st.error(as_text(str(e)))
        return None
    if not plan.is_listed(link.scenario(), answer):
        asked = link.is_taken_over()
        link.drop_plan(plan.unknown_plan_sentence(link.scenario()) if asked else None)
    _draw_notes()
    return answer


def _answer_after_a_first_look(scenario: Scenario) -> Answer:
    """The whole answer; while it is made, where that takes a while, the usual accelerators."""
    key = (_searched(scenario), price_books.book_id(scenario))
    if not first_look.is_due(scenario, key):
        return answer_of(scenario)
    shown = st.empty()
    some = answer_of(first_look.narrowed(scenario))
    if some.plans:
        with shown.container():
            first.draw(scenario, some)
    answer = answer_of(scenario)
    shown.empty()
    first_look.remember(key)
    return answer


def draw_launch() -> None:
    """The Launch page: the same form and answer, and the files that start a plan."""
    if answer := _answered(answer_of):
        launch.draw(link.scenario(), answer)


def draw_prices() -> None:
    """The Price data page, which may ask what the plan of the link cost on another day."""
    prices.draw(answer_of)


def draw_calibration() -> None:
    """The Calibration page, which forecasts the plan of the link without and with what it lists."""
    calibration.draw(answer_of)


def main() -> None:
    """One run of the script: the address first, then the page that it names."""
    pages = [
        st.Page(draw_plan, title="Training plan", default=True),
        st.Page(draw_risk, title="Prices & risk", url_path="risk"),
        st.Page(draw_launch, title="Launch", url_path="launch"),
        st.Page(accuracy.draw, title="Accuracy", url_path="accuracy"),
        st.Page(draw_prices, title="Price data", url_path="prices"),
        st.Page(method.draw, title="Method", url_path="method"),
        st.Page(decisions.draw, title="Decision tables", url_path="decisions"),
        st.Page(audit.draw, title="Audit", url_path="audit"),
        st.Page(draw_calibration, title="Calibration", url_path="calibration"),
    ]
    current = st.navigation(pages, position="hidden")
    st.set_page_config(page_title=f"Runcast: {current.title}", page_icon="🧭", layout="wide")
    moved = st.session_state.get(PAGE) != current.url_path
    st.session_state[PAGE] = current.url_path
    if link.take_over(estimate.resolve, estimate.current_prices()) or moved:
        form.fill(link.scenario())  # the widgets of a page that is not drawn are forgotten
    link.write()  # before anything is drawn, so that an error below cannot lose it
    top = st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"
    )
    top.header(current.title, anchor=False, width="content")
    try:
        current.run()
    finally:  # the page may drop from the scenario what the answer does not have
        query = link.scenario().to_query()
        links = top.container(horizontal=True, width="content")
        for page in pages:
            if page is not current:
                links.page_link(
                    page, query_params=query, icon=":material/arrow_forward:", icon_position="right"
                )


def _draw_notes() -> None:
    for note in link.notes():
        st.warning(as_text(note))
    asked, newest = link.scenario().prices, estimate.current_prices()
    if asked != newest:
        st.info(f"The prices are those of snapshot {asked}, as the link asks, not the newest here.")
        st.button("Use the newest prices", key="main_newest", on_click=_use_newest_prices)


def _use_newest_prices() -> None:
    link.edit(link.changed(link.scenario(), prices=estimate.current_prices()))


main()

"""Entry point of the page: `streamlit run app/main.py`. Reads the link, gets the answer, draws.

Every page but the first is imported when it is opened, so that a cold server answers sooner.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from app.document.escape import as_text
from app.forecast import calibrations, price_book, resolve
from app.forecast.failure_inputs import given_numbers
from app.plan import page as plan_page
from app.saved import saved
from app.saved import sidebar as saved_scenarios
from app.scenario.link import changed
from app.web import collection, first_look, link, login, rerun_log, selection, tabs
from app.web import form as web_form
from app.web.answers import answer_of, key_of
from core.errors import RuncastError
from core.scenario import Scenario
from core.search.plan import Answer

SIDEBAR_PX = 272
WHAT_IT_IS = "Forecast an LLM training run before you pay for it"  # the heading of the first page
PAGE = "main_page"  # the page that the session showed last

OPTIONS: web_form.Options = {
    "model": resolve.model_names,
    "gpu": resolve.accelerator_names,
    "cloud": lambda: resolve.cloud_names(link.scenario()),
    "stack": resolve.stack_names,
    "price_book": lambda: ["", *price_book.names()],
    "calibration": lambda: calibrations.ids(),
    "anchor_gpu": lambda: ["", *resolve.accelerator_names()],
}


def draw_plan(memory: StreamlitPage, row: tabs.Row) -> None:
    """The Plan page: the recommended plan and the answer, with a link to where its plan's bytes
    and seconds go."""

    def draw_link() -> None:
        query = link.scenario().to_query()
        st.page_link(memory, label="Where its bytes and seconds go", query_params=query)

    def draw_tabs() -> None:
        row.draw(link.scenario().to_query())

    if found := _first_look() or _answered():
        plan_page.draw(*found, OPTIONS, draw_link, draw_tabs)


def draw_options() -> None:
    """The Compare page: every plan, and up to four of them side by side."""
    from app.options import page as options_page

    if found := _first_look() or _answered():
        options_page.draw(*found, OPTIONS)


def draw_memory() -> None:
    """The Memory & speed page: where the bytes and seconds of a plan go."""
    from app.memory import page

    _of_plan(page.draw)


def draw_risk() -> None:
    """The Risk & money page: what a plan costs."""
    from app.buy import page

    _of_plan(page.draw)


def draw_launch(run: StreamlitPage) -> None:
    """The Launch page: the files that start a plan, and a link to where its run is held against
    it."""
    from app.launch import page

    _of_plan(page.draw)
    query = link.scenario().to_query()
    st.page_link(run, label="Started? Hold its log against this forecast", query_params=query)


def draw_run() -> None:
    """The Run page: a log of the plan's run against its forecast."""
    from app.watch import page

    _of_plan(page.draw)


def draw_accuracy() -> None:
    """The Accuracy page."""
    from app.accuracy import page

    _other(page.draw)


def draw_prices() -> None:
    """The Prices page, which can also price the plan of the link on another day."""
    from app.prices import page

    _other(page.draw, answer_of)


def draw_calibration() -> None:
    """The Calibrate page, which forecasts the plan of the link with and without a calibration."""
    from app.calibration import page

    _other(page.draw, answer_of)


def draw_decisions() -> None:
    """The page of published advice."""
    from app.guides import page

    _other(page.draw)


def draw_audit() -> None:
    """The Audit page."""
    from app.audit import page

    _other(page.draw)


def draw_method() -> None:
    """The Method page."""
    from app.method import page

    _other(page.draw)


def _of_plan(draw: Callable[[Scenario, Answer], None]) -> None:
    """Draw a page that is about one plan of the answer."""
    if found := _answered():
        draw(*found)


def _other(draw: Callable[..., None], *given: object) -> None:
    """Draw a page that needs no answer; `given` is what it takes."""
    _draw_notes()
    draw(*given)


def _answered() -> tuple[Scenario, Answer] | None:
    """The notes, and the scenario with its answer; None if an error sentence was drawn instead."""
    try:
        given_numbers(link.scenario())  # a contradiction is reported on every page
        answer = answer_of(link.scenario())
    except RuncastError as e:
        _draw_notes()
        st.error(as_text(str(e)))
        return None
    selection.drop_unknown(answer)
    _draw_notes()
    return link.scenario(), answer


def _first_look() -> tuple[Scenario, Answer] | None:
    """The notes, and a scenario of the usual accelerators with its answer, if the whole answer is
    not there yet; else None."""
    scenario = link.scenario()
    try:
        given_numbers(scenario)
    except RuncastError:
        return None  # the whole answer reports the error
    some = first_look.of(scenario)
    if some is None:
        return None
    _draw_notes()
    first_look.draw(key_of(scenario))
    return first_look.narrowed(scenario), some


def main() -> None:
    """One run of the script: read the address, then draw the page that it names."""
    memory = st.Page(draw_memory, title="Memory & speed", url_path="memory")  # opened from a plan
    run = st.Page(draw_run, title="Run", url_path="run")
    row = tabs.Row()
    in_row = [
        st.Page(partial(draw_plan, memory, row), title="Plan", url_path="plan", default=True),
        st.Page(draw_options, title="Compare", url_path="options"),
        st.Page(draw_risk, title="Risk & money", url_path="risk"),
        st.Page(partial(draw_launch, run), title="Launch", url_path="launch"),
        st.Page(draw_calibration, title="Calibrate", url_path="calibration"),
    ]
    more = [
        run,
        st.Page(draw_prices, title="Prices", url_path="prices"),
        st.Page(draw_audit, title="Audit", url_path="audit"),
        st.Page(draw_decisions, title="Published advice, checked", url_path="decisions"),
        st.Page(draw_accuracy, title="Accuracy", url_path="accuracy"),
        st.Page(draw_method, title="Method", url_path="method"),
    ]
    first_look.begin()
    current = st.navigation([*in_row, memory, *more], position="hidden")
    rerun_log.on_page(current.url_path)
    st.set_page_config(
        page_title=f"Runcast: {current.title}",
        page_icon="🧭",
        layout="wide",
        initial_sidebar_state=SIDEBAR_PX,
    )
    if not login.is_open():
        return
    st.html(Path(__file__).with_name("page.css"))
    moved = st.session_state.get(PAGE) != current.url_path
    st.session_state[PAGE] = current.url_path
    if link.take_over(resolve.resolve, resolve.current_prices(), saved.expanded) or moved:
        web_form.fill(link.scenario())  # Streamlit drops the widgets of a page that is not drawn
    link.write()  # before anything is drawn, so that an error below cannot lose it
    row.begin(in_row, more, current)
    st.header(WHAT_IT_IS if current is in_row[0] else current.title, anchor=False)
    with st.sidebar:
        st.markdown("**Runcast**")
        web_form.draw(OPTIONS)
        parts = st.container()
        saved_scenarios.draw()
        login.draw()
    try:
        current.run()
    finally:  # the page may deselect plans that the answer does not have
        if not row.is_drawn:
            row.draw(link.scenario().to_query())
        with parts:
            web_form.draw_parts(link.scenario(), OPTIONS)
    first_look.wait()
    collection.spare_what_stays()


def _draw_notes() -> None:
    for note in link.notes():
        st.warning(as_text(note))
    asked, newest = link.scenario().prices, resolve.current_prices()
    if asked != newest:
        st.info(f"The prices are those of snapshot {asked}, as the link asks, not the newest here.")
        st.button("Use the newest prices", key="main_newest", on_click=_use_newest_prices)


def _use_newest_prices() -> None:
    link.edit(changed(link.scenario(), prices=resolve.current_prices()))


with rerun_log.rerun():
    main()

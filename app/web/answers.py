"""Answers for the pages: each question is searched once and shared by all sessions."""

from __future__ import annotations

import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from functools import partial

import streamlit as st

from app.forecast import answer as forecast_answer
from app.forecast import price_book
from app.forecast.search_memory import SearchMemory
from app.scenario.link import Query
from app.web.searches import Searches
from core.scenario import Scenario
from core.scenario.risk_fields import NAMED, NOT_SEARCHED, VIEW
from core.search.plan import Answer

TOP = 50  # plans that a table lists
KEPT_ANSWERS = 64  # up to 1 MB each
KEPT_S = 6 * 3600.0
FAILED_S = 60.0
SEARCHES_AT_ONCE = 8
LOOK_S = 0.1  # between checks whether an edit has overtaken a waiting run

Key = tuple[Query, str]


@st.cache_resource(show_spinner=False)
def _searches() -> Searches:
    return Searches(most=KEPT_ANSWERS, keep_s=KEPT_S, failed_s=FAILED_S, at_once=SEARCHES_AT_ONCE)


@st.cache_resource(show_spinner=False)
def _memory() -> SearchMemory:
    return SearchMemory()


def _search(query: Query, memory: SearchMemory) -> Answer:
    """The answer to a link. All sessions share the object, so no caller may change it."""
    scenario, _ = Scenario.from_query(dict(query))
    answer = forecast_answer.answer(scenario, top=TOP, with_frontier=True, memory=memory)
    for column in answer.points.values():
        column.setflags(write=False)
    return answer


def key_of(scenario: Scenario) -> Key:
    """The part of a scenario that the search depends on: the key of a kept answer."""
    query = scenario.to_query()
    searched = tuple((k, v) for k, v in query.items() if k not in NOT_SEARCHED | VIEW)
    return searched, price_book.book_id(scenario)


def ask(key: Key) -> Future[Answer]:
    """Start the search for a question in the background, unless it has been asked already."""
    return _searches().ask(key, partial(_search, key[0], _memory()))


def wait(key: Key) -> None:
    """Wait for the end of a search that has been started. An edit meanwhile ends the run."""
    while _searches().is_running(key):
        time.sleep(LOOK_S)
        _look()


def is_known(key: Key, *, within_s: float) -> bool:
    """Whether the answer is there within some seconds. If not, the search goes on."""
    return _is_done(ask(key), within_s)


def answer_of(scenario: Scenario) -> Answer:
    """The answer to a scenario, with the selected and pinned plans that are not listed."""
    query, book_id = key_of(scenario)
    answer = _waited_for(ask((query, book_id)))
    asked = {scenario.plan, *scenario.pinned} - {"", *(p.id for p in answer.plans)}
    if not asked & set(answer.points.get("id", ())):
        return answer
    view = tuple((k, v) for k, v in scenario.to_query().items() if k in NAMED)
    return _waited_for(ask(((*query, *view), book_id)))


def _is_done(found: Future[Answer], within_s: float) -> bool:
    try:
        found.exception(timeout=within_s)
    except NotYet:
        return False
    return True


def _waited_for(found: Future[Answer]) -> Answer:
    """The answer, once it is there. An edit meanwhile ends the run but not the search."""
    if found.done():
        return found.result()
    with st.spinner("Searching for plans"):
        while not _is_done(found, LOOK_S):
            _look()
    return found.result()


def _look() -> None:
    """Let Streamlit end this run if an edit is waiting: reading the session triggers it."""
    st.session_state.get("link_scenario")

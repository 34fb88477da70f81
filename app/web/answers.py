"""Answers as the pages ask for them: each search is made once for everybody who asks the same."""

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
LOOK_S = 0.1  # while it waits, a run looks whether it has been overtaken by an edit

Key = tuple[Query, str]


@st.cache_resource(show_spinner=False)
def _searches() -> Searches:
    return Searches(most=KEPT_ANSWERS, keep_s=KEPT_S, failed_s=FAILED_S, at_once=SEARCHES_AT_ONCE)


@st.cache_resource(show_spinner=False)
def _memory() -> SearchMemory:
    return SearchMemory()


def _search(query: Query, memory: SearchMemory) -> Answer:
    """The answer to a link; everybody gets the same object, so nobody may write into it."""
    scenario, _ = Scenario.from_query(dict(query))
    answer = forecast_answer.answer(scenario, top=TOP, with_frontier=True, memory=memory)
    for column in answer.points.values():
        column.setflags(write=False)
    return answer


def key_of(scenario: Scenario) -> Key:
    """What the search takes of a scenario: an answer is kept while it is the same."""
    query = scenario.to_query()
    searched = tuple((k, v) for k, v in query.items() if k not in NOT_SEARCHED | VIEW)
    return searched, price_book.book_id(scenario)


def ask(key: Key) -> Future[Answer]:
    """Start the search of a question in the background, where nobody has asked it yet."""
    return _searches().ask(key, partial(_search, key[0], _memory()))


def wait(key: Key) -> None:
    """Until a search that has been started has ended. An edit meanwhile ends the run."""
    while _searches().is_running(key):
        time.sleep(LOOK_S)
        _look()


def is_known(key: Key, *, within_s: float) -> bool:
    """Whether the answer is there, or is within some seconds; its search goes on."""
    return _is_done(ask(key), within_s)


def answer_of(scenario: Scenario) -> Answer:
    """The answer to a scenario. Plans beyond the listed ones are asked for by their names."""
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
    """The answer, when it is there. An edit meanwhile ends the run and not the search."""
    if found.done():
        return found.result()
    with st.spinner("Searching for plans"):
        while not _is_done(found, LOOK_S):
            _look()
    return found.result()


def _look() -> None:
    """Let Streamlit end this run where an edit waits: it does so when the session is read."""
    st.session_state.get("link_scenario")

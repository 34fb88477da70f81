"""Answers for the pages: each question is searched once and shared by all sessions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from functools import partial
from typing import Any, TypeVar

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app.document.escape import as_text
from app.forecast import answer as forecast_answer
from app.forecast import price_book, search
from app.forecast.search_memory import SearchMemory
from app.log.memory import give_back, held_bytes
from app.scenario.link import Query
from app.web.searches import ANYBODY, Load, Searches
from core.scenario import Scenario
from core.scenario.risk_fields import NAMED, NOT_SEARCHED, VIEW
from core.search.plan import Answer
from hardware.facts import accelerators

TOP = 50  # plans that a table lists
KEPT_ANSWERS = 64
KEPT_BYTES = 48_000_000  # of all answers together
KEPT_S = 6 * 3600.0
FAILED_S = 60.0
SEARCHES_AT_ONCE = 8
MOST_WAITING = 100
PROGRAMS_WAITING = 20  # searches of anybody, when one of a program is refused
# Work of a search, of which that of every accelerator has 1, and how many of more work run at once:
# more costly ones than processors would only share them, and the rest is for the cheaper.
LANES = ((0.2, max(1, os.cpu_count() or 1)), (0.02, 4))
USUAL_COUNTS = 15  # numbers of GPUs that are searched where none is given
LOOK_S = 0.1  # between checks whether an edit has overtaken a waiting run

PROGRAM = "program "  # of the sessions of /api/v1

Key = tuple[Query, str]
T = TypeVar("T")


@st.cache_resource(show_spinner=False)
def _searches() -> Searches:
    return Searches(
        most=KEPT_ANSWERS, most_bytes=KEPT_BYTES, keep_s=KEPT_S, failed_s=FAILED_S,
        at_once=SEARCHES_AT_ONCE, lanes=LANES,
        most_waiting=MOST_WAITING, is_here=_is_here, size=held_bytes, after=give_back,
    )  # fmt: skip


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
    """The part of a scenario that the search of its run depends on: the key of a kept answer."""
    query = scenario.model_copy(update={"stages": (), "stages_may_move": False}).to_query()
    searched = tuple((k, v) for k, v in query.items() if k not in NOT_SEARCHED | VIEW)
    return searched, price_book.book_id(scenario)


def ask(key: Key) -> Future[Answer]:
    """Start the search for a question in the background, unless it has been asked already."""
    call = partial(_search, key[0], _memory())
    return _searches().ask(key, call, session=_session(), work=_work(key[0]))


def ask_for_program(search: Callable[[], Any], texts: Mapping[str, str], who: str) -> Future[Any]:
    """Start a search of /api/v1, in turn with those of the pages: of one address one costly search
    at a time. BusyError while PROGRAMS_WAITING are waiting, so that pages find room."""
    return _searches().ask(
        object(), search, session=PROGRAM + who, work=_work(tuple(texts.items())),
        most_waiting=PROGRAMS_WAITING, is_kept=False,
    )  # fmt: skip


def load() -> Load:
    """How busy the searches of this process are."""
    return _searches().load()


def begin() -> None:
    """A run of the page begins: what an earlier one of this session waited for is unwanted."""
    _searches().leave(_session())


def _session() -> str:
    """The id of this session; '' outside of one."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context else ANYBODY


def _is_here(session: str) -> bool:
    """Whether the browser of a session is connected. Without a server nobody can go."""
    if session.startswith(PROGRAM):
        return True
    return not runtime.exists() or runtime.get_instance().is_active_session(session)


def _work(query: Query) -> float:
    """The estimated work of a search, as a share of that of every accelerator at its usual counts:
    accelerators times numbers of GPUs."""
    given = dict(query)
    gpus = given["gpu"].count(",") + 1 if given.get("gpu") else len(accelerators())
    counts = given["num_gpus"].count(",") + 1 if given.get("num_gpus") else USUAL_COUNTS
    return gpus * counts / (len(accelerators()) * USUAL_COUNTS)


def wait(key: Key) -> None:
    """Wait for the end of a search that has been started. An edit meanwhile ends the run."""
    while _searches().is_running(key):
        time.sleep(LOOK_S)
        _look()


def num_searched(scenario: Scenario) -> int:
    """How many accelerators have been searched for what the scenario trains, at any price."""
    return _memory().num_accelerators(search.memory_key(scenario))


def is_known(key: Key, *, within_s: float) -> bool:
    """Whether the answer is there within some seconds. If not, the search goes on."""
    return _is_done(ask(key), within_s)


def answer_of(scenario: Scenario) -> Answer:
    """The answer to a scenario, with the selected and pinned plans that are not listed."""
    query, book_id = key_of(scenario)
    answer = _waited_for((query, book_id))
    asked = {scenario.plan, *scenario.pinned} - {"", *(p.id for p in answer.plans)}
    if not asked & set(answer.points.get("id", ())):
        return answer
    view = tuple((k, v) for k, v in scenario.to_query().items() if k in NAMED)
    return _waited_for(((*query, *view), book_id))


def _is_done(found: Future[Any], within_s: float) -> bool:
    try:
        found.exception(timeout=within_s)
    except NotYet:
        return False
    return True


def staged(scenario: Scenario, search: Callable[[SearchMemory], T], what: str = "") -> T:
    """What `search` finds for the stages of a scenario, in turn with the other searches; `what`
    tells several of a scenario apart."""
    query, book_id = key_of(scenario)
    key = (query, book_id, scenario.stages, scenario.stages_may_move, what)
    work = _work(query) * len(scenario.stages)
    call = partial(search, _memory())
    found: Future[T] = _searches().ask(key, call, session=_session(), work=work)
    return _awaited(key, found, "Searching every stage")


def _waited_for(key: Key) -> Answer:
    return _awaited(key, ask(key), "Searching for plans")


def _awaited(key: Hashable, found: Future[T], doing: str) -> T:
    """What is searched, once it is there. An edit meanwhile ends the run but not the search."""
    if found.done():
        return found.result()
    with st.spinner(doing):
        place = None
        while not _is_done(found, LOOK_S):
            _look()
            if (sentence := _searches().turn(key)) or place is not None:
                place = place or st.empty()
                place.caption(as_text(sentence))
        if place is not None:
            place.empty()
    return found.result()


def _look() -> None:
    """Let Streamlit end this run if an edit is waiting: reading the session triggers it."""
    st.session_state.get("link_scenario")

"""Old prices on the Plan page: a banner with a refresh, its progress, and what it changed.

What a refresh needs is imported when somebody starts one: until then a run of the page reads one
cached date.
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from app.document.escape import as_text
from app.forecast import price_book
from app.forecast.resolve import current_prices
from app.prices import price_age
from app.scenario.link import changed
from app.web import answers, first_look, link
from core.scenario import Scenario
from core.search.plan import Answer

OLD_DAYS = 7  # age of the newest price from which a refresh is offered
_BEFORE = "price_age_before"  # what this session had when it started a refresh
_DISMISSED = "price_age_dismissed"
_REFUSED = "price_age_refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Before:
    """The question, its prices and its recommended plan when a refresh was started."""

    question: answers.Key
    prices: str
    plan: price_age.Recommended


def draw(scenario: Scenario, answer: Answer) -> None:
    """Draw the banner where the prices are old, the refresh that this session has started, or what
    it changed. A link that names other prices than the newest here gets a sentence.

    Call it when the answer is drawn: the first banner of a server imports the sources.
    """
    before = st.session_state.get(_BEFORE)
    if isinstance(before, _Before) and _draw_refresh(scenario, answer, before):
        return
    today = price_book.today()
    if price_age.days_old(scenario.prices, today) <= OLD_DAYS:
        return
    age = price_age.age_sentence(scenario.prices, today)
    if scenario.prices != current_prices():
        st.caption(as_text(age))
    elif not st.session_state.get(_DISMISSED):
        _draw_banner(age)


def is_refreshing() -> bool:
    """Whether this session has started a refresh of which the page still tells."""
    return _BEFORE in st.session_state


def _draw_banner(age: str) -> None:
    with st.container(key="price_age", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(as_text(age), width="content")
            st.button(
                "Refresh now", key="price_age_refresh", icon=":material/refresh:",
                on_click=_start,
                disabled=first_look.is_awaited(),  # the answer to compare with is still to come
                help=as_text(f"{_refresh_sentence()} {price_age.NOTHING_SENT}"),
            )  # fmt: skip
            st.button("Not now", key="price_age_dismiss", on_click=_dismiss)
        if refused := st.session_state.get(_REFUSED):
            st.warning(as_text(refused))


@st.cache_data(ttl=600.0, show_spinner=False)
def _refresh_sentence() -> str:
    return price_age.refresh_sentence()


def _start() -> None:
    from app.prices.sources_section import job

    scenario = link.scenario()  # in the order that the page may have got since
    answer = answers.answer_of(scenario)

    st.session_state[_REFUSED] = job().start()
    if st.session_state[_REFUSED] and not job().progress().running:
        return
    st.session_state[_BEFORE] = _Before(
        question=_question(scenario), prices=scenario.prices, plan=price_age.recommended(answer)
    )


def _question(scenario: Scenario) -> answers.Key:
    """The question without its prices."""
    query, book = answers.key_of(scenario)
    return tuple((name, value) for name, value in query if name != "prices"), book


def _dismiss() -> None:
    st.session_state[_DISMISSED] = True
    st.session_state.pop(_BEFORE, None)


def _draw_refresh(scenario: Scenario, answer: Answer, before: _Before) -> bool:
    """Draw the refresh that this session has started; False if it published nothing, or if another
    question is asked since."""
    from app.prices.sources_section import POLL_S, job

    now, newest = job().progress(), current_prices()
    if not now.running and newest == before.prices:
        del st.session_state[_BEFORE]
        st.session_state[_REFUSED] = now.sentence
        return False
    if now.running or link.scenario().prices == before.prices:
        st.fragment(_draw_progress, run_every=POLL_S)()
        return True
    if _question(link.scenario()) != before.question:
        del st.session_state[_BEFORE]
        return False
    with st.container(border=True, key="price_age", gap="xsmall"):
        if _question(scenario) == before.question:  # else it is the first look
            found = _changed(before.prices, scenario.prices)
            text = price_age.changed_sentence(before.plan, price_age.recommended(answer), found)
            st.markdown(f"**{as_text(text)}**")
        st.caption(as_text(now.sentence))
        st.button("Close", key="price_age_dismiss", on_click=_dismiss)
    return True


@st.cache_data(max_entries=8, show_spinner=False)
def _changed(before_id: str, after_id: str) -> price_age.Changed:
    return price_age.changed(before_id, after_id)


def _draw_progress() -> None:
    """Draw the progress of the refresh; when it has ended, show the answer at the new prices."""
    from app.prices.sources_section import job

    now = job().progress()
    if not now.running:
        link.edit(changed(link.scenario(), prices=current_prices()))
        st.rerun(scope="app")
    st.progress(now.fraction, text=f"{len(now.ended)} of {now.total} price sources have answered")

"""Quotes on the Plan page: type one in, see them listed, change, remove or keep them.

A quote is a field of the scenario, so that the link holds it. The form is drawn only while it is
open; what is wrong with a quote is a sentence in it, and what was typed stays there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app.document import format as fmt
from app.document.escape import as_text
from app.document.vocabulary import PURCHASES
from app.forecast import price_book, resolve
from app.web import form as web_form
from app.web import link
from app.web.form_words import labelled
from app.web.fragment import alone
from core.errors import RuncastError
from core.scenario import Scenario
from core.scenario.quotes import (
    FIRST,
    KINDS,
    MOST_NAME_CHARS,
    MOST_NOTE_CHARS,
    MOST_QUOTES,
    NAMED,
    Quote,
    cells_of,
    quote_from,
    quote_of,
    text_of,
)
from pricing.book import quotes as quoted
from pricing.book.quotes import Quoted

OPEN, MORE = "quote_open", "quote_more"
EDITED = "quote_edited"  # in the session: the number of the quote that is changed
SAID = "quote_said"  # in the session: the sentence on the quote that was kept
STAR = "\N{BLACK STAR}"  # as in the charts
BOOK = "quotes"  # where quotes are kept if the scenario names no price book

LABELS = {
    "provider": ("Who offers it", "acme"),
    "gpu": ("GPU", "H100"),
    "usd": ("USD per GPU-hour", "2.20"),
    "gpus": ("GPUs a machine", "8"),
    "most": ("Most GPUs", "Any number"),
    "network": ("Network (Gbit/s a machine)", "usual"),
    "kind": ("Purchase", ""),
    "until": ("Valid until", "2027-01-31"),
    "note": ("Note", ""),
}


def _key(name: str) -> str:
    return f"quote_{name}"


def _typed() -> dict[str, str]:
    return {name: str(st.session_state.get(_key(name)) or "") for name in (*FIRST, *NAMED)}


def _fill(quote: Quote | None) -> None:
    """Set the fields to a quote, or empty them."""
    cells = cells_of(quote) if quote else {}
    for name in (*FIRST, *NAMED):
        st.session_state[_key(name)] = cells.get(name, KINDS[0] if name == "kind" else "")


def _take(texts: Sequence[str], **also: Any) -> bool:
    """Replace the quotes of the scenario, without chosen clouds that only an old one named; return
    whether they are valid."""
    after = link.scenario().model_copy(update={"quotes": tuple(texts), **also})
    known = resolve.cloud_names(after)
    clouds = tuple(cloud for cloud in after.cloud if cloud in known)
    return web_form.take_quotes(texts, **also | {"cloud": clouds})


def _close() -> None:
    st.session_state[OPEN] = False
    st.session_state.pop(EDITED, None)
    web_form.errors().pop("quotes", None)
    _fill(None)


def _submitted() -> None:
    """Add what was typed, or put it in place of the quote that is changed."""
    held, at = list(link.scenario().quotes), st.session_state.get(EDITED)
    try:
        text = text_of(quote_from(_typed()))
    except ValueError as e:
        web_form.errors()["quotes"] = f"{str(e)[:1].upper()}{str(e)[1:]}."
        return
    held[len(held) if at is None else at :] = [text, *held[len(held) if at is None else at + 1 :]]
    st.session_state.pop(SAID, None)
    if _take(held):
        _close()


def _edit(number: int) -> None:
    _fill(quote_of(link.scenario().quotes[number]))
    st.session_state[EDITED], st.session_state[OPEN] = number, True


def _remove(number: int) -> None:
    held = link.scenario().quotes
    _take([*held[:number], *held[number + 1 :]])
    st.session_state.pop(SAID, None)
    _close()


def _keep(number: int) -> None:
    """Move a quote from the link into the price book of the scenario, or one for quotes."""
    scenario = link.scenario()
    name = scenario.price_book or BOOK
    quote = quote_of(scenario.quotes[number])
    try:
        quoted.keep(quote, name, price_book.today())
    except RuncastError as e:
        web_form.errors()["quotes"] = str(e)
        return
    except OSError as e:
        web_form.errors()["quotes"] = f"The price book {name!r} cannot be written: {e.strerror}."
        return
    rest = [*scenario.quotes[:number], *scenario.quotes[number + 1 :]]
    clouds = (*scenario.cloud, quote.provider) if scenario.cloud else ()
    _take(rest, price_book=name, cloud=clouds)
    _close()
    st.session_state[SAID] = (
        f"Kept in the price book {name!r} of this server, which the answer uses from now on: the "
        "link holds its name in place of the quote."
    )
    if quote.purchase not in scenario.purchase:
        kind = _kind_label(quote.purchase)
        st.session_state[SAID] += f" Choose {kind!r} under Purchase to compare it."


@alone
def draw(drawn: Scenario) -> None:
    """Draw the button and the form behind it, and the quotes of the page's scenario."""
    scenario = link.scenario()
    if scenario.quotes != drawn.quotes or scenario.price_book != drawn.price_book:
        st.rerun(scope="app")
    number = st.session_state.get(EDITED)
    full = len(scenario.quotes) >= MOST_QUOTES and number is None
    st.session_state.setdefault(OPEN, False)
    part = st.popover(
        "Add a quote" if number is None else "Change the quote",
        key=OPEN,
        on_change=_toggled,
        disabled=full,
        help=f"A link holds {MOST_QUOTES} quotes: remove one, or keep it in a price book."
        if full
        else "A price that you were offered, compared with every other one",
    )
    if part.open and not full:
        with part:
            _draw_form(number)
    if sentence := st.session_state.get(SAID):
        st.success(as_text(sentence))
    if (wrong := web_form.errors().get("quotes")) and not part.open:
        st.error(as_text(labelled(wrong)))
    for n, found in enumerate(price_book.quotes_of(scenario)):
        _draw_quote(n, found, scenario)


def _toggled() -> None:
    if not st.session_state[OPEN]:
        _close()


def _draw_form(number: int | None) -> None:
    with st.form("quote_form", border=False):
        for name in FIRST:
            label, example = LABELS[name]
            st.text_input(label, key=_key(name), placeholder=example, max_chars=MOST_NAME_CHARS)
        with st.expander("More", key=MORE):
            for name in NAMED:
                label, example = LABELS[name]
                if name == "kind":
                    st.selectbox(label, KINDS, key=_key(name), format_func=_kind_label)
                else:
                    st.text_input(
                        label, key=_key(name), placeholder=example, max_chars=MOST_NOTE_CHARS
                    )
        st.form_submit_button(
            "Add" if number is None else "Change",
            key="quote_submit",
            type="primary",
            on_click=_submitted,
            width="stretch",
        )
        if wrong := web_form.errors().get("quotes"):
            st.error(as_text(labelled(wrong)))


def _kind_label(kind: str) -> str:
    return PURCHASES[kind].capitalize()


def _draw_quote(number: int, found: Quoted, scenario: Scenario) -> None:
    """One quote in a line, with what can be done with it."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"{STAR} {as_text(_sentence(found, scenario))}", width="content")
        for label, does in (("Edit", _edit), ("Remove", _remove), ("Keep in my price book", _keep)):
            st.button(
                label,
                key=f"quote_{label.split()[0].lower()}_{number}",
                type="tertiary",
                on_click=does,
                args=(number,),
            )


def _sentence(found: Quoted, scenario: Scenario) -> str:
    """A quote in words, with why it is not compared or not believable."""
    quote, offer = found.quote, found.offer
    parts = [
        f"Your quote: {quote.provider}, {quote.gpu}",
        f"{fmt.usd_per_hour(quote.usd_per_gpu_hour)} a GPU",
        f"machines of {fmt.count(offer.gpu_count)}",
    ]
    if quote.most_gpus is not None:
        parts.append(f"at most {fmt.count(quote.most_gpus)} GPUs")
    if quote.gbit_per_s is not None:
        parts.append(f"{quote.gbit_per_s:,.4g} Gbit/s a machine")
    if quote.purchase != "on_demand":
        parts.append(PURCHASES[quote.purchase])
    if quote.until:
        parts.append(f"until {quote.until}")
    if quote.note:
        parts.append(quote.note)
    sentence = f"{', '.join(parts)}."
    if found.is_over:
        sentence += " Its last day is over, so it is left out."
    elif scenario.gpu and quote.gpu not in scenario.gpu:
        sentence += " It is not compared: the scenario names other GPUs."
    if doubt := quoted.doubt(quote):
        sentence += f" {doubt[:1].upper()}{doubt[1:]}"
    return sentence

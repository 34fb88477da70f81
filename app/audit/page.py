"""The Audit page: a claim about a training run, and whether it is plausible."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pandas as pd
import streamlit as st

from app.audit import charts, document, form
from app.audit.audit import Audit
from app.audit.checks import TITLES
from app.audit.document import RULE, assumption_sentences, claim_sentence, verdict_sentence
from app.audit.fields import FIELDS
from app.document import chart_files, page
from app.document.escape import as_text
from app.document.glossary import explained
from app.forecast.machines import CUSTOM
from app.forecast.resolve import accelerator_names, current_prices, model_names
from app.web import figure, link
from app.web.answers import KEPT_S
from core.layout.precision import PRECISIONS
from core.scenario import Scenario
from core.scenario.types import Task


@st.cache_data(max_entries=64, ttl=KEPT_S, show_spinner="Auditing the claim")
def _kept(
    given: tuple[tuple[str, str], ...], query: tuple[tuple[str, str], ...], prices: str
) -> Audit | str:
    """The audit of a claim, cached until prices change. The link's scenario may hold the claim's
    model."""
    return form.audited(dict(given), Scenario.from_query(dict(query))[0])


@st.cache_data(max_entries=64, ttl=KEPT_S, show_spinner=False)
def _chart(of: str, theme: str, _rows: pd.DataFrame) -> chart_files.Spec:
    """The chart as a spec, cached by `of`, a text of its rows."""
    return chart_files.spec_of(charts.speeds(_rows, theme=theme))


def draw() -> None:
    """Draw the page: the claim on the left, its audit on the right."""
    scenario = link.scenario()
    form.take_over(scenario)
    st.markdown(
        "A claim names a model, tokens, GPUs, and the days or dollars they took. "
        "What does that imply, and do physics, published runs and our forecast allow it?"
    )
    for note in form.notes():
        st.warning(as_text(note))
    left, right = st.columns([2, 5], gap="large")
    with left:
        _draw_form()
    form.write()
    with right:
        found = _kept(
            tuple(form.texts().items()), tuple(scenario.to_query().items()), current_prices()
        )
        if isinstance(found, str):
            st.warning(as_text(found))
            _draw_rule()
        else:
            _draw_audit(found)


def _draw_form() -> None:
    with st.form("audit_claim", border=True):
        for name in form.USUAL:
            _draw_field(name)
        rest = [n for n in FIELDS if n not in form.USUAL]
        with st.expander("More that a claim may say"):
            for name in rest:
                _draw_field(name)
        st.form_submit_button("Audit", type="primary", on_click=form.edited)
    st.caption("Or one of two published claims:")
    for example in form.EXAMPLES:
        st.button(example, key=f"audit_example_{example}", on_click=form.fill,
                  args=(example,))  # fmt: skip


def _draw_field(name: str) -> None:
    label, text = FIELDS[name].label, FIELDS[name].help
    options: dict[str, Callable[[], list[str]]] = {
        "model": lambda: [*model_names(), CUSTOM],
        "gpu": lambda: [n for n in accelerator_names() if n != CUSTOM],
        "precision": lambda: list(PRECISIONS),
        "task": lambda: list(get_args(Task)),
    }
    if name in options:
        st.selectbox(
            label, ["", *options[name]()], key=form.key(name), help=text,
            accept_new_options=True,
        )  # fmt: skip
    else:
        st.text_input(label, key=form.key(name), help=text, max_chars=form.MAX_CHARS)


def _draw_audit(found: Audit) -> None:
    st.markdown(f"**{as_text(verdict_sentence(found))}**")
    st.markdown(as_text(claim_sentence(found.claim)))
    shown = form.headline(found)
    places = (*st.columns(2), *st.columns(2))  # four in a row would cut off their labels
    for place, (label, value, text) in zip(places, shown, strict=True):
        place.metric(label, value, help=text, border=True)
    st.subheader(
        "In every precision", anchor=False, help=explained("BF16, FP8, NVFP4, MFU, P10, P90", 600)
    )
    rows = charts.speed_rows(found)
    figure.draw(
        figure.Figure(
            key="audit_speeds",
            spec=_chart(rows.to_csv(), figure.theme(), rows),
            alt=charts.speeds_sentence(found),
            caption="Bar behind the forecast: its P10 to P90.",
            file="runcast_audit",
            data=lambda: rows,
        )
    )
    # One column per precision: a phone has room for three columns, not for eight.
    page.draw_turned(document.precisions(found), "In")
    st.caption("Of dense peak: with causal attention. By 6 P: without. Forecast: tokens/s a GPU.")
    st.subheader("Why", anchor=False)
    for s in found.speeds:
        st.markdown(f"**{s.precision}**: {as_text(s.reasons[0])}")
    st.subheader("Checks", anchor=False)
    for name, check in document.checks(found):
        status, title, sentence = st.columns([3, 4, 15], gap="small")
        status.badge(check.status, color=document.COLOURS[check.status])
        title.markdown(f"**{TITLES[name]}**")
        sentence.markdown(as_text(check.sentence))
    for assumption in assumption_sentences(found.claim):
        st.caption(as_text(assumption))
    _draw_rule()


def _draw_rule() -> None:
    with st.expander("How a claim is judged"):
        st.markdown(as_text(RULE))

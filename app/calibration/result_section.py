"""One result on the Calibrate page: its constants, held-out step, links, flags, provenance."""

from __future__ import annotations

from typing import Literal

import pandas as pd
import streamlit as st

from app.calibration import charts, document, words
from app.calibration.added import learned
from app.document import chart_files, page
from app.document.escape import as_text
from app.forecast.calibration_files import Kept
from app.forecast.calibrations import Calibration
from app.web import figure
from app.web.answers import KEPT_S
from core.errors import RuncastError
from core.scenario import Scenario

KEPT = 128  # cached charts, about 10 kB each
# By the status of a result, and by the severity of a flag.
COLOURS: dict[str, Literal["green", "gray", "orange", "red"]] = {
    "ok": "green", "note": "gray", "suspect": "orange", "invalid": "red"
}  # fmt: skip


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _chart(name: str, of: str, theme: str, _frames: tuple[pd.DataFrame, ...]) -> chart_files.Spec:
    """The Vega-Lite specification of a chart, cached by `of`, which identifies its rows."""
    made = {"factors": charts.factors, "ratios": charts.ratios, "history": charts.history}
    if name in made:
        return chart_files.spec_of(made[name](*_frames, theme=theme))
    return chart_files.spec_of(charts.collectives(*_frames, of=name, theme=theme))


def spec(name: str, *frames: pd.DataFrame) -> chart_files.Spec:
    """A chart by name; the axis that is shown names the one of collectives."""
    return _chart(name, "\n".join(f.to_csv() for f in frames), figure.theme(), frames)


def draw(kept: Kept, scenario: Scenario) -> None:
    """Draw everything that one result contains."""
    st.subheader(as_text(kept.label), anchor=False)
    try:
        c = learned(kept, scenario)
    except RuncastError as e:
        st.warning(as_text(str(e)))
        return
    st.badge(c.judged.status, color=COLOURS[c.judged.status])
    _draw_constants(c)
    _draw_held_out(c)
    _draw_links(c)
    st.markdown("**Which node is sick**")
    sentence = words.nodes_sentence(c)
    (st.warning if sentence.startswith("Slower") else st.markdown)(as_text(sentence))
    _draw_flags(c)
    with st.expander("Provenance"):
        page.draw_table(document.provenance(c))


def _draw_constants(c: Calibration) -> None:
    st.markdown("**Which constants moved**")
    st.markdown(as_text(words.moved_sentence(c)))
    table = document.constants(c)
    if c.fitted.constants:
        figure.draw(
            figure.Figure(
                key="calibration_factors",
                spec=spec("factors", document.factors(c)),
                alt=f"Factor of each constant with P10 to P90. {words.moved_sentence(c)}",
                caption="Mark: the factor that forecasts use, measured joined with what was "
                "assumed. Bar: P10 to P90. Dashed: as assumed. Latencies and elementwise "
                "operators are times.",
                file=f"runcast_calibration_{c.id}",
                data=table.frame,
            )
        )
    with st.expander("Every constant in figures"):
        page.draw_sorted(table, "calibration_constants", height="content")
    if missing := words.missing_sentence(c):
        st.caption(as_text(missing))


def _draw_held_out(c: Calibration) -> None:
    st.markdown("**Predicted against measured**")
    sentence = words.held_out_sentence(c.fitted.held_out)
    st.markdown(as_text(sentence))
    rows = document.held_out(c)
    if not rows.empty:
        figure.draw(
            figure.Figure(
                key="calibration_ratios",
                spec=spec("ratios", rows),
                alt=f"Measured over forecast of the held-out step. {sentence}",
                caption="Band: within 5%, which a calibrated GPU is held to; a CPU is not.",
                file="runcast_held_out",
                data=lambda: rows,
            )
        )


def _draw_links(c: Calibration) -> None:
    if not c.fitted.links:
        return
    st.markdown("**Collectives**")
    groups = list(dict.fromkeys(map(document.group_name, c.fitted.links)))
    left, right = st.columns(2)
    group = groups[0] if len(groups) == 1 else left.selectbox(
        "Process group", groups, key="calibration_group"
    )  # fmt: skip
    axes = list(charts.AXES)
    of = right.radio(
        "Shown", axes, index=axes.index(charts.BUS), horizontal=True, key="calibration_axis"
    )
    points = document.measured_points(c, group)
    if not points.empty:
        links = (words.link_sentence(x) for x in c.fitted.links if document.group_name(x) == group)
        figure.draw(
            figure.Figure(
                key="calibration_collectives",
                spec=spec(str(of or charts.BUS), points, document.fitted_lines(c, group)),
                alt=f"{of} against the size of the message, {group}: {' '.join(links)}",
                caption="Marks: measured. Lines: the curve that was fitted, without spikes.",
                file="runcast_collectives",
                data=lambda: points,
            )
        )
    page.draw_table(document.links(c))


def _draw_flags(c: Calibration) -> None:
    st.markdown("**Flags**")
    if not c.judged.flags:
        st.markdown("None: every gate is open.")
    for flag in c.judged.flags:
        left, right = st.columns([1, 9], gap="small")
        left.badge(flag.severity, color=COLOURS[flag.severity])
        meaning = words.MEANINGS.get(flag.code, "")
        right.markdown(f"{as_text(flag.sentence)} {as_text(meaning)}".strip())

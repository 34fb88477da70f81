"""One result on the Calibration page: its constants, held-out step, links, flags, provenance."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from app import calibration_charts as charts
from app import calibration_tables as tables
from app import calibration_words as words
from app import link
from app.calibration_added import Kept, learned
from app.calibrations import Calibration
from app.escape import as_text
from app.tables import csv_bytes
from core.errors import RuncastError
from core.scenario import Scenario

COLOURS: dict[str, Literal["green", "orange", "red"]] = {
    "ok": "green", "suspect": "orange", "invalid": "red"
}  # fmt: skip
FLAG_COLOURS: dict[str, Literal["gray", "orange", "red"]] = {
    "note": "gray", "suspect": "orange", "invalid": "red"
}  # fmt: skip


def draw(kept: Kept, scenario: Scenario, theme: str) -> None:
    """Everything that one result says."""
    st.subheader(as_text(words.kept_label(kept)), anchor=False)
    try:
        c = learned(kept, scenario)
    except RuncastError as e:
        st.warning(as_text(str(e)))
        return
    st.badge(c.judged.status, color=COLOURS[c.judged.status])
    _draw_constants(c, theme)
    _draw_held_out(c, theme)
    _draw_links(c, theme)
    st.markdown("**Which node is sick**")
    sentence = words.nodes_sentence(c)
    (st.warning if sentence.startswith("Slower") else st.markdown)(as_text(sentence))
    _draw_flags(c)
    with st.expander("Provenance"):
        st.table(tables.provenance(c).map(as_text), hide_index=True)


def _draw_constants(c: Calibration, theme: str) -> None:
    st.markdown("**Which constants moved**")
    st.markdown(as_text(words.moved_sentence(c)))
    if c.fitted.constants:
        st.altair_chart(
            charts.factors(tables.factors(c), theme=theme),
            key="calibration_factors",
            width="stretch",
            alt=f"Factor of each constant with P10 to P90. {words.moved_sentence(c)}",
        )
        st.caption(
            "Mark: the factor that forecasts use, measured joined with what was assumed. Bar: P10 "
            "to P90. Dashed: as assumed. Latencies and elementwise operators are times."
        )
    frame = tables.constants(c)
    with st.expander("Every constant in figures"):
        st.dataframe(frame, key="calibration_constants", hide_index=True, height="content",
                     alt="Constants of this result")  # fmt: skip
        address = link.address(link.scenario(), st.context.url)
        st.download_button(
            "Download CSV",
            data=lambda: csv_bytes(frame, address),
            file_name=f"runcast_calibration_{c.id}.csv",
            mime="text/csv",
            key="calibration_constants_csv",
            on_click="ignore",
        )
    if missing := words.missing_sentence(c):
        st.caption(as_text(missing))


def _draw_held_out(c: Calibration, theme: str) -> None:
    st.markdown("**Predicted against measured**")
    sentence = words.held_out_sentence(c.fitted.held_out)
    st.markdown(as_text(sentence))
    rows = tables.held_out((c,))
    if not rows.empty:
        st.altair_chart(
            charts.ratios(rows, theme=theme), key="calibration_ratios", width="stretch",
            alt=f"Forecast over measured of the held-out step. {sentence}",
        )  # fmt: skip
        st.caption("Band: within 5%, which a calibrated GPU is held to; a CPU is not.")


def _draw_links(c: Calibration, theme: str) -> None:
    if not c.fitted.links:
        return
    st.markdown("**Collectives**")
    groups = list(dict.fromkeys(map(tables.group_name, c.fitted.links)))
    left, right = st.columns(2)
    group = groups[0] if len(groups) == 1 else left.selectbox(
        "Process group", groups, key="calibration_group"
    )  # fmt: skip
    of = right.segmented_control(
        "Shown", list(charts.AXES), default=charts.BUS, required=True, key="calibration_axis"
    )
    points = tables.measured_points(c, group)
    if not points.empty:
        st.altair_chart(
            charts.collectives(
                points, tables.fitted_lines(c, group), of=str(of or charts.BUS), theme=theme
            ),
            key="calibration_collectives",
            width="stretch",
            alt=f"{of} against the size of the message, {group}: "
            + " ".join(words.link_sentence(x) for x in c.fitted.links
                       if tables.group_name(x) == group),
        )  # fmt: skip
        st.caption("Marks: measured. Lines: the curve that was fitted, without spikes.")
    st.table(tables.links(c).map(lambda v: as_text(str(v))), hide_index=True)


def _draw_flags(c: Calibration) -> None:
    st.markdown("**Flags**")
    if not c.judged.flags:
        st.markdown("None: every gate is open.")
    for flag in c.judged.flags:
        left, right = st.columns([1, 9], gap="small")
        left.badge(flag.severity, color=FLAG_COLOURS[flag.severity])
        meaning = words.MEANINGS.get(flag.code, "")
        right.markdown(f"{as_text(flag.sentence)} {as_text(meaning)}".strip())

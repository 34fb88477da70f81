"""The Calibrate page: measured machines, and how they change the plan of the link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pandas as pd
import streamlit as st

from app.calibration import added, charts, document, sources
from app.document import chart_files
from app.document.escape import as_text
from app.document.glossary import explained
from app.document.page import draw_blocks, draw_list, draw_sorted, draw_table
from app.forecast import calibrations, resolve
from app.forecast.calibrations import Calibration, typed_of
from app.forecast.price_book import today
from app.scenario.link import changed
from app.web import figure, link
from app.web.answers import KEPT_S
from core.errors import RuncastError
from core.scenario import Scenario
from core.search.plan import Answer, Plan
from runners.calibration.result import MAX_BYTES

UPLOADS, DONE = "calibration_uploads", "calibration_done"
AnswerOf = Callable[[Scenario], Answer]
MOST_SHOWN = 20  # results drawn with their switches; the command line lists all of them
KEPT = 128  # cached charts, about 10 kB each
COLOURS: dict[str, Literal["green", "orange", "red"]] = {
    "ok": "green", "suspect": "orange", "invalid": "red"
}  # fmt: skip


def draw(answer_of: AnswerOf) -> None:
    """Draw the page: the calibrations in use and their effect, all results, one in detail."""
    scenario = link.scenario()
    st.markdown(
        "A calibration is ten minutes of measuring on a real node: matmuls of your plan, "
        "attention, memory, links. Used in a plan it replaces what is assumed of that "
        "accelerator, and removing it brings the old forecast back.",
        help=explained("Calibration, Node"),
    )
    for note in link.notes():
        st.warning(as_text(note))
    rows, sentence = added.listed()
    plan = _draw_effect(scenario, answer_of, rows)
    _draw_results(scenario, rows, sentence)
    _draw_add(scenario, plan, is_empty=not rows)
    if shown := _shown(scenario, rows, plan):
        _draw_detail(shown, scenario)
    if plan is not None:
        _draw_sources(scenario, plan)
    _draw_history(scenario, rows, plan)


def _draw_effect(scenario: Scenario, answer_of: AnswerOf, rows: list[Calibration]) -> Plan | None:
    """Draw the plan without and with the calibrations; return the plan, None if there is none."""
    try:
        if not scenario.calibration:
            plan = answer_of(scenario).chosen(scenario.plan)
            st.info(as_text(_unused_sentence(plan, rows)))
            return plan
        changes = document.changes(scenario, answer_of)
    except RuncastError as e:
        st.error(as_text(str(e)))
        return None
    sentence, width = document.changes_sentences(changes)
    st.subheader("Effect on the plan", anchor=False)
    st.markdown(f"**{as_text(sentence)}**")
    draw_table(document.changes_table(changes))
    st.caption(as_text(width))
    return changes[0][2]


def _unused_sentence(plan: Plan | None, rows: list[Calibration]) -> str:
    place = f"The plan of this link is on {plan.offer.accelerator}" if plan else "Nothing fits"
    if plan and any(c.accelerator == plan.offer.accelerator for c in rows):
        rest = "a result of it is below: switch it on."
    elif rows:
        rest = "no result below is of it."
    else:
        rest = (
            "there is no result yet: run the command below where the GPUs are, and upload the file."
        )
    return f"No calibration is in use. {place}; {rest}"


def _draw_results(scenario: Scenario, rows: list[Calibration], sentence: str) -> None:
    if not rows:
        return
    st.subheader("Results", anchor=False)
    for c in rows[:MOST_SHOWN]:
        with st.container(border=True, gap="xsmall"):
            _draw_row(scenario, c, rows)
    if len(rows) > MOST_SHOWN:
        st.caption(f"{len(rows) - MOST_SHOWN} older ones: `runcast calibrations list`.")
    if sentence:
        st.caption(as_text(f"Notes are not shown: {sentence}"))


def _draw_row(scenario: Scenario, c: Calibration, rows: list[Calibration]) -> None:
    """Draw one result with its switch and its button to remove it."""
    left, right = st.columns([5, 1], vertical_alignment="center")
    with left:
        st.markdown(f"**{as_text(c.label)}**")
        if not c.problem:
            key = f"calibration_use_{c.id}"
            st.session_state[key] = c.id in scenario.calibration
            st.checkbox(f"Use {c.id[:8]} in this plan", key=key, on_change=_switch, args=(c,))
    with right, st.popover("Remove", key=f"calibration_remove_{c.id}"):
        st.markdown("The file is deleted for everybody who uses this server.")
        st.button("Remove it", key=f"calibration_gone_{c.id}", on_click=_remove, args=(c,))
    if c.problem:
        st.error(as_text(c.problem))
    else:
        st.caption(as_text(document.software_sentence(c)))
    if stale := document.staleness(c, rows, today()):
        st.warning(as_text(" ".join(stale)))


def _draw_add(scenario: Scenario, plan: Plan | None, *, is_empty: bool) -> None:
    st.subheader("Add a result", anchor=False)
    kind, text = st.session_state.pop(DONE, ("", ""))
    if text:
        (st.error if kind == "error" else st.success)(as_text(text))
    largest = min(MAX_BYTES // 10**6, int(st.get_option("server.maxUploadSize")))
    st.file_uploader(
        "A result of `runcast calibrate` or `runcast import --out` (JSON)",
        type="json",
        key=_upload_key(),
        max_upload_size=largest,
        on_change=_uploaded,
        help="calib-result/1 or import-result/1. It is checked, and kept on this server for "
        "everybody who uses it. "
        "Larger files: `runcast calibrations add FILE`.",
    )
    with st.expander("How to measure for this plan", expanded=is_empty):
        st.markdown(
            "Where the GPUs are, with torch installed there; it asks before anything starts that "
            "costs money. `--launcher` is local, ssh, slurm, ray, sky or k8s; `--dry-run` only "
            "prints what would run."
        )
        st.code(document.commands(scenario, plan), language=None, wrap_lines=True)


def _shown(scenario: Scenario, rows: list[Calibration], plan: Plan | None) -> Calibration | None:
    """The result to draw in detail. Results in use come first, then the plan's accelerator."""
    name = plan.offer.accelerator if plan else ""
    order = sorted(
        (c for c in rows if not c.problem),
        key=lambda c: (c.id not in scenario.calibration, c.accelerator != name),
    )
    if len(order) < 2:
        return order[0] if order else None
    by_id = {c.id: c for c in order}
    selected = st.selectbox(
        "Result in detail",
        list(by_id),
        format_func=lambda name: by_id[name].label,
        key="calibration_shown",
    )
    return by_id.get(selected, order[0])


def _draw_detail(calibration: Calibration, scenario: Scenario) -> None:
    """Draw everything that one result contains."""
    st.subheader(as_text(calibration.label), anchor=False)
    try:
        c = calibrations.of_id(calibration.id, scenario)
    except RuncastError as e:
        st.warning(as_text(str(e)))
        return
    st.badge(c.judged.status, color=COLOURS[c.judged.status])
    sentence, table = document.moved_sentence(c), document.constants(c)
    st.markdown(as_text(sentence))
    if c.fitted.constants:
        _draw_chart(
            "factors",
            document.factors([c]),
            alt=f"Factor of each constant with P10 to P90. {sentence}",
            caption="Mark: the factor that forecasts use, measured joined with what was "
            "assumed. Bar: P10 to P90. Dashed: as assumed. Latencies and elementwise "
            "operators are times.",
            file=f"runcast_calibration_{c.id}",
            data=table.frame(),
        )
    with st.expander("Every constant in figures"):
        draw_sorted(table, "calibration_constants", height="content")
    if missing := document.missing_sentence(c):
        st.caption(as_text(missing))
    _draw_links(c)
    draw_blocks(document.tested_blocks(c))


def _draw_links(c: Calibration) -> None:
    if not c.fitted.links:
        return
    st.markdown("**Collectives**")
    groups = list(dict.fromkeys(map(document.group_name, c.fitted.links)))
    left, right = st.columns(2)
    group = groups[0] if len(groups) == 1 else left.selectbox(
        "Process group", groups, key="calibration_group"
    )  # fmt: skip
    axis = right.radio("Shown", list(charts.AXES), horizontal=True, key="calibration_axis")
    points = document.measured_points(c, group)
    if not points.empty:
        lines = (x for x in c.fitted.links if document.group_name(x) == group)
        sentences = " ".join(map(document.link_sentence, lines))
        _draw_chart(
            "collectives",
            points,
            document.fitted_lines(c, group),
            axis=str(axis or charts.BUS),
            alt=f"{axis} against the size of the message, {group}: {sentences}",
            caption="Marks: measured. Lines: the curve that was fitted, without spikes.",
            file="runcast_collectives",
        )
    draw_list(map(document.link_sentence, c.fitted.links))


def _draw_chart(
    name: str,
    *frames: pd.DataFrame,
    alt: str,
    caption: str,
    file: str,
    axis: str = "",
    data: pd.DataFrame | None = None,
) -> None:
    """Draw a chart by name from its rows, with their first frame (or `data`) to download."""
    rows = "\n".join(f.to_csv() for f in frames)
    figure.draw(
        figure.Figure(
            key=f"calibration_{name}",
            spec=_spec(name, axis, rows, figure.theme(), frames),
            alt=alt,
            caption=caption,
            file=file,
            data=lambda: frames[0] if data is None else data,
        )
    )


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _spec(
    name: str, axis: str, rows: str, theme: str, _frames: tuple[pd.DataFrame, ...]
) -> chart_files.Spec:
    """The Vega-Lite specification of a chart, cached by its rows as text."""
    if name == "collectives":
        return chart_files.spec_of(charts.collectives(*_frames, axis=axis, theme=theme))
    chart = charts.factors if name == "factors" else charts.history
    return chart_files.spec_of(chart(*_frames, theme=theme))


def _draw_sources(scenario: Scenario, plan: Plan) -> None:
    st.subheader(
        as_text(f"Sources of the figures of {plan.offer.accelerator}"),
        anchor=False,
        help=explained("Measured, Fitted, Published, Assumed, TFLOP/s, Scale-up, Scale-out", 600),
    )
    try:
        rows = sources.sources_of(scenario, plan.offer.accelerator)
    except RuncastError as e:
        st.error(as_text(str(e)))
        return
    st.markdown(as_text(sources.summary(rows)))
    draw_table(sources.table(rows))
    st.caption(
        "In the order of trust: measured here, measured elsewhere, fitted on published runs, "
        "published, assumed. The network of a price offer counts before that of the accelerator."
    )


def _draw_history(scenario: Scenario, rows: list[Calibration], plan: Plan | None) -> None:
    names = sorted({c.accelerator for c in rows if not c.problem})
    if not names:
        return
    st.subheader("History", anchor=False)
    first = plan.offer.accelerator if plan and plan.offer.accelerator in names else names[0]
    name = first if len(names) == 1 else st.selectbox(
        "Accelerator", names, index=names.index(first), key="calibration_history_of"
    )  # fmt: skip
    dated: list[Calibration] = []
    for c in rows:
        if c.accelerator == name and c.measured_on is not None:
            try:
                dated.append(calibrations.of_id(c.id, scenario))
            except RuncastError as e:
                st.caption(as_text(f"{c.label}: {e}"))
    if len(dated) < 2:
        st.caption(as_text(f"Fewer than two results of {name} have a date: a history needs two."))
        return
    _draw_chart(
        "history",
        document.factors(dated),
        alt=f"Factor of each constant of {name} over time, {len(dated)} results.",
        caption="Dashed: as assumed.",
        file="runcast_calibration_history",
    )


def _upload_key() -> str:
    """Key of the uploader; it changes after each file that is kept, which empties the widget."""
    return f"calibration_file_{st.session_state.get(UPLOADS, 0)}"


def _uploaded() -> None:
    if (file := st.session_state.get(_upload_key())) is not None:
        take(file.getvalue())


def take(data: bytes) -> None:
    """Keep an uploaded result, or show why it is refused."""
    try:
        done = added.add(data, typed=typed_of(link.scenario()))
    except (RuncastError, OSError) as e:
        reason = str(e) if isinstance(e, RuncastError) else f"It cannot be kept: {e.strerror}."
        st.session_state[DONE] = ("error", reason)
        return
    st.session_state[UPLOADS] = st.session_state.get(UPLOADS, 0) + 1
    first = f"{document.added_sentence(done)} Switch it on to use it in this plan."
    st.session_state[DONE] = ("", " ".join((first, *done.sentences)))


def _switch(c: Calibration) -> None:
    used = bool(st.session_state[f"calibration_use_{c.id}"])
    _change(added.switched(link.scenario(), c, used=used))


def _change(calibration: tuple[str, ...]) -> None:
    """Set the calibrations of the scenario and its link; show an error if they do not fit."""
    try:
        scenario, notes = resolve.resolve(changed(link.scenario(), calibration=calibration))
    except RuncastError as e:
        notes = [str(e)]
    if notes:
        st.session_state[DONE] = ("error", " ".join(notes))
    else:
        link.edit(scenario)


def _remove(c: Calibration) -> None:
    try:
        failures = added.remove(c.id)
    except (RuncastError, OSError) as e:
        st.session_state[DONE] = ("error", str(e))
        return
    st.session_state[DONE] = ("", " ".join((f"Removed {c.label}.", *failures)))
    used = link.scenario().calibration
    if c.id in used:
        _change(tuple(name for name in used if name != c.id))

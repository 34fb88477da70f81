"""The Calibrate page: measured machines, and how they change the plan of the link."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from app.calibration import (
    added,
    document,
    effect,
    result_section,
    sources,
    words,
)
from app.document.escape import as_text
from app.document.glossary import explained
from app.document.page import draw_table
from app.forecast import resolve
from app.forecast.calibration_files import Kept
from app.forecast.calibrations import Calibration
from app.forecast.price_book import today
from app.scenario.link import changed
from app.web import figure, link
from core.errors import RuncastError
from core.scenario import Scenario
from core.search.plan import Answer, Plan
from runners.calibration.result import MAX_BYTES

UPLOADS, DONE = "calibration_uploads", "calibration_done"
AnswerOf = Callable[[Scenario], Answer]
MOST_SHOWN = 20  # results drawn with their switches; the command line lists all of them


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
    found, sentence = added.listed()
    plan = _draw_effect(scenario, answer_of, found)
    _draw_results(scenario, found, sentence)
    _draw_add(scenario, plan, is_empty=not found)
    if shown := _shown(scenario, found, plan):
        result_section.draw(shown, scenario)
    if plan is not None:
        _draw_sources(scenario, plan)
    _draw_history(scenario, found, plan)


def _draw_effect(scenario: Scenario, answer_of: AnswerOf, found: list[Kept]) -> Plan | None:
    """Draw the plan without and with the calibrations; return the plan, None if there is none."""
    try:
        if not scenario.calibration:
            plan = answer_of(scenario).chosen(scenario.plan)
            _draw_nothing_in_use(plan, found)
            return plan
        effects = effect.effects_of(scenario, answer_of)
    except RuncastError as e:
        st.error(as_text(str(e)))
        return None
    st.subheader("What it moves", anchor=False)
    st.markdown(f"**{as_text(effect.sentence(effects))}**")
    draw_table(effect.table(effects))
    st.caption(as_text(effect.interval_sentence(effects)))
    return effects[0].after


def _draw_nothing_in_use(plan: Plan | None, found: list[Kept]) -> None:
    what = f"The plan of this link is on {plan.offer.accelerator}" if plan else "Nothing fits"
    if plan and any(k.accelerator == plan.offer.accelerator for k in found):
        rest = "a result of it is below: switch it on."
    elif found:
        rest = "no result below is of it."
    else:
        rest = (
            "there is no result yet: run the command below where the GPUs are, and upload the file."
        )
    st.info(as_text(f"No calibration is in use. {what}; {rest}"))


def _draw_results(scenario: Scenario, found: list[Kept], sentence: str) -> None:
    if not found:
        return
    st.subheader("Results", anchor=False)
    for kept in found[:MOST_SHOWN]:
        with st.container(border=True, gap="xsmall"):
            _draw_kept(scenario, kept, found)
    if len(found) > MOST_SHOWN:
        st.caption(f"{len(found) - MOST_SHOWN} older ones: `runcast calibrations list`.")
    if sentence:
        st.caption(as_text(f"Notes are not shown: {sentence}"))


def _draw_kept(scenario: Scenario, kept: Kept, found: list[Kept]) -> None:
    """Draw one result with its switch and its button to remove it."""
    left, right = st.columns([5, 1], vertical_alignment="center")
    with left:
        st.markdown(f"**{as_text(kept.label)}**")
        if not kept.problem:
            key = f"calibration_use_{kept.id}"
            st.session_state[key] = kept.id in scenario.calibration
            use = f"Use {kept.id[:8]} in this plan"
            st.checkbox(use, key=key, on_change=_switched, args=(kept,))
    with right, st.popover("Remove", key=f"calibration_remove_{kept.id}"):
        st.markdown("The file is deleted for everybody who uses this server.")
        st.button("Remove it", key=f"calibration_gone_{kept.id}", on_click=_removed, args=(kept,))
    if kept.problem:
        st.error(as_text(kept.problem))
    else:
        st.caption(as_text(words.software_sentence(kept)))
    if old := words.staleness(kept, found, today()):
        st.warning(as_text(" ".join(old)))


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
        st.code(words.commands(scenario, plan), language=None, wrap_lines=True)


def _shown(scenario: Scenario, found: list[Kept], plan: Plan | None) -> Kept | None:
    """The result to draw in detail. Results in use come first, then the plan's accelerator."""
    sound = [k for k in found if not k.problem]
    if not sound:
        return None
    of = plan.offer.accelerator if plan else ""
    order = sorted(sound, key=lambda k: (k.id not in scenario.calibration, k.accelerator != of))
    if len(order) == 1:
        return order[0]
    by_id = {k.id: k for k in order}
    chosen = st.selectbox(
        "Result in detail",
        list(by_id),
        format_func=lambda name: by_id[name].label,
        key="calibration_shown",
    )
    return by_id.get(chosen, order[0])


def _draw_sources(scenario: Scenario, plan: Plan) -> None:
    st.subheader(
        as_text(f"Where the figures of {plan.offer.accelerator} are from"),
        anchor=False,
        help=explained("Measured, Fitted, Published, Assumed, TFLOP/s, Scale-up, Scale-out", 600),
    )
    try:
        found = sources.sources_of(scenario, plan.offer.accelerator)
    except RuncastError as e:
        st.error(as_text(str(e)))
        return
    st.markdown(as_text(sources.summary(found)))
    draw_table(document.sources(found))
    st.caption(
        "In the order of trust: measured here, measured elsewhere, fitted on published runs, "
        "published, assumed. The network of a price offer counts before that of the accelerator."
    )


def _draw_history(scenario: Scenario, found: list[Kept], plan: Plan | None) -> None:
    names = sorted({k.accelerator for k in found if not k.problem})
    if not names:
        return
    st.subheader("History", anchor=False)
    first = plan.offer.accelerator if plan and plan.offer.accelerator in names else names[0]
    name = first if len(names) == 1 else st.selectbox(
        "Accelerator", names, index=names.index(first), key="calibration_history_of"
    )  # fmt: skip
    known: list[Calibration] = []
    for kept in found:
        if kept.accelerator == name and kept.measured_on is not None:
            try:
                known.append(added.learned(kept, scenario))
            except RuncastError as e:
                st.caption(as_text(f"{kept.label}: {e}"))
    if len(known) < 2:
        st.caption(
            as_text(f"One result of {name} with a date, or none, can be read: a history needs two.")
        )
        return
    rows = document.history(known)
    figure.draw(
        figure.Figure(
            key="calibration_history",
            spec=result_section.spec("history", rows),
            alt=f"Factor of each constant of {name} over time, {len(known)} results.",
            caption="Dashed: as assumed.",
            file="runcast_calibration_history",
            data=lambda: rows,
        )
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
        done = added.add(data, typed=added.typed_of(link.scenario()))
    except (RuncastError, OSError) as e:
        reason = str(e) if isinstance(e, RuncastError) else f"It cannot be kept: {e.strerror}."
        st.session_state[DONE] = ("error", reason)
        return
    st.session_state[UPLOADS] = st.session_state.get(UPLOADS, 0) + 1
    first = f"{words.added_sentence(done)} Switch it on to use it in this plan."
    st.session_state[DONE] = ("", " ".join((first, *done.sentences)))


def _switched(kept: Kept) -> None:
    used = bool(st.session_state[f"calibration_use_{kept.id}"])
    _change(added.switched(link.scenario(), kept, used=used))


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


def _removed(kept: Kept) -> None:
    try:
        failures = added.remove(kept.id)
    except (RuncastError, OSError) as e:
        st.session_state[DONE] = ("error", str(e))
        return
    st.session_state[DONE] = ("", " ".join((f"Removed {kept.label}.", *failures)))
    if kept.id in link.scenario().calibration:
        _change(tuple(c for c in link.scenario().calibration if c != kept.id))

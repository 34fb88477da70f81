"""The Run page: the log of a run against the forecast of its plan, over time."""

from __future__ import annotations

import hashlib

import pandas as pd
import streamlit as st

from app.document import chart_files
from app.document.escape import as_text
from app.document.page import draw_list
from app.scenario.link import changed
from app.scenario.link_query import link_query
from app.watch import charts
from app.watch.diagnosis import cause_sentences
from app.watch.document import alert_sentence, event_sentence, state_sentences
from app.watch.moves import move_sentences, moves_of
from app.watch.plan import plan_of_answer
from app.watch.run import (
    MAX_BYTES,
    MOST_FILES,
    Point,
    WatchedRun,
    failure_fields,
    failure_sentence,
    over_time,
    with_speed,
)
from app.web import figure, link
from app.web.selection import chosen
from core.errors import RuncastError
from core.scenario import Scenario
from core.search.plan import Answer, Plan
from core.units import HOUR_S
from pricing.offers import snapshot

UPLOADS, READ = "run_logs", "run_read"  # READ: digest and run of what this session uploaded
NEWEST = 20
Watched = tuple[WatchedRun, list[Point]]


def draw(scenario: Scenario, answer: Answer) -> None:
    """Draw the page for a scenario and its answer."""
    plan = chosen(scenario, answer) if answer.plans else None
    if plan is None:
        st.info("No plan is forecast for this scenario: change it on the Plan page.")
        return
    st.markdown(
        "Upload the log of the run that this plan became: it is held against the forecast. A log "
        "stays in this session; the link has the scenario, and what you take over from the run."
    )
    largest = min(MAX_BYTES // 10**6, int(st.get_option("server.maxUploadSize")))
    given = st.file_uploader(
        "Logs of one run",
        key=UPLOADS,
        accept_multiple_files=True,
        max_upload_size=largest,
        help="The console of Megatron, TorchTitan, NeMo, DeepSpeed, Hugging Face and others, a "
        "trainer_state.json, or the logs of several ranks; with them `nvidia-smi dmon`, a profiler "
        "trace or nccl-tests, which tell causes apart. Event files of TensorBoard: "
        f"`runcast watch`. At most {MOST_FILES} files, gzip or not; of a longer log its last part.",
    )
    with st.expander("While it runs: follow it where its log is", expanded=not given):
        st.code(
            f"runcast watch LOG --offers --link '?{link_text(scenario, plan)}'",
            language=None,
            wrap_lines=True,
        )
    if not given:
        st.session_state.pop(READ, None)
        return
    try:
        state, points = _read(scenario, plan, [(f.name, f.getvalue()) for f in given])
    except RuncastError as e:
        st.error(as_text(str(e)))
        return
    _draw_state(state)
    if points:
        _draw_charts(state, pd.DataFrame(points))
    _draw_alerts(state)
    _draw_moves(state)
    _draw_learned(scenario, state)


def link_text(scenario: Scenario, plan: Plan) -> str:
    """The query of the scenario with its plan."""
    return link_query(changed(scenario, plan=plan.id), snapshot(scenario.prices).id)


def _read(scenario: Scenario, plan: Plan, files: list[tuple[str, bytes]]) -> Watched:
    """The run of the uploaded files, read once and kept for this session only."""
    digest = hashlib.sha256(link_text(scenario, plan).encode())
    for name, content in files:
        digest.update(b"\0" + name.encode() + b"\0" + content)
    kept: dict[str, Watched] = st.session_state.get(READ, {})
    if (key := digest.hexdigest()) not in kept:
        kept = st.session_state[READ] = {key: over_time(plan_of_answer(scenario, plan), files)}
    return kept[key]


def _draw_state(state: WatchedRun) -> None:
    for text in state.mismatches:
        st.error(as_text(text))
    for n, text in enumerate(state_sentences(state)):
        st.markdown(f"**{as_text(text)}**" if n == 0 else as_text(text))
    for text in state.notes:
        st.caption(as_text(text))


def _draw_charts(state: WatchedRun, rows: pd.DataFrame) -> None:
    theme = figure.theme()
    planned = state.planned
    drawn = {"speed": charts.speed(
        rows, low=planned.p10, middle=planned.p50, high=planned.p90, theme=theme
    )}  # fmt: skip
    drawn["end"] = charts.narrowing(
        rows, of="end", title="End, in hours after the start",
        forecast=state.planned.end_s / HOUR_S, theme=theme,
    )  # fmt: skip
    if "usd_p50" in rows:
        usd = None if planned.usd_per_hour is None else (
            state.planned.end_s / HOUR_S * planned.usd_per_hour
        )  # fmt: skip
        drawn["usd"] = charts.narrowing(
            rows, of="usd", title="Cost of the whole run (USD)", forecast=usd, theme=theme
        )
    specs = {name: chart_files.spec_of(chart) for name, chart in drawn.items()}
    above = st.container()
    left, right = st.columns(2)
    places = {"speed": above, "end": left, "usd": right}
    for name, (title, text, caption) in CHARTS.items():
        with places[name]:
            figure.draw_named(
                "run", specs, name, title, text, caption, f"runcast_run_{name}", lambda: rows
            )


CHARTS = {
    "speed": ("Measured against forecast", "Tokens per second of the run over time.",
              "Grey: P10 to P90 of the forecast; dashed: its P50."),
    "end": ("When it ends, as it narrows", "The expected end of the run over time.",
            "Line and band: P50 and P10 to P90 at each time; dashed: the forecast."),
    "usd": ("What it costs, as it narrows", "The expected cost of the run over time.",
            "Line and band: P50 and P10 to P90 at each time; dashed: the forecast."),
}  # fmt: skip


def _draw_alerts(state: WatchedRun) -> None:
    st.subheader("Alerts", anchor=False)
    if not state.alerts:
        st.markdown("None so far.")
    for n, alert in enumerate(reversed(state.alerts[-NEWEST:])):
        st.warning(as_text(alert_sentence(alert, state)))
        if causes := cause_sentences(alert, state):
            with st.expander("Likely causes, in the order to look for them", key=f"run_cause_{n}"):
                draw_list(causes)
    if events := [e for e in state.events if e.kind != "start_up"]:
        st.subheader("Events", anchor=False)
        draw_list(event_sentence(e) for e in events[-NEWEST:])


def _draw_moves(state: WatchedRun) -> None:
    part = st.expander("Stay or move", key="run_moves", on_change="rerun")
    if part.open:
        with part:
            draw_list(move_sentences(state, moves_of(state)))


def _draw_learned(scenario: Scenario, state: WatchedRun) -> None:
    """What the next plan may take over: the link has it then."""
    st.subheader("For the next plan", anchor=False)
    try:
        measured = with_speed(scenario, state)
    except RuncastError as e:
        st.caption(as_text(str(e)))
        measured = None
    fields = failure_fields(state)
    if measured is None and not fields:
        st.markdown("Too few steps, restarts and checkpoints to take anything over.")
    if measured is not None:
        st.button(
            "Forecast with the measured speed", key="run_use_speed", on_click=link.edit,
            args=(measured,), help="As a run of your own: the forecasts of this scenario move "
            "towards it. `runcast import` keeps a log for every scenario.",
        )  # fmt: skip
    if fields:
        st.markdown(as_text(failure_sentence(fields, state)))
        st.button(
            "Forecast with these stops and checkpoints", key="run_use_failures",
            on_click=_use_failures, args=(scenario, fields),
        )  # fmt: skip


def _use_failures(scenario: Scenario, fields: dict[str, float]) -> None:
    more = {"async_checkpoint": None} if "checkpoint_s" in fields else {}
    link.edit(changed(scenario, **fields, **more))

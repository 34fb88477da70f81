"""The part of the Accuracy page for uploading one's own runs."""

from __future__ import annotations

import hashlib

import streamlit as st

from app.accuracy import document, words
from app.accuracy import own_runs as own
from app.accuracy.rows import where
from app.accuracy.runs_section import download, draw_ratios, ratios
from app.accuracy.validate import Report
from app.document import format as fmt
from app.document.escape import as_text
from app.document.page import draw_list, draw_sorted
from core.errors import RunsError

UPLOADED = "accuracy_uploaded"  # digest and report of the files that this session uploaded
READ = 20  # most rows shown as sentences
UPLOAD_MB = own.MAX_BYTES // 10**6


def draw() -> None:
    """Draw the upload of two files and the errors of their forecasts."""
    st.subheader("Your own runs", anchor=False)
    st.markdown(
        "Upload runs that you measured, one a row: the forecast sees what was configured, then it "
        "is compared with what you measured. A file stays in this session and is stored nowhere."
    )
    left, right = st.columns(2)
    runs = left.file_uploader(
        "Measured runs (CSV)",
        type="csv",
        key="accuracy_runs",
        max_upload_size=UPLOAD_MB,
        help=f"At least run_id, model_key, accelerator, num_gpus, seq_len and "
        f"tokens_per_s_per_gpu or peak_mem_gib; at most {own.MAX_ROWS:,} rows.",
    )
    models = right.file_uploader(
        "Their models (CSV), unless model_key names a preset",
        type="csv",
        key="accuracy_models",
        max_upload_size=UPLOAD_MB,
        help="model_key, layers, hidden, ffn_hidden, heads, kv_heads, head_dim, vocab, ...",
    )
    left.download_button(
        "Example of such a file",
        data=own.example_csv,
        file_name="runcast_runs_example.csv",
        mime="text/csv",
        key="accuracy_example",
        on_click="ignore",
    )
    if runs is None:
        st.session_state.pop(UPLOADED, None)
        return
    try:
        report = _report_of(runs.getvalue(), models.getvalue() if models else None, runs.name)
    except RunsError as e:
        st.error(as_text(str(e)))
        return
    _draw_uploaded(report)


def _report_of(runs: bytes, models: bytes | None, name: str) -> Report:
    """The report of the uploaded files, computed once and kept for this session only."""
    digest = hashlib.sha256(runs + b"\0" + (models or b"")).hexdigest()
    kept: dict[str, Report] = st.session_state.get(UPLOADED, {})
    if digest not in kept:
        kept = st.session_state[UPLOADED] = {digest: own.report_of_upload(runs, models, name=name)}
    return kept[digest]


def _draw_uploaded(report: Report) -> None:
    for note in report.file_notes:
        st.info(as_text(note))
    named = len(report.offences)
    st.markdown(
        as_text(
            f"{fmt.count(len(report.runs))} rows: {fmt.count(report.num_used)} used, "
            f"{fmt.count(named)} named with a reason."
        )
    )
    if named:
        _draw_named(report)
    every = document.chosen_rows(report, {})
    if report.throughput.overall.n:
        draw_ratios(report, every, "accelerator", "accuracy_own", ratios, baseline=False)
    if report.memory.overall.n or report.oom.n_oom:
        st.caption(as_text(words.memory_sentence(report)))
    found = document.own_runs(report)
    if found.rows:
        draw_sorted(found, "accuracy_own_runs")
        download(st.container(width=200), found, "runcast_own_runs.csv", "accuracy_own_runs_csv")


def _draw_named(report: Report) -> None:
    """Show rows that cannot be used, or only in part: a few as sentences, many as a table."""
    found = document.named_rows(report)
    if len(found.rows) <= READ:
        kinds = {True: "not scored", False: "no forecast"}
        draw_list(f"{where([o])}, {kinds[o.has_forecast]}: {o.reason}" for o in report.offences)
    else:
        draw_sorted(found, "accuracy_named")
    download(st.container(width=200), found, "runcast_named_rows.csv", "accuracy_named_csv")

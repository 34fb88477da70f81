"""The Accuracy page: forecasts compared with published runs and with runs that a user uploads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from app.accuracy import blind, charts, document, errors, regret, upload_section, words
from app.accuracy.choices import regrets_of
from app.accuracy.runs_section import download, draw_ratios, ratios
from app.accuracy.section_scores import Errors
from app.accuracy.validate import Report, validate
from app.document import chart_files, page
from app.document import format as fmt
from app.document.escape import as_text
from app.document.table import Table
from app.web import figure
from app.web.answers import KEPT_S
from hardware.cross_validation import choice_figures, cross_validation
from hardware.measured import MODELS_CSV, PAIRS_CSV, RUNS_CSV

TABLE_PX = 388
LISTED = 100  # most rows of a table on the page; the CSV has all
Wanted = tuple[tuple[str, tuple[str, ...]], ...]


@st.cache_resource(ttl=KEPT_S, show_spinner="Forecasting every published run")
def _shipped() -> Report:
    """Scores of the shipped runs, computed once and shared by all sessions."""
    return validate(RUNS_CSV, MODELS_CSV, PAIRS_CSV)


@st.cache_resource(ttl=KEPT_S, show_spinner=False)
def _tables() -> dict[str, Table[Any]]:
    """The tables of the page. They change only when the shipped data change."""
    report, folds = _shipped(), cross_validation()
    chosen = regrets_of(report)
    return {
        "errors": errors.headlines(report, folds),
        "coverage": errors.of_classes(report),
        "families": errors.of_families(report),
        "choices": regret.table([*regret.of_unseen(choice_figures()), *regret.of_rows(chosen)]),
        "worst_choices": regret.worst_table(regret.worst_groups(chosen)),
        "memory_classes": document.memory_classes(report).without("Share"),
        "memory": errors.of_memory(report).only(
            "Stack", "Runs", "Median error", "Inside P10-P90", "Bias"
        ),
        "pairs": document.pairs(report).without("Refused", "Median error", "P90"),
        "published": document.published(report, folds),
        "missing": document.missing(),
    }


@st.cache_data(max_entries=64, ttl=KEPT_S, show_spinner=False)
def _ratios(wanted: Wanted, kind: str, theme: str, _points: pd.DataFrame) -> chart_files.Spec:
    """The chart of the shipped runs that pass the filter."""
    return ratios(_points, kind, theme)


@st.cache_data(max_entries=16, ttl=KEPT_S, show_spinner=False)
def _coverage(kind: str, theme: str) -> chart_files.Spec:
    """The coverage chart of the classes of one kind."""
    frame = _tables()["coverage"].frame()
    part = frame[frame["Kind"] == words.KINDS[kind]]
    return chart_files.spec_of(charts.coverage(part, theme=theme))


def draw() -> None:
    """Draw the page: headline, single runs, own runs, interval, memory, knobs, other estimators."""
    report, found = _shipped(), _tables()
    a = report.throughput.overall
    folds = cross_validation()
    headline = words.closeness_sentence(folds) or words.answer_sentence(a, report.baseline.overall)
    st.markdown(f"**{as_text(headline)}**")
    _draw_closeness(errors.by_closeness(folds))
    st.markdown(as_text(blind.sentence()))
    st.caption(as_text(words.shipped_sentence(a)))
    _draw_errors(report, found["errors"])
    _draw_choices(found["choices"], found["worst_choices"])
    _draw_runs(report)
    upload_section.draw()
    _draw_coverage(report, found["coverage"])
    st.subheader("Worst families", anchor=False)
    st.markdown(f"A family is one publication's runs of one model on one accelerator. {words.BIAS}")
    _draw_long(found["families"], "accuracy_families")
    st.subheader("Memory", anchor=False)
    st.markdown(as_text(words.memory_sentence(report)))
    page.draw_table(found["memory_classes"])
    _draw_long(found["memory"], "accuracy_memory")
    _draw_pairs(report, found["pairs"])
    _draw_published(found["published"])
    _draw_missing(found["missing"])


def _draw_closeness(table: Table[Errors]) -> None:
    """One card for each thing that may be known of a run."""
    for place, row in zip(st.columns(max(len(table.rows), 1)), table.rows, strict=False):
        a = row.accuracy
        with place, st.container(border=True, height="stretch", gap="xsmall"):
            st.markdown(f"**{as_text(row.label)}**")
            st.metric("Median error", as_text(fmt.percent(a.median_ape)))
            near, far = fmt.percent(a.within_20), fmt.percent(a.p90_ape)
            st.caption(as_text(f"{fmt.count(a.n)} runs; P90 {far}; {near} within 20%"))


def _draw_errors(report: Report, table: Table[Any]) -> None:
    st.subheader("Against runs that the fit has not seen", anchor=False)
    folds = cross_validation()
    page.draw_table(table)
    if note := words.fold_note(report, folds):
        st.warning(as_text(note))
    st.caption(
        "The first rows are no blind test: the efficiencies were fitted on these runs. The "
        "cross-validation is one: each part of the runs is forecast by a fit on the others."
    )


def _draw_choices(table: Table[Any], worst: Table[Any]) -> None:
    st.subheader("Choosing by forecast", anchor=False)
    st.markdown(as_text(regret.sentence(choice_figures())))
    page.draw_table(table.only(*regret.REACHED))
    st.caption(as_text(regret.NOTE))
    _draw_long(worst, "accuracy_choices")


def _draw_runs(report: Report) -> None:
    st.subheader("Run by run", anchor=False)
    wanted = {
        kind: column.multiselect(
            words.KINDS[kind],
            document.choices(report, kind),
            key=f"accuracy_only_{kind}",
            placeholder="All",
        )
        for column, kind in zip(st.columns(len(document.FILTERS)), document.FILTERS, strict=True)
    }
    chosen = document.chosen_rows(report, wanted)
    kind = _kind("Coloured by", document.FILTERS, "accelerator", "accuracy_by")
    query = tuple((k, tuple(sorted(names))) for k, names in wanted.items() if names)
    draw_ratios(
        report, chosen, kind, "accuracy_ratios",
        lambda points, by, theme: _ratios(query, by, theme, points), baseline=True,
    )  # fmt: skip


def _kind(label: str, kinds: Iterable[str], default: str, key: str) -> str:
    """The kind of class that the user picks: accelerator, framework, ..."""
    offered = list(kinds)
    chosen: str = st.radio(
        label,
        offered,
        index=offered.index(default),
        format_func=words.KINDS.__getitem__,
        key=key,
        horizontal=True,
    )
    return chosen


def _draw_coverage(report: Report, table: Table[Any]) -> None:
    st.subheader("Does the interval hold what it promises?", anchor=False)
    st.markdown("On rows that the fit had not seen:")
    for line in words.fold_coverage_lines(cross_validation()):
        st.markdown(f"- {as_text(line)}")
    st.markdown("As shipped, on rows that it had:")
    lines = words.coverage_lines(report.throughput)
    for line in lines:
        st.markdown(f"- {as_text(line)}")
    kind = _kind("Classes by", words.KINDS, "framework", "accuracy_coverage_by")
    figure.draw(
        figure.Figure(
            key="accuracy_coverage",
            spec=_coverage(kind, figure.theme()),
            alt="Share of the measurements inside P10 to P90 by class, with exact 90% bounds. "
            + " ".join(lines),
            caption="Bars are exact binomial 90% bounds, the grey band is what a class of 40 runs "
            "or more is held to, the dashed line is 80%. Neighbours in one table are not quite "
            "independent: the true bounds are wider.",
            file="runcast_accuracy_classes",
            data=table.frame,
        )
    )
    _draw_long(table, "accuracy_classes", has_file=False)


def _draw_pairs(report: Report, table: Table[Any]) -> None:
    st.subheader("The effect of one knob", anchor=False)
    st.markdown(as_text(words.pairs_sentence(report)))
    st.markdown(
        as_text(f'Of ten pairs or more and no better than "no change": {words.weak_knobs(report)}.')
    )
    _draw_long(table, "accuracy_pairs")


def _draw_published(table: Table[Any]) -> None:
    st.subheader("What other estimators print", anchor=False)
    st.markdown(
        "Not of the same runs: most of these used traces or profiles of the target machine, or "
        "were tuned on the runs that they are scored on."
    )
    page.draw_table(replace(table, columns=document.READ_ALOUD))
    download(st.container(width=200), table, "runcast_estimators.csv", "accuracy_published_csv")


def _draw_missing(table: Table[Any]) -> None:
    label = f"{table.caption}: {len(table.rows)} names"
    part = st.expander(label, key="accuracy_missing", on_change="rerun")
    if part.open:
        with part:
            page.draw_table(table)


def _draw_long(table: Table[Any], key: str, *, has_file: bool = True) -> None:
    """Draw a long table when it is opened: the first rows to sort and search, and all as CSV."""
    rows = len(table.rows)
    part = st.expander(f"{table.caption}: {rows} rows", key=f"{key}_part", on_change="rerun")
    if not part.open:
        return
    with part:
        first = replace(table, rows=table.rows[:LISTED])
        page.draw_sorted(first, key, height=min(TABLE_PX, 37 * (rows + 1)))
        if rows > LISTED:
            st.caption(f"The first {LISTED} of {fmt.count(rows)} rows; the CSV has all.")
        if has_file:
            download(st.container(width=200), table, f"runcast_{key}.csv", f"{key}_csv")

"""The section for sharing an answer: its link, its command line and its files."""

from __future__ import annotations

import datetime as dt
import shlex
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

import orjson
import streamlit as st

from app.document.escape import as_text
from app.plan.as_json import plan_json
from app.report import report
from app.scenario.file import write_scenario
from app.scenario.link import address_of
from app.scenario.link_query import link_query
from app.web import copy_button
from app.web.fragment import alone
from core.scenario import Scenario
from core.search.plan import Answer, Plan
from pricing.offers import snapshot

COMMAND = "share_command"
REPORTS = {"pdf": "PDF", "html": "HTML", "md": "Markdown"}
JSON = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE


def draw(scenario: Scenario, answer: Answer, selected: Plan | None) -> None:
    """Draw the link to copy, and every file of the answer for download."""
    st.subheader("Share and report")
    address = address_of(scenario, st.context.url)
    st.caption("Link to this answer: whoever opens it sees what you see, at the same prices.")
    st.code(address, language=None, wrap_lines=True)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        copy_button.draw("Copy link", address, key="share_copy")
        _draw_command(scenario)
    about = "why nothing fits" if selected is None else f"plan {selected.rank}, with charts"
    st.caption(as_text(f"A report to hand round: {about}, what is assumed, every source."))
    with st.container(horizontal=True, gap="small"):
        for kind, title in REPORTS.items() if find_spec("typst") else ():  # the extra `report`
            _draw_file(
                f"Report as {title}",
                partial(_report, kind, scenario, answer, st.context.url or ""),
                file=report.file_name(kind),
                mime=report.MIME[kind],
            )
        _draw_file(
            "All plans as JSON",
            lambda: orjson.dumps(plan_json(scenario, answer), option=JSON),
            file="runcast_plan.json",
            mime="application/json",
        )
        _draw_file(
            "Scenario as YAML",
            lambda: write_scenario(scenario).encode(),
            file="runcast_scenario.yaml",
            mime="application/yaml",
        )


@alone
def _draw_command(scenario: Scenario) -> None:
    part = st.popover("On the command line", key=COMMAND, on_change="rerun")
    if not part.open:
        return
    query = shlex.quote("?" + link_query(scenario, snapshot(scenario.prices or None).id))
    with part:
        st.caption("The same answer, and its report, in a terminal:")
        st.code(
            f"runcast plan --link {query}\nruncast report --link {query} --out report",
            language="bash",
            wrap_lines=True,
        )


def _report(kind: str, scenario: Scenario, answer: Answer, address: str) -> bytes:
    today = dt.datetime.now(tz=dt.UTC).date()
    return report.WRITERS[kind](report.report_of(scenario, answer, date=today, address=address))


def _draw_file(label: str, data: Callable[[], bytes], *, file: str, mime: str) -> None:
    st.download_button(
        label,
        data=data,
        file_name=file,
        mime=mime,
        key=f"share_{file}",
        on_click="ignore",
    )

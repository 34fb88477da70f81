"""The Launch page: the files that start a plan, for the user's own stack."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import streamlit as st

from app.document import vocabulary
from app.document.escape import as_text
from app.document.glossary import explained
from app.forecast.price_book import book_id, today
from app.forecast.stack_limits import targets_of
from app.launch import files
from app.launch.job import job_of
from app.launch.words import TIERS, troubles
from app.plan import words as plan_words
from app.web.answers import KEPT_S
from app.web.selection import chosen
from core.errors import RuncastError
from core.scenario import Scenario
from core.search.plan import Answer, Plan
from runners.recipes.job import RecipeJob
from runners.recipes.registry import exported, target

LAUNCHER, STACK, CHECKS, NAME = "launch_launcher", "launch_stack", "launch_checks", "launch_name"
MAX_CHARS = 2000
MOST_TERMS = 800
KEPT = 64  # jobs of a few kB


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _job(
    query: tuple[tuple[str, str], ...], plan_id: str, book: str, day: dt.date,
    _scenario: Scenario, _plan: Plan,
) -> RecipeJob:  # fmt: skip
    """The job that the files describe; cached, because its forecast takes half a second."""
    return job_of(_scenario, _plan)


def draw(scenario: Scenario, answer: Answer) -> None:
    """Draw the page for a scenario and its answer."""
    if not answer.plans:
        st.error(as_text(plan_words.answer_sentence(scenario, answer)))
        return
    plan = chosen(scenario, answer)
    try:
        job = _job(tuple(scenario.to_query().items()), plan.id, book_id(scenario), today(),
                   scenario, plan)  # fmt: skip
    except RuncastError as e:
        st.error(as_text(str(e)))
        return
    st.markdown(
        f"**{as_text(vocabulary.machine(plan))}**, as files for the tools you start jobs with. "
        "Each file begins with the forecast and what it assumes, so that the first minutes of the "
        "run can be held against it."
    )
    if scenario.stages:
        st.info("These are of the scenario's own run: `runcast export` writes a folder a stage.")
    for line in job.header.forecast[1:5]:
        st.caption(as_text(line), help=explained(line, MOST_TERMS))
    names = _draw_choices(job, plan.stack)
    if names:
        _draw_files(job, names)
    _draw_troubles(plan)


def _draw_choices(job: RecipeJob, stack_of_plan: str) -> list[str]:
    """Draw the choices of launcher, training stack and checks; the plan's own stack comes first."""
    launchers = files.offered(job, "launcher")
    offered = files.offered(job, "stack")
    own = [name for name in targets_of(stack_of_plan) if name in offered]
    stacks = [*own, files.NO_STACK, *(name for name in offered if name not in own)]
    checks = files.offered(job, "check")
    left, middle, right = st.columns([3, 3, 2], vertical_alignment="bottom")
    launcher = left.selectbox(
        "Launcher", launchers, key=LAUNCHER, format_func=files.title,
        help="What starts the processes on the machines.",
    )  # fmt: skip
    stack = middle.selectbox(
        "Training stack", stacks, key=STACK, format_func=files.title,
        help="What trains. Its files are written, too, and the launcher starts it.",
    )  # fmt: skip
    with_checks = right.checkbox(
        "With the checks", value=True, key=CHECKS, help="Pre-flight check and NCCL's environment."
    )
    if sentences := files.refused(job):
        with st.expander("What cannot launch this plan"):
            for sentence in sentences:
                st.markdown(as_text(sentence))
    return [n for n in (launcher, stack, *(checks if with_checks else ())) if n]


def _draw_files(job: RecipeJob, names: list[str]) -> None:
    name, options = _draw_options(names, job.name)
    try:
        found = exported(names, replace(job, name=name), options)
    except RuncastError as e:
        st.warning(as_text(str(e)))
        return
    shown = files.files(found)
    st.download_button(
        "Download all as zip", data=lambda: files.zip_bytes(shown, name), type="primary",
        file_name=f"{name}.zip", mime="application/zip", icon=":material/download:",
    )  # fmt: skip
    st.caption("Or on the command line:")
    st.code(files.command(job.header.link, names, name, options), language=None, wrap_lines=True)
    for tab, file in zip(st.tabs([f.path for f in shown]), shown, strict=True):
        with tab:
            _draw_file(file)


def _draw_options(names: list[str], default: str) -> tuple[str, dict[str, str]]:
    """Draw the job's name and the further options; empty ones are left out."""
    given: dict[str, str] = {}
    has_stack = any(target(n).kind == "stack" for n in names)
    wanted = files.options_of(names, has_stack=has_stack)
    with st.expander("Name and options", expanded=False):
        name = st.text_input("Name of the job", value=default, key=NAME, max_chars=MAX_CHARS)
        columns = st.columns(2)
        for n, (option, value, text) in enumerate(wanted):
            typed = columns[n % 2].text_input(
                files.label(option), key=f"launch_option_{option}", placeholder=value, help=text,
                max_chars=MAX_CHARS,
            )  # fmt: skip
            if typed:
                given[option] = typed
    return name, given


def _draw_file(file: files.Shown) -> None:
    tier = file.target.tier
    left, right = st.columns([4, 1], vertical_alignment="center")
    with left:
        st.badge(TIERS[tier], color="green" if tier == "validated" else "orange")
        st.caption(as_text(file.target.tool))
    right.download_button(
        "Download", data=file.text, file_name=file.path.rpartition("/")[2], mime="text/plain",
        key=f"launch_download_{file.path}",
    )  # fmt: skip
    # Plain: Streamlit's colours and line numbers are too faint, its scroll box has no tab stop.
    st.code(file.text, language=None, wrap_lines=True)


def _draw_troubles(plan: Plan) -> None:
    st.subheader("When it goes wrong", anchor=False)
    for name, looks in troubles(plan.job.scenario, plan).items():
        with st.expander(name):
            for at, do in looks.items():
                st.markdown(f"**Look at {as_text(at)}.** {as_text(do)}")

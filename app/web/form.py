"""The scenario form in the sidebar, drawn from the field table of `core.scenario.Scenario`.

Widgets are views: a callback parses each edit with the Scenario's own validators. A wrong value
puts a sentence under its field, and the last valid scenario stays on the page. Most fields are in
closed parts, which draw their fields only once they are opened (app/web/form_part.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import streamlit as st
from pydantic.fields import FieldInfo
from streamlit.elements.lib.mutable_expander_container import ExpanderContainer

from app.document.escape import as_text
from app.forecast import calibrations, resolve
from app.scenario.fields import (
    Section,
    bounds,
    changed_fields,
    fields_of,
    first_fields,
    is_flag,
    is_list,
    is_switch,
    literals,
    sections,
    written,
)
from app.scenario.file import read_scenario, write_scenario
from app.scenario.link import changed, is_reordered
from app.scenario.model import custom_fields, model_of, parse_config
from app.scenario.starting import as_continued, continues
from app.web import form_start, link
from app.web.form_part import more, part
from app.web.form_words import ABOUT, NOTHING, OPTION_LABELS, PLACEHOLDERS, labelled
from app.web.fragment import alone
from app.web.model_words import described
from core.errors import ModelError, ScenarioError
from core.scenario import Scenario

CUSTOM = "custom"
MAX_CONFIG_CHARS = 1_000_000
MAX_UPLOAD_MB = 2
LINES_FOR_TEXT = 64  # characters in a typed field; a list of GPU counts is the longest

LABELS = {"calibration": calibrations.id_label}  # labels of fields whose values are ids
FLAG_LABELS = {None: "Not given", True: "Yes", False: "No"}
_ERRORS = "form_errors"
_CONFIG_TEXT = "form_config_text"
_CONFIG_FILE = "form_config_file"
_FILES = "form_scenario_files"

Options = dict[str, Callable[[], Sequence[str]]]


def _key(name: str) -> str:
    return f"form_{name}"


def _widget_value(field: FieldInfo, value: Any, choices: Sequence[str]) -> Any:
    if choices:
        return list(value) if is_list(field) else value
    return value if is_flag(field) or is_switch(field) else written(value)


def _choices(name: str, field: FieldInfo, value: Any, options: Options) -> list[str]:
    """The choices of a list widget; the current value is always one of them."""
    offered = list(options[name]()) if name in options else list(literals(field.annotation))
    held = value if is_list(field) else (value,)
    return offered + [v for v in held if v not in offered] if offered else []


def _help(field: FieldInfo) -> str | None:
    text = (field.description or "").rstrip(".")
    return as_text((f"{text}." if text else "") + bounds(field)) or None


def errors() -> dict[str, str]:
    """The current errors of the form, by field."""
    held: dict[str, str] = st.session_state.setdefault(_ERRORS, {})
    return held


def _accepted(where: str, new: dict[str, Any]) -> Scenario | None:
    """The scenario with new values, or None and an error sentence if they are invalid."""
    try:
        asked = changed(link.scenario(), **(link.follow() | new))
        if "task" not in new:  # an edit of the tokens is no change of the task
            asked = as_continued(asked, continues(link.scenario()))
        scenario, notes = resolve.resolve(asked)
    except ScenarioError as e:
        notes = [e.as_labelled]
    if notes:
        errors()[where] = labelled(" ".join(notes))
        return None
    errors().pop(where, None)
    link.edit(scenario)
    return scenario


def _edited(name: str) -> None:
    """Callback of every field: parse its value; keep the last valid scenario if it is wrong."""
    form_start.typed(name)
    given, field = st.session_state[_key(name)], Scenario.model_fields[name]
    empty = () if is_list(field) else None if field.default is None else given
    new: dict[str, Any] = {name: empty if given == "" else given}
    if name == "model" and given != CUSTOM:  # a preset brings its own dimensions
        new |= dict.fromkeys(fields_of("custom_model"))
    scenario = _accepted(name, new)
    if scenario and isinstance(given, str) and not literals(field.annotation):
        st.session_state[_key(name)] = written(getattr(scenario, name))


def _take_config(text: str | bytes) -> None:
    """Use the model of a config.json in the scenario, or show why it cannot be used."""
    try:
        dimensions = custom_fields(parse_config(text))
    except ModelError as e:
        errors()["config"] = str(e)
        return
    new = {**dict.fromkeys(fields_of("custom_model")), **dimensions, "model": CUSTOM}
    if scenario := _accepted("config", new):
        fill(scenario)


def _config_pasted() -> None:
    _take_config(st.session_state.get(_CONFIG_TEXT) or "")


def _config_uploaded() -> None:
    if (file := st.session_state.get(_CONFIG_FILE)) is not None:
        _take_config(file.getvalue())


def _file_key() -> str:
    """Key of the uploader; it changes after each opened file, which empties the widget."""
    return f"form_scenario_file_{st.session_state.get(_FILES, 0)}"


def _scenario_uploaded() -> None:
    """Open a scenario file, strictly: unlike a link, a file with one error is refused."""
    if (file := st.session_state.get(_file_key())) is None:
        errors().pop("scenario_file", None)
        return
    try:
        given = read_scenario(file.getvalue())
    except ScenarioError as e:
        errors()["scenario_file"] = str(e)
        return
    pinned = given.prices or resolve.current_prices()
    if scenario := _accepted("scenario_file", {**given.model_dump(), "prices": pinned}):
        st.session_state[_FILES] = st.session_state.get(_FILES, 0) + 1
        fill(scenario)


def take_measurement(given: str, *, gpu: str, num_gpus: int, layout: str) -> None:
    """Make the measured speed of a plan the anchor of every forecast; empty removes it."""
    speed = given.strip() or None
    new: dict[str, Any] = {
        "anchor_tokens_per_s_per_gpu": speed,
        "anchor_gpu": gpu if speed else "",
        "anchor_num_gpus": num_gpus if speed else None,
        "anchor_layout": layout if speed else "",
    }
    if scenario := _accepted("measurement", new):
        fill(scenario)


def take_quotes(quotes: Sequence[str], **also: object) -> bool:
    """Replace the quotes of the scenario; return whether they are valid."""
    scenario = _accepted("quotes", {"quotes": tuple(quotes), **also})
    if scenario:
        fill(scenario)
    return scenario is not None


def take_order(selected: str) -> None:
    """Rank by what the radio says. The selected plan stays selected, whoever selected it."""
    is_named = bool(link.scenario().plan)
    given = st.session_state[_key("rank_by")]
    if _accepted("rank_by", {"rank_by": given, "plan": selected}) and not is_named:
        link.keep_selected(selected)


def _use_custom_gpu() -> None:
    if scenario := _accepted("custom_gpu", {"gpu": (CUSTOM,)}):
        fill(scenario)


def fill(scenario: Scenario) -> None:
    """Set the widgets to another scenario; call before they are drawn."""
    for name in Scenario.model_fields:
        st.session_state.pop(_key(name), None)
    for name in errors().keys() - {"config"}:
        del errors()[name]


def draw_field(
    name: str,
    options: Options,
    *,
    horizontal: bool = False,
    on_change: Callable[[], None] | None = None,
) -> None:
    """Draw the widget of one field and, under it, the error of its value. `on_change` takes an edit
    in place of the form."""
    field, value = Scenario.model_fields[name], getattr(link.scenario(), name)
    choices = _choices(name, field, value, options)
    key = _key(name)
    several = bool(choices) and is_list(field)  # else a list is typed: as where there is no choice
    if key not in st.session_state or isinstance(st.session_state[key], list) != several:
        st.session_state[key] = _widget_value(field, value, choices)
    label, about = field.title or name, _help(field)
    placeholder = PLACEHOLDERS.get(name, "")
    common: dict[str, Any] = {
        "label": label, "key": key, "help": about,
        "on_change": on_change or partial(_edited, name),
    }  # fmt: skip

    if several:
        st.multiselect(
            **common,
            options=choices,
            format_func=partial(_label_of, name),
            placeholder=placeholder or "Any",
        )
    elif choices and horizontal:
        st.radio(**common, options=choices, format_func=_option_label, horizontal=True)
    elif choices:
        # The list keeps the order of its table, the newest of a family first: 70b is Llama 3.1.
        st.selectbox(
            **common, options=choices, format_func=partial(_label_of, name), filter_mode="contains"
        )
    elif is_switch(field):
        st.checkbox(**common)
    elif is_flag(field):
        st.selectbox(**common, options=[None, True, False], format_func=FLAG_LABELS.__getitem__)
    else:
        st.text_input(**common, max_chars=LINES_FOR_TEXT * 4, placeholder=placeholder)
    _draw_error(name)


def _draw_error(where: str) -> None:
    if sentence := errors().get(where):
        st.error(as_text(sentence))


def _label_of(field: str, value: str) -> str:
    if field in LABELS:
        return LABELS[field](value)
    return _option_label(value) if value else NOTHING.get(field, _option_label(value))


def _option_label(value: str) -> str:
    return OPTION_LABELS.get(value, value)


def _draw_config(options: Options) -> None:
    st.text_area(
        "Paste a config.json",
        key=_CONFIG_TEXT,
        max_chars=MAX_CONFIG_CHARS,
        height=120,
        placeholder='{"hidden_size": 4096, "num_hidden_layers": 32, ...}',
    )
    st.button("Use this config", key="form_config_use", on_click=_config_pasted, width="stretch")
    st.file_uploader(
        "or upload the file",
        type="json",
        key=_CONFIG_FILE,
        max_upload_size=MAX_UPLOAD_MB,
        on_change=_config_uploaded,
    )
    _draw_error("config")
    scenario = link.scenario()
    if scenario.model == CUSTOM:
        st.caption("Dimensions of the custom model")
        for name in fields_of("custom_model"):
            if getattr(scenario, name) is not None:
                draw_field(name, options)


def _opened(key: str, title: str, fields: Collection[str]) -> ExpanderContainer | None:
    """A collapsible part, None while it is closed; its title counts the fields that differ from
    their defaults."""
    changed = changed_fields(link.scenario(), fields)
    counted = title + (f" ({len(changed)} changed)" if changed else "")
    inside = part(key, counted, errors(), (key, *fields))
    return inside if inside.open else None


def _draw_section(section: Section, options: Options) -> None:
    if inside := _opened(section.key, section.title, section.fields):
        with inside:
            if about := ABOUT.get(section.key):
                st.caption(about)
            for name in section.fields:
                draw_field(name, options)


def draw(options: Options) -> None:
    """Draw the examples and the fields that are always visible, into the current container."""
    form_start.draw(fill)
    for name in first_fields(link.scenario()):
        if name == "task":
            form_start.draw_task(fill, _help(Scenario.model_fields[name]))
        else:
            draw_field(name, options)
        if name == "model" and link.scenario().model == CUSTOM:
            st.caption(as_text(described(model_of(link.scenario()).transformer)))


@alone
def draw_parts(drawn: Scenario, options: Options) -> None:
    """Draw the collapsible parts for the page's scenario. Opening one redraws only the parts; an
    edit in one redraws the page."""
    scenario = link.scenario()
    if not is_reordered(scenario, drawn):
        st.rerun(scope="app")
    drawn_above = first_fields(scenario)
    parts = sections(drawn_above)
    custom = [*fields_of("custom_model"), *fields_of("custom_gpu")]
    behind = [n for s in parts for n in s.fields] + custom
    own = (*behind, "config", "custom_gpu", "scenario_file")
    if not more(len(changed_fields(scenario, behind)), errors(), own):
        return
    for section in parts:
        _draw_section(section, options)
    config = "Model from config.json" + (" (in use)" if scenario.model == CUSTOM else "")
    inside = part("config", config, errors(), ("config", *fields_of("custom_model")))
    if inside.open:
        with inside:
            _draw_config(options)
    _draw_custom_gpu(options)
    _draw_file()


def _draw_file() -> None:
    """Draw the download and the upload of the scenario as a file."""
    scenario = link.scenario()
    inside = part("file", "Scenario file", errors(), ("scenario_file",))
    if not inside.open:
        return
    with inside:
        st.download_button(
            "Download as YAML",
            data=lambda: write_scenario(scenario),
            file_name="runcast_scenario.yaml",
            mime="application/yaml",
            key="form_scenario_download",
            on_click="ignore",
            width="stretch",
            help="The same file as `runcast plan --scenario` reads and `--save` writes",
        )
        st.file_uploader(
            "or open one",
            type=["yaml", "yml"],
            key=_file_key(),
            max_upload_size=1,
            on_change=_scenario_uploaded,
        )
        _draw_error("scenario_file")


def _draw_custom_gpu(options: Options) -> None:
    names = fields_of("custom_gpu")
    if inside := _opened("custom_gpu", "Custom accelerator", names):
        with inside:
            for name in names:
                draw_field(name, options)
            st.button(
                "Plan with this accelerator", key="form_custom_gpu_use", on_click=_use_custom_gpu,
                width="stretch",
            )  # fmt: skip
            _draw_error("custom_gpu")

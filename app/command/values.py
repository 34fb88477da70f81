"""Turn what was typed after `runcast` into a scenario. Every mistake raises a `ScenarioError`.

Values stay text until `Scenario.parse`, which also reads links.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from app.command.given import Given, option_of
from app.document import format as fmt
from app.forecast.fixed_layout import as_named, check_degrees, fixed_fields
from app.forecast.price_book import lacking_sentence
from app.scenario.age import since
from app.scenario.file import read_scenario_file
from app.scenario.layout import parse_layout
from app.scenario.model import custom_fields, read_config_file
from core.errors import ScenarioError, shown
from core.model.transformer import Transformer
from core.programme.stage_link import FIELD, KEY
from core.scenario import LINK_VERSION, MAX_QUERY_CHARS, Scenario
from core.units import whole_number
from pricing.book.files import has_book
from pricing.offers import installed_id, snapshot_ids

# Required if neither a link nor a file, which set every field, is given.
REQUIRED = ("num_tokens", "seq_len", "global_batch_size")
REQUIRED_OF_ONE = ("seq_len", "global_batch_size", "gpu", "num_gpus")
DATA_SET = ("num_examples", "tokens_per_example")
DIMENSIONS = frozenset(f.name for f in fields(Transformer))
TOP_MAX = 1000
STAGES_NOTE = "The plan is of the scenario's own run; `runcast programme` answers for its stages."

# How error messages of `Scenario` name a field and its value: tp='x' or tp: 'x'.
_FIELD_IN_SENTENCE = re.compile(r"(?<![\w'\"])([a-z]\w*)(?:=|: )(?=['\"])")


def plan_scenario(given: Given) -> tuple[Scenario, list[str]]:
    """The scenario from options, a model or its config, and a link or a file; and notes to print.

    An option overrides the link or the file; a model given with them replaces theirs.
    """
    typed = typed_fields(given)
    if given.is_new:
        _require("plan", given, typed, REQUIRED)
    scenario, notes = scenario_of(typed, given, written_as=_spelled(typed))
    return scenario, [*notes, STAGES_NOTE] if scenario.stages else notes


def layout_scenario(
    given: Given, layout: str | None
) -> tuple[Scenario, dict[str, object], list[str]]:
    """The scenario of one named layout on one kind of GPU, the layout, and notes to print."""
    typed = typed_fields(given)
    asked = {} if layout is None else parse_layout(layout)
    fixed = fixed_fields(asked)
    if twice := [n for n in fixed if n in typed]:
        raise ScenarioError(f"--layout and {option_of(twice[0]) or '--set'} both give {twice[0]}.")
    if given.is_new:
        missing = [] if layout is not None else ["--layout"]
        _require("estimate", given, typed, REQUIRED_OF_ONE, missing)
    asked_of = {**typed, **fixed}
    scenario, notes = scenario_of(asked_of, given, written_as=_spelled(asked_of))
    for name, what in (("gpu", "kind of GPU"), ("num_gpus", "number of GPUs")):
        count = len(getattr(scenario, name))
        if count != 1:
            raise ScenarioError(
                f"`runcast estimate` takes one {what} ({option_of(name)}), not {count}; `runcast "
                "plan` compares several."
            )
    scenario = as_named(scenario)
    check_degrees(asked, scenario)
    if given.is_new and not {"num_tokens", *DATA_SET} & {*typed}:
        notes.append(
            "No --tokens: time and dollars are of a run of "
            f"{fmt.tokens(scenario.num_tokens)} tokens."
        )
    return scenario, asked, notes


def _require(
    command: str,
    given: Given,
    typed: Mapping[str, str],
    required: Iterable[str],
    missing: Iterable[str] = (),
) -> None:
    lacks = [] if given.model is not None or given.config is not None else ["--model or --config"]
    lacks += [*missing, *(str(option_of(n)) for n in lacking(typed, required))]
    if lacks:
        raise ScenarioError(f"Missing {', '.join(lacks)}: `runcast {command} --help` lists them.")


def lacking(given: Collection[str], required: Iterable[str]) -> list[str]:
    """The required fields that are missing; a number of examples replaces one of tokens."""
    has = {*given, "num_tokens"} if "num_examples" in given else {*given}
    return [n for n in required if n not in has]


def scenario_of(
    typed: Mapping[str, Any], given: Given, *, written_as: Mapping[str, str]
) -> tuple[Scenario, list[str]]:
    """Combine the link or file, then the model, then what was typed; later values win. Messages
    name a field as in `written_as`, else by its own name."""
    if given.link is not None and given.file is not None:
        raise ScenarioError("Give --link or --scenario, not both.")
    found: dict[str, Any] = {}
    notes: list[str] = []
    if given.link is not None:
        found, notes = link_values(given.link)
    if given.file is not None:
        found = dict(read_scenario_file(Path(given.file)).to_query())
        del found["v"]
        notes += _without_unknown_prices(found, "scenario file")
        notes += _without_maker(found, "scenario file")
    if "num_tokens" in typed:
        if both := [n for n in DATA_SET if n in typed]:
            two = [written_as.get(n, n).strip() for n in ("num_tokens", both[0])]
            raise ScenarioError(f"Give {' or '.join(two)}, not both.")
        found = {n: v for n, v in found.items() if n not in DATA_SET}
    if FIELD in typed:
        found = {n: v for n, v in found.items() if not KEY.fullmatch(n)}
    if chosen := model_values(given.model, given.config):
        found = {n: v for n, v in found.items() if n not in DIMENSIONS}
    return parsed({**found, **chosen, **typed}, written_as=written_as), notes


def typed_fields(given: Given) -> dict[str, str]:
    """Every field that was typed, with its own option or with `--set`."""
    typed = dict(given.options)
    if empty := [str(option_of(n)) for n, v in typed.items() if not v.strip(" ,")]:
        raise ScenarioError(f"{', '.join(empty)} without a value: leave it out or give one.")
    for text in given.sets:
        name, equals, value = (t.strip() for t in text.partition("="))
        if not equals or not name:
            raise ScenarioError(f"--set {shown(text)} is no KEY=VALUE like lora_rank=16.")
        if not value.strip(" ,"):
            raise ScenarioError(f"--set {shown(name)} without a value: leave it out or give one.")
        if name in typed:
            before = option_of(name) if name in given.options else "another --set"
            raise ScenarioError(f"--set gives {name}, which {before} gives, too.")
        typed[name] = value
    return typed


def _spelled(typed: Iterable[str]) -> dict[str, str]:
    """How messages name the typed fields and the model."""
    options = {name: option_of(name) for name in typed}
    return {n: f"{o} " if o else f"--set {n}=" for n, o in options.items()} | {"model": "--model "}


def parsed(values: Mapping[str, Any], *, written_as: Mapping[str, str]) -> Scenario:
    """The scenario with these values; an error in a field of `written_as` names its source."""
    try:
        return Scenario.parse(values)
    except ScenarioError as e:
        sentence = _FIELD_IN_SENTENCE.sub(lambda m: written_as.get(m[1], m[0]), str(e))
        raise ScenarioError(sentence) from None


def offers_scenario(values: Mapping[str, str | None]) -> Scenario:
    """The scenario whose GPUs, clouds and purchase kinds select the listed offers."""
    given = Given(options={n: v for n, v in values.items() if v is not None})
    typed = typed_fields(given)
    return parsed(typed, written_as=_spelled(typed))


def model_values(model: str | None, config: str | None) -> dict[str, Any]:
    """The fields that `--model` or `--config` sets; empty if neither is given."""
    if model is not None and config is not None:
        raise ScenarioError("Give --model or --config, not both.")
    if config is not None:
        return custom_fields(read_config_file(Path(config)))
    return {} if model is None else {"model": model}


def link_values(link: str) -> tuple[dict[str, Any], list[str]]:
    """The fields of a link, with or without the address before its query, and notes to print."""
    if len(link) > MAX_QUERY_CHARS:
        raise ScenarioError(f"The link is longer than {MAX_QUERY_CHARS} characters.")
    query = link.partition("?")[2] if "?" in link else link
    if "=" not in query:
        raise ScenarioError(f"{shown(link)} is no link: it has no field=value in it.")
    found = {name: values[-1] for name, values in parse_qs(query, keep_blank_values=True).items()}
    notes = []
    if (version := found.pop("v", str(LINK_VERSION))) != str(LINK_VERSION):
        notes.append(f"The link says v={shown(version)}; this version writes v={LINK_VERSION}.")
    notes += _without_unknown_prices(found, "link")
    if found.get("price_book") and not has_book(found["price_book"]):
        notes.append(lacking_sentence(found.pop("price_book")))
    notes += _without_maker(found, "link")
    return dict(found), notes


def _without_unknown_prices(found: dict[str, Any], what: str) -> list[str]:
    """Drop the name of a price snapshot that is not installed, with a note."""
    named = found.get("prices", "")
    if not named or named in snapshot_ids():
        return []
    del found["prices"]
    return [
        f"The {what} was made with price snapshot {shown(named)}, which is not here: "
        f"computed with {installed_id()}."
    ]


def _without_maker(found: dict[str, Any], what: str) -> list[str]:
    """Drop the version that made it, with a note on what has changed since."""
    scenario, wrong = Scenario.from_query({"made": found.pop("made", "")})
    return [*wrong, *since(scenario, f"The {what}")]


def plans_to_show(text: str | None, default: int, *, option: str = "--top") -> int:
    """The parsed value of `--top`, or of another option that says how far to list plans."""
    return default if text is None else whole_number(text, option, TOP_MAX)

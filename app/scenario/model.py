"""Read models: the text or file of a config.json, or the model fields of a scenario.

Foreign text is untrusted until parsed: its size and nesting are capped before the parser sees it,
and what JSON does not allow (NaN, repeated keys, numbers of a million digits) is refused.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from core.errors import ModelError, ScenarioError, shown
from core.model.hf_config import contradictions, from_config
from core.model.presets import preset
from core.model.transformer import Transformer
from core.scenario import Scenario
from hardware.outside.json_text import Bounds, OutsideError, json_value

MAX_CONFIG_BYTES = 1_000_000
MAX_DEPTH = 32  # published configs nest 3 to 5 deep
MAX_INTEGER_DIGITS = 20
CUSTOM = "custom"

BOUNDS = Bounds(
    num_bytes=MAX_CONFIG_BYTES,
    values=MAX_CONFIG_BYTES,
    depth=MAX_DEPTH,
    digits=MAX_INTEGER_DIGITS,
)

_FLAGS = {f.name for f in fields(Transformer) if isinstance(f.default, bool)}
_DEFAULTS = {f.name: f.default for f in fields(Transformer)}
_REQUIRED = ("num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads",
             "num_kv_heads", "head_dim", "vocab_size")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedModel:
    """The model of a scenario: a preset, or the dimensions that the scenario gives."""

    id: str
    label: str
    transformer: Transformer
    source: str
    max_seq_len: int | None  # None: unknown for a custom model


def parse_config(text: str | bytes) -> Transformer:
    """Parse the text of a config.json. Raises a `ModelError` that says what is wrong."""
    return from_config(_parse_object(_decoded(text)))


def read_config_file(path: Path | str) -> Transformer:
    """Read a config.json, or that of a directory; at most the size cap is read."""
    from app.scenario.yaml import read_bytes

    file = Path(path, "config.json") if os.path.isdir(path) else Path(path)
    try:
        return parse_config(read_bytes(file, MAX_CONFIG_BYTES))
    except ScenarioError as e:
        raise ModelError(str(e)) from None


def _decoded(text: str | bytes) -> str:
    if len(text) > MAX_CONFIG_BYTES:
        raise ModelError(
            f"The config is larger than {MAX_CONFIG_BYTES / 1e6:.0f} MB; a config.json has a few "
            "thousand characters. Was the file of the weights meant?"
        )
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
    except UnicodeDecodeError:
        raise ModelError("The config is not text (UTF-8); a config.json was expected.") from None
    if not decoded.strip():
        raise ModelError("The config is empty; a config.json was expected.")
    return decoded


def _parse_object(text: str) -> dict[str, Any]:
    """Parse strict JSON of bounded depth with an object at the top."""
    try:
        parsed = json_value(text, BOUNDS)
    except OutsideError as e:
        starts = f"; it starts with {shown(text.strip()[:40])}" if "not JSON" in e.clause else ""
        raise ModelError(f"The config {e.clause}{starts}.") from None
    if not isinstance(parsed, dict):
        kind = "a list" if isinstance(parsed, list) else f"the value {shown(text.strip()[:40])}"
        raise ModelError(f'The config is {kind}, not an object like {{"model_type": ..}}.')
    return parsed


def custom_fields(model: Transformer) -> dict[str, object]:
    """The scenario fields that describe this model: model=custom and every dimension that differs
    from the default of `Transformer`."""
    given: dict[str, object] = {"model": CUSTOM}
    for name, default in _DEFAULTS.items():
        value = getattr(model, name)
        if name in _REQUIRED or value != default:
            given[name] = bool(value) if name in _FLAGS else int(value)
    return given


def model_of(scenario: Scenario) -> NamedModel:
    """The preset that the scenario names, or the custom model defined by its dimensions."""
    given = {n: v for n in _DEFAULTS if (v := getattr(scenario, n)) is not None}
    if scenario.model.strip().lower() == CUSTOM:
        return NamedModel(
            id=CUSTOM,
            label="Custom model",
            transformer=_custom(given),
            source="dimensions given in the scenario",
            max_seq_len=None,
        )
    named = preset(scenario.model)
    if given:
        raise ScenarioError(
            f"{', '.join(f'{n}={v}' for n, v in list(given.items())[:3])} would change "
            f"model={scenario.model}, whose dimensions are fixed; dimensions go with "
            f"model={CUSTOM}."
        )
    return NamedModel(
        id=named.id,
        label=named.name,
        transformer=named.transformer,
        source=f"{named.source.ref} ({named.source.date})",
        max_seq_len=named.max_seq_len,
    )


def _custom(given: dict[str, Any]) -> Transformer:
    # A model of state-space layers alone, or whose every MLP is experts, must say so.
    experts = given.get("num_experts") and not given.get("num_dense_layers")
    alone = given.get("ffn_hidden_size") == 0 and (given.get("num_ssm_layers") or experts)
    asked = [n for n in _REQUIRED if not (alone and n == "ffn_hidden_size")]
    if missing := [n for n in asked if not given.get(n)]:
        raise ScenarioError(
            f"model={CUSTOM} needs {', '.join(missing)}, each at least 1; the dimensions of a "
            "config.json give them all."
        )
    model = Transformer(**given)
    for clause in contradictions(model):
        raise ScenarioError(f"The dimensions of model={CUSTOM} cannot be a model: {clause}.")
    return model

"""A scenario as a YAML file: `--scenario FILE.yaml`, `--save FILE.yaml`, and the page's files.

The file is flat: `field: value`, or `field: [value, value]`, with the names of
core/scenario/__init__.py. app/scenario/yaml.py reads it. Values keep the text as written, so that
15T, 8k and 1e12 mean what they mean in a link.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml  # type: ignore[import-untyped, unused-ignore]

from app.scenario.age import stamped
from app.scenario.yaml import Document, fields, is_nothing, read_bytes
from core.errors import ScenarioError, shown
from core.programme.stage_link import FIELD, KEY
from core.scenario import LINK_VERSION, Scenario, written_parts

MAX_ITEMS = 1_000
FILE = Document(
    noun="scenario",
    depth=2,
    line="'field: value'",
    forms="'field: value' or 'field: [value, value]'",
    max_values=MAX_ITEMS,
)

# Words that YAML reads as yes, no or null; and text that needs no quotes.
_RESERVED = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.\-/+]*")
_NUMBER = re.compile(r"[0-9][0-9.e\-]*")


def read_scenario(text: str | bytes) -> Scenario:
    """The scenario in a file's text. Raises a `ScenarioError` that says in one sentence what is
    wrong.

    >>> read_scenario("v: 1\\nmodel: llama3.1-70b\\nnum_gpus: [8, 64]").num_gpus
    (8, 64)
    """
    values = _values(text)
    version = values.pop("v", str(LINK_VERSION))
    if version != str(LINK_VERSION):
        raise ScenarioError(
            f"The scenario file says v={shown(version)}; this version reads v={LINK_VERSION}."
        )
    try:
        return Scenario.parse(values)
    except ScenarioError as e:
        raise ScenarioError(f"In the scenario file: {e}") from None


def read_scenario_file(path: Path) -> Scenario:
    """Read a scenario file; at most the size cap is read."""
    return read_scenario(read_bytes(path))


def write_scenario_file(scenario: Scenario, path: Path) -> None:
    """Write a file that `read_scenario_file` reads back equal, marked as made by this version."""
    try:
        path.write_text(write_scenario(stamped(scenario)), encoding="utf-8")
    except OSError as e:
        raise ScenarioError(f"Cannot write {shown(str(path))}: {e.strerror}.") from None
    except ValueError:
        raise ScenarioError(f"{shown(str(path))} is not the path of a file.") from None


def write_scenario(scenario: Scenario) -> str:
    """The shortest file that `read_scenario` reads back equal, each field with its meaning.

    Only fields that differ from the defaults are written, in the order of the field table.
    """
    lines = [f"v: {LINK_VERSION}"]
    query = scenario.to_query()
    for name in dict.fromkeys(FIELD if KEY.fullmatch(key) else key for key in query):
        if name == "v":
            continue
        field = Scenario.model_fields[name]
        value = getattr(scenario, name)
        if isinstance(value, tuple):
            written = f"[{', '.join(map(_scalar, written_parts(value)))}]"
        elif isinstance(value, bool):
            written = "true" if value else "false"
        else:
            written = _scalar(query[name])
        meaning = ". ".join(t for t in (field.title, field.description) if t)
        lines.append(f"{name}: {written}  # {meaning}")
    return "\n".join(lines) + "\n"


def _scalar(text: str) -> str:
    """Text that YAML reads back equal: bare if it has nothing special, else in quotes."""
    bare = _PLAIN.fullmatch(text) and text.lower() not in _RESERVED
    # JSON quoting is valid YAML; non-ASCII characters are kept, to avoid surrogate pairs.
    return text if bare or _NUMBER.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _values(content: str | bytes) -> dict[str, str | list[str]]:
    """The names in the file and the text of their values."""
    found: dict[str, str | list[str]] = {}
    for event, value in list(fields(content, FILE)):  # all structure is checked before any value
        name = event.value
        if name in found:
            raise ScenarioError(f"The scenario file gives {shown(name)} twice.")
        if isinstance(value, yaml.SequenceNode):
            found[name] = [item.value for item in value.value]
        elif not is_nothing(value):
            found[name] = value.value
    return found

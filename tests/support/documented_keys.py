"""The keys of a JSON value, and those that docs/plan-json.md documents, written alike."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

# Objects that hold the fields of a record of core, which its module documents.
RECORDS = (
    "inputs.efficiency", "inputs.workload", "plans[].inputs.efficiency", "plans[].inputs.workload",
    "plans[].inputs.stack", "inputs.model.dims", "plans[].inputs.cluster",
    "inputs.accelerators[].facts", "inputs.calibrations[].factors",
)  # fmt: skip
DOCUMENT = Path(__file__).parents[2] / "docs/plan-json.md"


def paths(value: object, at: str = "") -> Iterator[str]:
    """Every key as the document writes it, plans[].layout.tp; a scenario field is one key."""
    if isinstance(value, dict):
        for key, inner in value.items():
            name = f"{at}.{key}" if at else key
            listed = isinstance(inner, list) and not name.startswith("scenario.")
            yield f"{name}[]" if listed else name
            if name not in RECORDS:
                yield from paths(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from paths(inner, f"{at}[]")


def keys(value: object) -> Iterator[str]:
    """Every key at any depth, by its own name."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


def documented(section: str) -> list[str]:
    """The keys in the tables of one section, in their order."""
    text = DOCUMENT.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2]
    return re.findall(r"^\| `([^`]+)` \|", text.partition("\n## ")[0], re.MULTILINE)


# Of plans whose stack or precision is not that of the first one.
OF_STACK = {f"plans[].inputs.{name}" for name in ("workload", "stack", "efficiency", "precision")}


def documented_plan_keys(*, of_stacks: bool = False) -> set[str]:
    """Everything that `runcast plan --json` may print, also of plans of several stacks."""
    found = {*documented("`runcast plan --json`"), *documented("`scenario`")}
    return found if of_stacks else found - OF_STACK

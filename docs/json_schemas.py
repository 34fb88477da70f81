"""The JSON Schemas of documents that commands print, from the tables of the pages that document
their keys: `python -m docs.json_schemas` writes them where `runcast schema` reads them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
SCHEMAS = DOCS.parent / "app/catalogue"
# Each document: its page, and the sections whose tables list its keys.
DOCUMENTS = {
    "plan": ("plan-json.md", ("`runcast plan --json`", "`scenario`")),
    "audit": ("audit.md", ("Keys of `--json`",)),
}
OF_STACK = {f"plans[].inputs.{name}" for name in ("workload", "stack", "efficiency", "precision")}
OPTIONAL = {"made_with", "inputs", "plans[].inputs", *OF_STACK}  # not of every plan document
ROW = re.compile(r"^\| `([^`]+)` \| ([a-z ]+) \| *([^|]*?) *\| *(.*?) *\|$", re.M)
ITEMS = {"strings": "string", "integers": "integer", "numbers": "number", "objects": "object"}


def rows(page: str, section: str) -> list[tuple[str, str, str, str]]:
    """Key, type, unit and meaning of each row in a section's tables."""
    text = (DOCS / page).read_text(encoding="utf-8").partition(f"\n## {section}\n")[2]
    return ROW.findall(text.partition("\n## ")[0])


def schema(name: str) -> dict[str, Any]:
    """The schema of one document. Other keys are allowed: versions add some."""
    page, sections = DOCUMENTS[name]
    root: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"runcast {name} --json",
        "type": "object",
    }
    for section in sections:
        for key, kind, unit, meaning in rows(page, section):
            _put(root, key, _node(kind, f"{meaning} ({unit})" if unit else meaning))
    return root


def _node(kind: str, description: str) -> dict[str, Any]:
    main, *null = kind.split(" or ")
    main, _, of = main.partition(" of ")
    made: dict[str, Any] = {"type": [main, *null] if null else main, "description": description}
    if of:
        made["items"] = {"type": ITEMS[of]}
    return made


def _put(root: dict[str, Any], key: str, node: dict[str, Any]) -> None:
    """Hang the node of a key such as plans[].layout.tp where it belongs."""
    at, *rest = root, *key.split(".")
    for n, part in enumerate(rest):
        name, is_list = part.removesuffix("[]"), part.endswith("[]")
        if name == "*":
            held = at.setdefault("additionalProperties", {"type": "object"})
        else:
            held = at.setdefault("properties", {}).setdefault(name, {})
            if n == len(rest) - 1:
                held |= node
                if key not in OPTIONAL:
                    at.setdefault("required", []).append(name)
        if is_list and n < len(rest) - 1:
            held = held.setdefault("items", {"type": "object"})
        at = held


def main() -> None:
    """Write every schema."""
    for name in DOCUMENTS:
        text = json.dumps(schema(name), indent=1, ensure_ascii=False) + "\n"
        (SCHEMAS / f"{name}.schema.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

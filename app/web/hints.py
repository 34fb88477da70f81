"""Heads of tables that explain the terms in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from app.document.glossary import explained


def columns(
    names: Iterable[object], config: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """The configuration of a table's columns; a head that has no help of its own and holds terms
    of the field gets their sentences."""
    given = config or {}
    made: dict[str, Any] = {name: dict(column) for name, column in given.items()}
    for name in map(str, names):
        about = made.get(name, {}).get("help") or explained(name)
        if about:
            made[name] = {**made.get(name, {}), "help": about}
    return made

"""One thing that `runcast doctor` looked at, and the states that it can be in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["ok", "note", "warning", "broken"]
ORDER: tuple[State, ...] = ("ok", "note", "warning", "broken")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at. What is no `ok` and no `note` says what to do."""

    area: str
    name: str
    state: State
    value: str
    todo: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)

"""One finding of `runcast doctor`, and its possible states."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from core.errors import RuncastError

State = Literal["ok", "note", "warning", "broken"]
ORDER: tuple[State, ...] = ("ok", "note", "warning", "broken")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was checked. Any state except `ok` and `note` comes with what to do."""

    area: str
    name: str
    state: State
    value: str
    todo: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)


def failure_sentence(subject: str, failure: RuncastError | OSError) -> str:
    """Why a check could not be made, without a path of the machine."""
    if isinstance(failure, OSError):
        return f"{subject} cannot be read: {(failure.strerror or type(failure).__name__).lower()}."
    return str(failure)

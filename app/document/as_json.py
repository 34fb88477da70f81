"""Values as JSON holds them: numbers that are not finite become null."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None


def number(value: float | None) -> float | None:
    """A number that JSON can hold, or None."""
    return float(value) if value is not None and math.isfinite(value) else None


def attributes(record: object, *names: str) -> dict[str, Any]:
    """These attributes of a record, each under its own name."""
    return {name: getattr(record, name) for name in names}


def plain(value: object) -> Json:
    """The value of a scenario's field for JSON: numbers, text, and lists of them."""
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a scenario holds no {type(value).__name__}")

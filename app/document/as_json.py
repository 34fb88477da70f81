"""Values as JSON holds them: numbers that are not finite become null."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None


def number(value: float | None) -> float | None:
    """A number that JSON can hold, or None."""
    return float(value) if value is not None and math.isfinite(value) else None


def attributes(record: object, *names: str, **paths: str) -> dict[str, Any]:
    """These attributes of a record for JSON, each under its own name or that of its path. A path
    such as offer.region gives None where a record on the way is None.

    >>> attributes(range(3), "start", end="stop")
    {'start': 0, 'end': 3}
    """
    named = {name: name for name in names} | paths
    return {key: as_json(_attribute(record, path)) for key, path in named.items()}


def as_json(value: Any) -> Any:
    """A value for JSON: records by their fields, null for a number that JSON cannot hold."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: as_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {name: as_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(each) for each in value]
    return number(value) if isinstance(value, float) else value


def _attribute(record: object, path: str) -> Any:
    """The attribute at a dotted path; None where a record on the way is None."""
    for name in path.split("."):
        record = None if record is None else getattr(record, name)
    return record


def plain(value: object) -> Json:
    """The value of a scenario's field for JSON: numbers, text, and lists of them."""
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a scenario holds no {type(value).__name__}")

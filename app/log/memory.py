"""The bytes that an answer holds in memory, and giving freed ones back to the system."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import cache

import numpy as np


def held_bytes(value: object) -> int:
    """Bytes of a value and of everything in it, each object once."""
    seen: set[int] = set()
    left, total = [value], 0
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        total += sys.getsizeof(one)
        left += _parts(one)
    return total


def _parts(one: object) -> Iterable[object]:
    if isinstance(one, str | bytes | int | float | None):
        return ()
    if isinstance(one, np.ndarray):
        base = () if one.base is None else (one.base,)
        return (*base, *one.ravel().tolist()) if one.dtype == object else base
    if isinstance(one, dict):
        return (*one.keys(), *one.values())
    if isinstance(one, list | tuple | set | frozenset):
        return one
    if is_dataclass(one):
        return [getattr(one, f.name, None) for f in fields(one)]
    return ()


def give_back() -> None:
    """Give memory that searches have freed back to the system, which the C library keeps by
    itself. Elsewhere than on glibc nothing happens."""
    if (trim := _malloc_trim()) is not None:
        trim(0)


@cache
def _malloc_trim() -> ctypes._NamedFuncPointer | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None

"""Software without a row in hardware/stacks.csv that is built on a stack with one, and does as it
does: hardware/habits/built_on.csv. Software that neither table names is `generic`."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from core.errors import FactError, shown
from hardware.efficiency import Stack, stacks
from hardware.tables import check_source, rows

BUILT_ON_CSV = Path(__file__).with_name("built_on.csv")
_COLUMNS = ("name", "like", "source", "source_date", "note")


@cache
def _built_on(path: Path = BUILT_ON_CSV) -> dict[str, str]:
    stack_names = {}
    for where, row in rows(path, _COLUMNS):
        check_source(where, row["like"], row)
        if row["like"] not in stacks():
            raise FactError(f"{where}: {shown(row['like'])} is not a stack of stacks.csv")
        stack_names[row["name"]] = row["like"]
    return stack_names


def built_on(name: str) -> Stack | None:
    """The stack with a profile that a software without one is built on; None where none is named.

    >>> built_on("AXLearn v0.1").name
    'maxtext'
    """
    written = name.strip().lower().replace("_", "-")
    known = [n for n in _built_on() if written.startswith(n)]
    return stack_named(max(known, key=len)) if known else None


@cache
def stack_named(name: str) -> Stack:
    """A stack of hardware/stacks.csv, or the one that a software of built_on.csv is built on.

    >>> stack_named("prime-rl").name, stack_named("prime-rl").software
    ('torchtitan', 'prime-rl')
    """
    if name in stacks() or name not in _built_on():
        return stacks()[name]
    return replace(stacks()[_built_on()[name]], software=name)


def software_names() -> tuple[str, ...]:
    """Software without a profile that is built on a stack with one."""
    return tuple(_built_on())

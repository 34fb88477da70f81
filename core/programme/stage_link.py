"""Stages as flat keys of a link: s1.name=main, s2.seq_len=131072."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from core.errors import shown
from core.programme.stage import MOST_STAGES, cells_of, stage_of

KEY = re.compile(r"s([1-9][0-9]{0,3})\.(\w{1,40})", re.ASCII)
FIELD = "stages"  # of a scenario


def flat(stages: tuple[str, ...]) -> dict[str, str]:
    """The keys of these stages.

    >>> flat(("name=main,num_tokens=15T",))
    {'s1.name': 'main', 's1.num_tokens': '15T'}
    """
    return {
        f"s{n}.{name}": value
        for n, text in enumerate(stages, start=1)
        for name, value in cells_of(stage_of(text)).items()
    }


def gathered(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a link with its flat keys as one list of stages; raises ValueError where they
    cannot be one."""
    found = {k: v for k, v in values.items() if not KEY.fullmatch(str(k))}
    if len(found) == len(values):
        return found
    cells: dict[int, list[str]] = {}
    for key, value in values.items():
        if match := KEY.fullmatch(str(key)):
            if "," in str(value) or ";" in str(value):
                raise ValueError(f"{key}: {shown(str(value))} holds a comma or a semicolon")
            cells.setdefault(int(match[1]), []).append(f"{match[2]}={value}")
    if FIELD in found:
        raise ValueError("stages= and s1. to s8. are both given: leave one of them out")
    if max(cells) > MOST_STAGES:
        raise ValueError(
            f"s{max(cells)}. is given and a programme has at most {MOST_STAGES} stages: put "
            "repeats into one stage with count="
        )
    if lacking := [n for n in range(1, max(cells)) if n not in cells]:
        raise ValueError(
            f"s{max(cells)}. is given, but nothing of s{lacking[0]}.: number them from 1"
        )
    return {**found, FIELD: [",".join(cells[n]) for n in sorted(cells)]}

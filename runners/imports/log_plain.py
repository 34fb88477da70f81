"""Logs of anything that prints tokens per second: `5,762 tok/s`, `Tokens/s/device: 5300`.

A rate is for the job unless the line says per GPU, device, chip or rank; the user may override
this.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from runners.imports.steps import Log, Step
from runners.imports.text import positive, whose

NAME = "plain"
_WORDS = (
    r"(?:tokens?[ _]?(?:/|per)[ _]?s(?:ec(?:ond)?s?)?|toks?/s(?:ec)?|tokens_per_second"
    r"|tgs(?: \(tokens/gpu/second\))?)"  # InternEvo
    r"(?![a-z])"
)
_WHOSE = r"((?:[ _]?(?:/|per)[ _]?(?:gpu|device|chip|rank))?)"
_NUMBER = r"(\d[\d,]{0,14}(?:\.\d{1,12})?(?:e[+-]?\d{1,2})?)"
_AFTER = re.compile(
    rf"(?<![a-z]){_WORDS}{_WHOSE}['\"]?\s{{0,4}}[:=]?\s{{0,4}}['\"]?{_NUMBER}([kM]?)(?![\w.])",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    rf"(?<![\w.,]){_NUMBER}\s{{0,2}}([kM]?)\s{{0,2}}{_WORDS}{_WHOSE}", re.IGNORECASE
)
_STEP = re.compile(r"\b(?:step|iter(?:ation)?)s?\b[\s:=#\[]{0,8}(\d{1,9})\b", re.IGNORECASE)
SCALE = {"": 1.0, "k": 1e3, "m": 1e6}


def read(lines: Sequence[str], *, per_gpu: bool | None = None) -> Log | None:
    """The steps of a log; None if no line has tokens per second. With `per_gpu` the user says what
    the figures are for."""
    steps, kinds = [], set()
    for whole in lines:
        rank, line = whose(whole)
        if "tok" not in line.lower() and "tgs" not in line.lower():
            continue
        if match := _AFTER.search(line):
            whom, figure, scale = match.groups()
        elif match := _BEFORE.search(line):
            figure, scale, whom = match.groups()
        else:
            continue
        rate = positive(figure)
        if rate is None:
            continue
        rate *= SCALE[scale.lower()]
        of_gpu = bool(whom) or "tgs" in match[0].lower() if per_gpu is None else per_gpu
        kinds.add(of_gpu)
        at = _STEP.search(line)
        steps.append(
            Step(
                number=None if at is None else int(at[1]),
                rank=rank,
                tokens_per_s_per_gpu=rate if of_gpu else None,
                tokens_per_s=None if of_gpu else rate,
            )
        )
    if not steps:
        return None
    if len(kinds) > 1:  # lines of both kinds: those per GPU need no other figure
        steps = [s for s in steps if s.tokens_per_s_per_gpu is not None]
    of_gpu = True in kinds
    return Log(
        format=NAME,
        steps=tuple(steps),
        unit="tokens/s per GPU" if of_gpu else "tokens/s of the job",
        notes=()
        if of_gpu or per_gpu is not None
        else ("The log does not say whose tokens/s it prints: taken as those of the job.",),
    )

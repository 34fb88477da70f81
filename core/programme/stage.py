"""One stage of a programme as a short text: its name, and what it does not take from the scenario.

    long context,tokens=800B,seq_len=131072,cp=16
    main,tokens=15T,batch=0:2048/2.87T:4096
    ablations,share=5%,count=12,scale=0.125

The name may come first without `name=`; the other parts are named, in any order. A batch is one
number of sequences, or a ramp: from which token on it has which size. A mistake raises ValueError
with one sentence. What a field of a scenario may hold is checked by whoever knows the fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from core.errors import nearest, shown
from core.units import written_items, written_number

MOST_STAGES = 8
MOST_STAGE_CHARS = 400
MOST_NAME_CHARS = 40
MOST_RAMP_STEPS = 8
MOST_COUNT = 1000
LEAST_SCALE = 1e-4
MOST_GAP_HOURS = 8760.0
SEPARATOR = ";"  # between stages

# Fields of a scenario that a stage may set for itself.
FIELDS = (
    "task", "model", "num_tokens", "num_examples", "tokens_per_example", "epochs",
    "packing_efficiency", "seq_len", "global_batch_size", "precision", "stack", "optimizer",
    "sharding", "recompute", "tp", "pp", "cp", "ep", "etp", "dp_shard", "virtual_stages",
    "micro_batch_size", "context_parallel", "lora_rank",
)  # fmt: skip
OWN = ("name", "share", "of", "count", "scale", "gap_hours")
SHORT = {"tokens": "num_tokens", "batch": "global_batch_size", "examples": "num_examples"}
SIZES = ("num_tokens", "num_examples", "share")  # a stage gives one of them, or none

_NAME = re.compile(r"[A-Za-z0-9][\w .:()+-]*")
_VALUE = re.compile(r"[\w .:/()+%$-]+")

Ramp = tuple[tuple[float, int], ...]  # from which token on, sequences of a batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What one stage says of itself."""

    name: str = ""
    fields: tuple[tuple[str, str], ...] = ()  # of a scenario, as written
    ramp: Ramp = ()  # () where the batch is one number
    share: float | None = None  # of the tokens of another stage
    of: str = ""  # that stage; '': the main one
    count: int = 1  # runs of it, one after the other
    scale: float = 1.0  # parameters of its model over those of the scenario's
    gap_hours: float = 0.0  # the machines wait before it, paid

    @property
    def is_apart(self) -> bool:
        """Whether its weights are not those that the next stage goes on with."""
        return self.count > 1 or self.scale != 1 or any(n == "model" for n, _ in self.fields)


def stage_of(text: object) -> Stage:
    """The stage in a text.

    >>> stage_of("long, tokens=800B, seq_len=131072").fields
    (('num_tokens', '800B'), ('seq_len', '131072'))
    >>> stage_of("main,batch=0:512/252M:1024").ramp
    ((0.0, 512), (252000000.0, 1024))
    """
    if not isinstance(text, str) or len(text) > MOST_STAGE_CHARS:
        raise ValueError(f"a stage is a text of at most {MOST_STAGE_CHARS} characters {_LIKE}")
    cells: dict[str, str] = {}
    for n, part in enumerate(p.strip() for p in text.split(",")):
        name, equals, value = (t.strip() for t in part.partition("="))
        if not equals:
            if n or not part:
                raise ValueError(f"{shown(part)} is no part like seq_len=8192")
            name, value = "name", part
        name = SHORT.get(name, name)
        if name in cells:
            raise ValueError(f"{name} is given twice")
        cells[name] = value
    if not any(cells.values()):
        raise ValueError(f"{shown(text)} says nothing of a stage: write it like seq_len=8192")
    return stage_from(cells)


def stage_from(cells: Mapping[str, str]) -> Stage:
    """The stage in cells by name, as a link or a table has them; blank ones are not given."""
    given = {SHORT.get(n, n): v.strip() for n, v in cells.items() if v.strip()}
    for name, value in given.items():
        if name not in (*OWN, *FIELDS):
            guess = nearest(name, (*OWN, *FIELDS, *SHORT))
            meant = f"; {guess} is probably meant" if guess else ""
            raise ValueError(f"{shown(name)} is not a part of a stage{meant}")
        if len(value) > 80 or not _VALUE.fullmatch(value):
            raise ValueError(f"{name}: {shown(value)} is not plain text without , ; and =")
    if len(sizes := [n for n in SIZES if n in given]) > 1:
        raise ValueError(f"it gives {sizes[0]} and {sizes[1]}: leave one of them out")
    if "of" in given and "share" not in given:
        raise ValueError("of= names a stage, but share= is not given: like share=5%,of=main")
    own: dict[str, Any] = {n: read(given[n]) for n, read in _READ.items() if n in given}
    batch = given.get("global_batch_size", "")
    return Stage(
        fields=tuple(
            (n, given[n]) for n in FIELDS
            if n in given and not (n == "global_batch_size" and ":" in batch)
        ),
        ramp=ramp_of(batch) if ":" in batch else (),
        **own,
    )  # fmt: skip


def cells_of(stage: Stage) -> dict[str, str]:
    """The stage as cells that `stage_from` reads back; what it leaves out is not there."""
    cells = {"name": stage.name, **dict(stage.fields)}
    if stage.ramp:
        steps = (f"{_plain(at)}:{batch}" for at, batch in stage.ramp)
        cells["global_batch_size"] = "/".join(steps)
    for name in OWN[1:]:
        value = getattr(stage, name)
        if value not in (None, "", Stage.__dataclass_fields__[name].default):
            cells[name] = value if isinstance(value, str) else _plain(value)
    return {n: v for n, v in cells.items() if v}


def text_of(stage: Stage) -> str:
    """The shortest text that reads back as this stage."""
    return ",".join(f"{n}={v}" for n, v in cells_of(stage).items())


def ramp_of(text: str) -> Ramp:
    """The batch ramp in a text: token on which a step starts, and its sequences per batch."""
    like = "a ramp is like 0:512/252M:1024 (from which token on, how many sequences)"
    steps: list[tuple[float, int]] = []
    for part in text.split("/"):
        start, colon, sequences = part.partition(":")
        if not colon:
            raise ValueError(f"{shown(part)} is no step of a ramp: {like}")
        steps.append((_number(start, "token"), _whole(sequences, "batch", 4_194_304)))
    if len(steps) > MOST_RAMP_STEPS:
        raise ValueError(f"a ramp of {len(steps)} steps is too long: at most {MOST_RAMP_STEPS}")
    if steps[0][0] != 0:
        raise ValueError(f"the ramp starts at token {steps[0][0]:,.0f}, not at 0: {like}")
    for (at, batch), (then, more) in pairwise(steps):
        if then <= at:
            raise ValueError(f"the ramp does not rise: token {then:,.0f} comes after {at:,.0f}")
        if more <= batch:
            raise ValueError(
                f"the ramp does not rise: a batch of {more:,} follows one of {batch:,}"
            )
    return tuple(steps)


def written_stages(value: Any, check: Callable[[Mapping[str, str]], object]) -> tuple[str, ...]:
    """'a;b' or ['a', 'b'] -> the stages in their shortest text, each with a name of its own.
    `check` raises ValueError where a field cannot hold its value."""
    parts = written_items(value, SEPARATOR)
    if len(parts) > MOST_STAGES:
        raise ValueError(
            f"{len(parts)} stages are given and a programme has at most {MOST_STAGES}: put "
            "repeats into one stage with count="
        )
    found = []
    for n, part in enumerate(parts):
        try:
            stage = stage_of(part)
            check(dict(stage.fields))
        except ValueError as e:
            raise ValueError(f"stage {n + 1}, {shown(part)}: {str(e).rstrip('.')}") from None
        found.append(stage)
    check_names(found)
    return tuple(text_of(s) for s in found)


def label(stages: Sequence[Stage], n: int) -> str:
    """The name of stage n, counted from 0, or its number."""
    return stages[n].name or f"stage {n + 1}"


def check_names(stages: Sequence[Stage]) -> None:
    """Raise ValueError where two stages have one name, or a share leads back to itself."""
    names = [label(stages, n) for n in range(len(stages))]
    if twice := [n for n in names if names.count(n) > 1]:
        raise ValueError(f"two stages are called {shown(twice[0])}: each needs its own name")
    for n, stage in enumerate(stages):
        way, at = [names[n]], stage
        while at.share is not None and at.of:
            if at.of not in names:
                guess = nearest(at.of, names)
                meant = f": {shown(guess)} is probably meant" if guess else ""
                raise ValueError(f"of={shown(at.of)} is not the name of a stage{meant}")
            if at.of in way:
                back = " of ".join([*way[way.index(at.of) :], at.of])
                raise ValueError(
                    f"the share of {shown(at.of)} refers to itself ({back}): give one tokens"
                )
            way.append(at.of)
            at = stages[names.index(at.of)]
    if stages and all(s.share is not None for s in stages):
        raise ValueError("every stage is a share of another: give one of them tokens")


_LIKE = "(like long context,tokens=800B,seq_len=131072)"


def _name(text: str) -> str:
    if len(text) > MOST_NAME_CHARS or not _NAME.fullmatch(text):
        raise ValueError(
            f"the name {shown(text)} is not plain text: at most {MOST_NAME_CHARS} letters, digits, "
            "blanks and . : ( ) + - _"
        )
    return text


def _number(text: str, what: str) -> float:
    try:
        return written_number(text)
    except ValueError:
        raise ValueError(f"{what}: {shown(text)} is not a number") from None


def _within(what: str, least: float, most: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        value = _number(text.removesuffix("%"), what) / (100 if text.endswith("%") else 1)
        if not least <= value <= most:
            raise ValueError(f"{what} {shown(text)} is not from {least:g} to {most:,g}")
        return value

    return read


def _whole(text: str, what: str, most: int) -> int:
    value = _number(text, what)
    if not (value.is_integer() and 1 <= value <= most):
        raise ValueError(f"{what} {shown(text)} is not a whole number from 1 to {most:,}")
    return int(value)


_READ: dict[str, Callable[[str], Any]] = {
    "name": _name,
    "share": _within("share", 1e-6, 100.0),
    "of": _name,
    "count": lambda text: _whole(text, "count", MOST_COUNT),
    "scale": _within("scale", LEAST_SCALE, 1.0),
    "gap_hours": _within("gap_hours", 0.0, MOST_GAP_HOURS),
}


def _plain(value: float) -> str:
    """A number as text that reads back equal."""
    short = f"{value:.12g}"
    return (short if float(short) == value else repr(value)).replace("+", "").removesuffix(".0")

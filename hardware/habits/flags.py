"""What makes a stack do what the forecast assumes: hardware/habits/flags.csv, a row for each flag.

A row has the choices of one habit that it holds for, and how they come about:

set      the launch file sets `flag` to `value`; absent: the flag is left out
always   the stack does only this
program  the user's own program decides
differs  a file can be written, but its run is not what was forecast: the note says how. The
         forecast of this stack assumes another choice, where it has one (`settled`)

What has no row cannot be asked of the stack. `--name` is an argument, a.b a key inside of a part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from core.errors import FactError, shown
from core.machine.accelerator import Source
from hardware.efficiency import stacks
from hardware.tables import check_source, rows

FLAGS_CSV = Path(__file__).with_name("flags.csv")
Value = str | int | bool | None
SET, ALWAYS, PROGRAM, DIFFERS = "set", "always", "program", "differs"
ABSENT, STEPS, MODULES = "absent", "{steps}", "{modules}"
_COLUMNS = (
    "stack", "version", "habit", "choices", "how", "flag", "value", "source", "source_date", "note",
)  # fmt: skip
_WORDS: dict[str, Value] = {"true": True, "false": False, "null": None}
ON_OFF = ("on", "off")
# Habit -> its name, its choices, and the scenario's field that asks for another.
HABITS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "gradient_overlap": ("reduction of gradients during backward", ON_OFF, "gradient_overlap"),
    "param_overlap": ("gathering of weights beside computation", ON_OFF, "param_overlap"),
    "async_tp": ("tensor-parallel communication beside matmuls", ON_OFF, "async_tp"),
    "attention": ("attention kernel", ("flash2", "flash3", "newest", "unfused"), "attention"),
    "compile": ("compiler", ON_OFF, "compile"),
    "cuda_graphs": ("CUDA graphs", ON_OFF, "cuda_graphs"),
    "loss": ("logits of the loss", ("whole", "chunked"), "chunked_loss"),
    "packing": ("full sequences", ON_OFF, "packing_efficiency"),
    "gradients": ("type of reduced gradients", ("fp32", "bf16", "fp16"), "gradient_dtype"),
    "optimizer_states": (
        "optimizer", ("adamw", "adamw_8bit", "adafactor", "muon", "sgd"), "optimizer"
    ),
    "recompute": (
        "recompute", ("none", "selective", "norm_act", "mlp", "full", "offload"), "recompute"
    ),
    "checkpoint_interval": ("steps between checkpoints", ("steps",), "interval_s"),
    "async_checkpoint": ("checkpoints behind training", ON_OFF, "async_checkpoint"),
    "dispatcher": ("expert dispatcher", ("per_expert", "per_node"), "moe_dispatcher"),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One row: what makes some choices of one habit of one stack."""

    stack: str
    version: str
    habit: str
    choices: tuple[str, ...]
    how: str
    flag: str
    value: str
    source: Source  # printed: the note


def load_flags(path: Path = FLAGS_CSV) -> Mapping[str, tuple[Flag, ...]]:
    """Read the table, by stack; an unknown stack, habit or choice, a flag that is not set or is
    given twice for one choice, or a row without a source is an error."""
    found: dict[str, list[Flag]] = {}
    seen: dict[tuple[str, ...], str] = {}
    for where, row in rows(path, _COLUMNS):
        stack, habit, how, flag = (row[name] for name in ("stack", "habit", "how", "flag"))
        check_source(where, f"{stack} {habit}", row)
        choices = tuple(row["choices"].split())
        if stack not in stacks() or habit not in HABITS or not row["version"]:
            raise FactError(f"{where}: {shown(stack)} {shown(habit)} is no habit of a stack")
        if not choices or (unknown := {*choices} - {*HABITS[habit][1]}):
            raise FactError(f"{where}: {habit} has no choice {shown(str(unknown or row))}")
        if how not in (SET, ALWAYS, PROGRAM, DIFFERS) or bool(flag) != bool(row["value"]):
            raise FactError(f"{where}: {shown(how)} is not how a habit comes about")
        if (how == SET) != bool(flag) and how != DIFFERS:
            raise FactError(f"{where}: {how} with the flag {shown(flag)}")
        for choice in choices:
            ways = {
                flag: how for (*key, flag), how in seen.items() if key == [stack, habit, choice]
            }
            if flag in ways or {*ways.values(), how} != {how}:
                raise FactError(f"{where}: {stack} {habit} {choice} comes about in two ways")
            seen[stack, habit, choice, flag] = how
        source = Source(ref=row["source"], date=row["source_date"], printed=row["note"])
        found.setdefault(stack, []).append(
            Flag(
                stack=stack, version=row["version"], habit=habit, choices=choices, how=how,
                flag=flag, value=row["value"], source=source,
            )
        )  # fmt: skip
    return {stack: tuple(flags) for stack, flags in found.items()}


@cache
def flags() -> Mapping[str, tuple[Flag, ...]]:
    """The shipped table, read once."""
    return load_flags()


@cache
def rows_of(stack: str, habit: str, choice: str) -> tuple[Flag, ...]:
    """The rows of one choice of a stack; none: it cannot be asked of it."""
    found = flags().get(stack, ())
    return tuple(f for f in found if f.habit == habit and choice in f.choices)


def choices_of(stack: str, habit: str) -> list[str]:
    """The choices that a stack's file can be written for."""
    return [choice for choice in HABITS[habit][1] if rows_of(stack, habit, choice)]


def settings(
    stack: str, chosen: Mapping[str, str], *, steps: int = 0, modules: str = ""
) -> dict[str, Value]:
    """Flags that make these choices, with their values; `steps` lie between checkpoints, `modules`
    are those of each layer that are computed again.

    >>> settings("deepspeed", {"gradient_overlap": "on", "gradients": "bf16", "compile": "on"})
    {'zero_optimization.overlap_comm': True, 'data_types.grad_accum_dtype': 'bf16'}
    >>> settings("torchtitan", {"cuda_graphs": "on", "checkpoint_interval": "steps"}, steps=9)
    {'--training.no-disable_cuda_graphs': True, '--checkpoint.interval': 9}
    """
    found: dict[str, Value] = {}
    for habit, choice in chosen.items():
        for row in rows_of(stack, habit, choice):
            if row.flag and row.value != ABSENT:
                given: dict[str, Value] = {STEPS: steps, MODULES: modules}
                found[row.flag] = given.get(row.value, _value(row.value))
    return found


def unknown(stack: str, chosen: Mapping[str, str]) -> list[tuple[str, str]]:
    """Habit and choice of what cannot be asked of a stack.

    >>> unknown("maxtext", {"cuda_graphs": "on", "loss": "whole"})
    [('cuda_graphs', 'on')]
    """
    return [(h, choice) for h, choice in chosen.items() if not rows_of(stack, h, choice)]


def differences(stack: str, chosen: Mapping[str, str]) -> list[str]:
    """What the run of a file does otherwise than these choices, one sentence each."""
    return [
        f"{HABITS[habit][0]}: {row.source.printed}"
        for habit, choice in chosen.items()
        for row in rows_of(stack, habit, choice)
        if row.how == DIFFERS
    ]


def settled(stack: str, habit: str, wanted: str) -> str:
    """The choice that a forecast of this stack may assume: the wanted one, or the first that it
    does, if its run differs from the wanted one.

    >>> settled("torchtitan", "loss", "whole"), settled("generic", "loss", "whole")
    ('chunked', 'whole')
    """
    if not any(row.how == DIFFERS for row in rows_of(stack, habit, wanted)):
        return wanted
    others = (c for c in choices_of(stack, habit) if rows_of(stack, habit, c)[0].how != DIFFERS)
    return next(others, wanted)


def table(names: Iterable[str] = ()) -> list[tuple[str, str, str, str]]:
    """What the files set, for readers: stack with version, habit, choice, and what makes it so."""
    found = []
    for stack in names or flags():
        for habit in HABITS:
            for choice in choices_of(stack, habit):
                given = rows_of(stack, habit, choice)
                label = f"{stack} {given[0].version}"
                text = "; ".join(dict.fromkeys(_words(row) for row in given))
                found.append((label, HABITS[habit][0], choice, text))
    return found


def _words(row: Flag) -> str:
    """What one row does, in words."""
    note = f" ({row.source.printed})" if row.source.printed else ""
    if row.how == DIFFERS:
        return f"differs: {row.source.printed}"
    if row.how != SET:
        return {ALWAYS: "always", PROGRAM: "your program"}[row.how] + note
    if row.value == ABSENT:
        return f"without {row.flag}" + note
    bare = row.flag.startswith("--") and row.value == "true"
    return (row.flag if bare else f"{row.flag} {row.value}") + note


def _value(text: str) -> Value:
    return int(text) if text.isdigit() else _WORDS.get(text, text)

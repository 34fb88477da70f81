"""What each software stack takes and does: hardware/stack_support.csv, one row for each stack with
a launch file, of one version, with its source.

Degrees, schedules and recomputes are those that the launch file can express; tasks, vendors and
precisions those of the stack. Nothing is known of a stack without a row: it is not restricted.
hardware/async_checkpoints.csv says which stacks can save a checkpoint behind training; one without
a row stops training until the whole checkpoint is written. hardware/stack_habits.csv says what a
stack, or a family of stacks, does from a month on where nobody says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from core.errors import FactError, shown
from core.layout.layouts import LAYER_SPLITS
from core.machine.accelerator import Source
from core.time.software import decimal_year
from hardware.efficiency import Stack, stacks
from hardware.tables import check_source, is_date, rows

SUPPORT_CSV = Path(__file__).with_name("stack_support.csv")
ASYNC_CSV = Path(__file__).with_name("async_checkpoints.csv")
HABITS_CSV = Path(__file__).with_name("stack_habits.csv")
BUILT_ON_CSV = Path(__file__).with_name("habits") / "built_on.csv"
_HABIT_COLUMNS = ("stack", "quantity", "since", "value", "source", "source_date", "note")
_BUILT_ON_COLUMNS = ("name", "like", "source", "source_date", "note")
_ASYNC_COLUMNS = ("stack", "since", "blocked_s", "blocked_source", "source", "source_date", "note")
ALWAYS = "always"
_LISTS = (
    "tasks", "vendors", "models", "precisions", "degrees", "schedules", "context_methods",
    "recomputes", "offloads",
)  # fmt: skip
_COLUMNS = ("stack", "version", *_LISTS, "layer_split", "target", "source", "source_date", "note")


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """What one stack takes. Empty: any, but for `degrees`, where empty is none."""

    stack: str
    version: str
    tasks: frozenset[str]  # empty: the training program is the user's own
    vendors: frozenset[str]  # of accelerators
    models: frozenset[str]  # presets that it has a configuration of
    precisions: frozenset[str]
    degrees: frozenset[str]  # of tp, pp, cp, ep, etp: those that may be above 1
    schedules: frozenset[str]
    layer_split: str  # core.layout.layouts.LAYER_SPLITS
    context_methods: frozenset[str]
    recomputes: frozenset[str]
    offloads: frozenset[str]  # optimizer/weights: cpu/none
    target: str  # the launch file
    source: Source

    @property
    def label(self) -> str:
        """The stack with the version that the row is of."""
        return f"{self.stack} {self.version}"

    def takes(self, column: str, value: str) -> bool:
        """Whether a list of the row has this value; a stack without a list of tasks has all."""
        listed: frozenset[str] = getattr(self, column)
        return value in listed or (column == "tasks" and not listed)


def load_support(path: Path = SUPPORT_CSV) -> Mapping[str, Support]:
    """Read the table; a row without a source, of an unknown stack, or given twice is an error."""
    found: dict[str, Support] = {}
    for where, row in rows(path, _COLUMNS):
        name = row["stack"]
        if name not in stacks():
            raise FactError(f"{where}: {shown(name)} is not a stack of stacks.csv")
        if name in found:
            raise FactError(f"{where}: {name} is given twice")
        check_source(where, name, row)
        if row["layer_split"] not in LAYER_SPLITS:
            raise FactError(
                f"{where}: layer_split {shown(row['layer_split'])} is not one of "
                f"{', '.join(LAYER_SPLITS)}"
            )
        lists = {column: frozenset(row[column].split()) for column in _LISTS}
        source = Source(ref=row["source"], date=row["source_date"], printed=row["note"])
        found[name] = Support(
            stack=name,
            version=row["version"],
            layer_split=row["layer_split"],
            target=row["target"],
            source=source,
            **lists,
        )
    return found


@cache
def supports() -> Mapping[str, Support]:
    """The shipped table, read once."""
    return load_support()


def support_of(stack: str) -> Support | None:
    """What a stack takes; None if no row says."""
    return supports().get(stack)


def lacks(stack: str, column: str, value: str, what: str) -> str:
    """The sentence on what a stack does not take, with the stacks that do; '' if it takes it.

    >>> lacks("torchtune", "degrees", "pp", "pipeline parallelism")
    'torchtune 0.6.1 has no pipeline parallelism: megatron-lm, megatron-bridge, torchtitan have.'
    """
    mine = support_of(stack)
    if mine is None or mine.takes(column, value):
        return ""
    others = [s.stack for s in supports().values() if s.takes(column, value)]
    have = f": {', '.join(others)} {'has' if len(others) == 1 else 'have'}" if others else ""
    return f"{mine.label} has no {what}{have}."


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncCheckpoint:
    """Since when a stack saves behind training, and how long it still stops."""

    stack: str
    since: str  # YYYY-MM, 'always', or '' for never
    blocked_s: float  # besides the copy of the states to the host
    blocked_source: str
    source: str


NEVER = AsyncCheckpoint(stack="", since="", blocked_s=0.0, blocked_source="", source="")


def load_async_checkpoints(path: Path = ASYNC_CSV) -> dict[str, AsyncCheckpoint]:
    """Read the table by stack; an unknown stack, a bad date or no source is an error."""
    found: dict[str, AsyncCheckpoint] = {}
    for where, row in rows(path, _ASYNC_COLUMNS):
        name = row["stack"]
        check_source(where, name, row)
        if name not in stacks() or name in found:
            raise FactError(f"{where}: {name!r} is no stack of hardware/stacks.csv, or given twice")
        if row["since"] != ALWAYS and not is_date(row["since"]):
            raise FactError(f"{where}: {name} has the date {row['since']!r}, not YYYY-MM or always")
        if not row["blocked_source"]:
            raise FactError(f"{where}: {name} has no source of its seconds")
        try:
            blocked = float(row["blocked_s"])
        except ValueError as e:
            raise FactError(f"{where}: {e}") from None
        found[name] = AsyncCheckpoint(
            stack=name,
            since=row["since"],
            blocked_s=blocked,
            blocked_source=row["blocked_source"],
            source=row["source"],
        )
    return found


@cache
def _async_table() -> dict[str, AsyncCheckpoint]:
    return load_async_checkpoints()


def async_checkpoint(stack: str) -> AsyncCheckpoint:
    """What the table has on a stack; NEVER where it has no row."""
    return _async_table().get(stack, NEVER)


Habits = Mapping[tuple[str, str], list[tuple[float, str]]]


def _built_on() -> set[str]:
    """Software that hardware/habits/built_on.py takes for a stack; it may have its own habits."""
    return {row["name"] for _, row in rows(BUILT_ON_CSV, _BUILT_ON_COLUMNS)}


def load_habits(path: Path = HABITS_CSV) -> Habits:
    """Read the table: (software, stack or family, quantity) -> (year, word) from the newest on."""
    found: dict[tuple[str, str], list[tuple[float, str]]] = {}
    names = {*stacks(), *(s.family for s in stacks().values()), *_built_on()}
    for where, row in rows(path, _HABIT_COLUMNS):
        check_source(where, row["quantity"], row)
        if row["stack"] not in names:
            raise FactError(f"{where}: {shown(row['stack'])} is no stack or family of stacks.csv")
        if row["since"] != ALWAYS and not is_date(row["since"]):
            raise FactError(f"{where}: {shown(row['since'])} is not YYYY-MM or always")
        since = 0.0 if row["since"] == ALWAYS else decimal_year(row["since"])
        found.setdefault((row["stack"], row["quantity"]), []).append((since, row["value"]))
    return {key: sorted(words, reverse=True) for key, words in found.items()}


@cache
def _habits() -> Habits:
    return load_habits()


def habit(stack: Stack, quantity: str, software_year: float) -> str:
    """What a software, or else the stack that it is built on, or its family, did in that year; ''
    where the table has no row."""
    for name in (stack.software, stack.name, stack.family):
        for since, word in _habits().get((name, quantity), []):
            if software_year >= since:
                return word
    return ""

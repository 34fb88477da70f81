"""What software does that has no row in hardware/stacks.csv.

hardware/habits/built_on.csv names stacks that are built on one of those, and do as it does. Of any
other, or of none, the first row of hardware/habits/unnamed.csv that fits the run decides: vendor,
task, sharding and degrees tell how such software works (`like` a stack), not how well, so that its
fractions are the generic ones, but where a vendor leaves one compiler only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from core.errors import FactError, shown
from hardware.efficiency import GENERIC, Stack, stacks
from hardware.tables import check_source, rows

BUILT_ON_CSV = Path(__file__).with_name("built_on.csv")
UNNAMED_CSV = Path(__file__).with_name("unnamed.csv")
_COLUMNS = (
    "vendor", "task", "sharding", "divided", "like", "profile", "source", "source_date", "note",
)  # fmt: skip
_BUILT_ON_COLUMNS = ("name", "like", "source", "source_date", "note")
_YES_NO = {"yes": True, "no": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """The software that is assumed, and the stack whose fractions it gets."""

    stack: Stack
    profile: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """One row; an empty field fits every run."""

    vendor: str
    task: str
    sharding: str
    divided: bool | None
    assumed: Assumed

    def fits(self, vendor: str, task: str, sharding: str, divided: bool) -> bool:
        """Whether the row is of such a run."""
        return (
            self.vendor in ("", vendor)
            and self.task in ("", task)
            and self.sharding in ("", sharding)
            and self.divided in (None, divided)
        )


@cache
def _rules(path: Path = UNNAMED_CSV) -> tuple[_Rule, ...]:
    found = []
    for where, row in rows(path, _COLUMNS):
        like = _like(where, row)
        # Its type of gradients is as unknown as its name; the strategy's is assumed.
        generic = stacks()[GENERIC]
        stack = replace(
            stacks()[like], name=GENERIC, gradient_dtype="", chunked_loss=generic.chunked_loss
        )
        found.append(
            _Rule(
                vendor=row["vendor"],
                task=row["task"],
                sharding=row["sharding"],
                divided=_YES_NO.get(row["divided"]),
                assumed=Assumed(stack=stack, profile=like if row["profile"] else GENERIC),
            )
        )
    return tuple(found)


@cache
def _built_on(path: Path = BUILT_ON_CSV) -> dict[str, str]:
    return {row["name"]: _like(where, row) for where, row in rows(path, _BUILT_ON_COLUMNS)}


def _like(where: str, row: dict[str, str]) -> str:
    check_source(where, row["like"], row)
    if row["like"] not in stacks():
        raise FactError(f"{where}: {shown(row['like'])} is not a stack of stacks.csv")
    return row["like"]


def built_on(name: str) -> Stack | None:
    """The stack with a profile that a software without one is built on; None where none is named.

    >>> built_on("AXLearn v0.1").name
    'maxtext'
    """
    written = name.strip().lower().replace("_", "-")
    known = [n for n in _built_on() if written.startswith(n)]
    if not known:
        return None
    software = max(known, key=len)
    return replace(stacks()[_built_on()[software]], software=software)


def software_of(name: str, *, vendor: str, task: str, sharding: str, divided: bool) -> Assumed:
    """The software of a run whose stack has no profile: its name, or ''. `sharding` is a name of
    core/layout/sharding.py; `divided`: the model is cut by tensor, pipeline, context or expert
    parallelism.

    >>> run = {"vendor": "nvidia", "task": "pretrain", "sharding": "zero1", "divided": True}
    >>> software_of("", **run).stack.family, software_of("AXLearn v0.1", **run).stack.name
    ('megatron', 'maxtext')
    """
    if like := built_on(name):
        return Assumed(stack=like, profile=like.name)
    for rule in _rules():
        if rule.fits(vendor, task, sharding, divided):
            return rule.assumed
    return Assumed(stack=stacks()[GENERIC], profile=GENERIC)

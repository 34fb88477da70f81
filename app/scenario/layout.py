"""A layout as people write it: tp=8,pp=4,dp_shard=16,sharding=zero1,micro_batch_size=1.

One codec for `--layout`, for a scenario's measured layout (`anchor_layout`) and for the printed
layout of a plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args

from core.errors import ScenarioError, nearest, shown
from core.scenario.types import ContextParallel, Recompute, Schedule, Sharding
from core.search.plan import Layout

MAX_CHARS = 600  # twice the length of the longest layout
LARGEST_DEGREE = 131_072

# In the order in which a layout is written. `dp` is dp_replicate x dp_shard.
DEGREES = (
    "tp",
    "pp",
    "virtual_stages",
    "cp",
    "ep",
    "etp",
    "dp",
    "dp_replicate",
    "dp_shard",
    "micro_batch_size",
    "num_microbatches",
)
PLACES = ("none", "cpu", "nvme")  # where a layout's offload goes; `search` is not among them
CHOICES: dict[str, tuple[str, ...]] = {
    "sharding": get_args(Sharding),
    "recompute": get_args(Recompute),
    "schedule": get_args(Schedule),
    "context_parallel": get_args(ContextParallel),
    "reshard_after_forward": ("1", "0"),
    "offload_optimizer": PLACES,
    "offload_params": PLACES,
}
# Written only if they add information: methods that the layout uses, unless default.
OPTIONAL = (
    "schedule", "context_parallel", "reshard_after_forward", "offload_optimizer", "offload_params",
)  # fmt: skip
KEYS = (*DEGREES, *CHOICES)
SHORT_KEYS = {
    **{key: key for key in ("tp", "pp", "cp", "ep", "etp", "dp")},
    **dict.fromkeys(("mb", "mbs"), "micro_batch_size"),
    "vp": "virtual_stages",
}
_SHORT = re.compile(r"([a-z]+)(\d+)")


def parse_layout(text: str) -> dict[str, Any]:
    """The keys of a written layout: degrees as whole numbers, the others as names.

    Keys that are left out are not in the result. Whether the degrees fit together, and fit a number
    of GPUs, is not checked here.

    >>> parse_layout("tp=8, sharding=zero1"), parse_layout("TP8 pp4 zero1 mb2")
    ({'tp': 8, 'sharding': 'zero1'}, {'tp': 8, 'pp': 4, 'sharding': 'zero1', 'micro_batch_size': 2})
    """
    if len(text) > MAX_CHARS:
        raise ScenarioError(f"A layout has at most {MAX_CHARS} characters; {shown(text)} has more.")
    found: dict[str, Any] = {}
    for key, value in _pairs(text):
        if key not in KEYS:
            raise ScenarioError(_unknown(key))
        if key in found:
            raise ScenarioError(f"The layout gives {key} twice: {found[key]} and {shown(value)}.")
        found[key] = _choice(key, value) if key in CHOICES else _degree(key, value)
    if not found:
        raise ScenarioError("The layout is empty; it is written like tp=8,pp=4,sharding=zero1.")
    return found


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Each key and value of a written layout; short forms such as tp8, zero1 and mb2 in full."""
    for part in (p.strip() for p in re.split(r",|(?<![=\s])\s+(?![=\s])", text)):
        if not part:
            continue
        key, equals, value = (t.strip() for t in part.partition("="))
        if equals:
            yield key, value
        elif (short := _SHORT.fullmatch(part.lower())) and short[1] in SHORT_KEYS:
            yield SHORT_KEYS[short[1]], short[2]
        elif part.lower() in get_args(Sharding):
            yield "sharding", part.lower()
        else:
            raise ScenarioError(
                f"{shown(part)} in a layout is no KEY=VALUE like tp=8, nor short like tp8 or zero1."
            )


def layout_text(layout: Layout) -> str:
    """A complete layout as text that `parse_layout` reads back.

    A key that an older record lacks (etp) is left out. So is a key of OPTIONAL that has the
    scenario's default or does not apply to the layout.
    """
    values = {key: getattr(layout, key, None) for key in KEYS if key not in OPTIONAL}
    if layout.pp > 1 and layout.schedule != "interleaved":
        values["schedule"] = layout.schedule
    if layout.cp > 1 and layout.context_parallel != "ring":
        values["context_parallel"] = layout.context_parallel
    if not layout.reshard_after_forward:
        values["reshard_after_forward"] = 0
    for what in ("offload_optimizer", "offload_params"):
        if getattr(layout, what, "none") != "none":
            values[what] = getattr(layout, what)
    return ",".join(f"{key}={value}" for key, value in values.items() if value is not None)


def _unknown(key: str) -> str:
    guess = nearest(key, KEYS)
    hint = f" Did you mean {guess!r}?" if guess else ""
    return f"{shown(key)} is no key of a layout.{hint} Known: {', '.join(KEYS)}."


def _degree(key: str, value: str) -> int:
    # isdecimal alone accepts digits of every script, and int() would read them.
    if not (value.isascii() and value.isdecimal() and len(value) <= 9):
        raise ScenarioError(
            f"{key}={shown(value)} in a layout is not a whole number from 1 to {LARGEST_DEGREE:,}."
        )
    number = int(value)
    if not 1 <= number <= LARGEST_DEGREE:
        raise ScenarioError(
            f"{key}={number} in a layout is not a whole number from 1 to {LARGEST_DEGREE:,}."
        )
    return number


def _choice(key: str, value: str) -> str:
    if value not in CHOICES[key]:
        guess = nearest(value, CHOICES[key])
        hint = f" Did you mean {guess!r}?" if guess else ""
        raise ScenarioError(
            f"{key}={shown(value)} in a layout is not one of {', '.join(CHOICES[key])}.{hint}"
        )
    return value

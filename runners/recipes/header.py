"""Header of every file: its origin, its forecast and its assumptions; and the block of a training
stack's file with the values that the plan does not decide.

A value that was not given has a line `# TODO runcast: NAME - what to fill in`, which preflight.sh
lists and does not pass over. Whoever fills the value in deletes that line.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from runners.recipes.job import Header
from runners.recipes.quoting import plain
from runners.recipes.target import NOT_VALIDATED, Tier

WIDTH = 96
ASSUMPTIONS = 40  # at most; the scenario has them all
FILL_IN, FILLED_IN = "# --- fill in before starting ---", "# ---"
TODO = "# TODO runcast: "
UNKNOWN = "REPLACE_ME"  # where a value cannot be left empty


@dataclass(frozen=True, slots=True, kw_only=True)
class Blank:
    """A value that the plan does not decide, under its name in the file."""

    name: str
    what: str  # to fill in
    value: Any = UNKNOWN
    known: bool = False


def header_lines(header: Header, *, tool: str, tier: Tier) -> list[str]:
    """The header as lines of plain text; text from outside is made safe."""
    validation = f"Validated with {tool}." if tier == "validated" else f"{NOT_VALIDATED}: {tool}."
    lines = [
        f"Written by {plain(header.product)}. {validation}",
        # One whole word, because users copy it into a shell.
        f"Scenario: runcast plan --link '{plain(header.link, quotes=False)}'",
        f"Prices: snapshot {plain(header.prices)}.",
        "Forecast, to hold the first minutes of the run against:",
        *(f"  {plain(text)}" for text in header.forecast),
    ]
    if header.assumptions:
        lines.append("Assumed:")
        lines += [f"  - {plain(text)}" for text in header.assumptions[:ASSUMPTIONS]]
    return lines


def commented(header: Header, *, tool: str, tier: Tier, prefix: str = "# ") -> str:
    """The header as comment lines, each beginning with `prefix` and ended by a line break.

    >>> h = Header(product="p 1", link="?v=1", prices="x", forecast=("a\\nb",), assumptions=())
    >>> print(commented(h, tool="t 1", tier="not_validated"), end="")
    # Written by p 1. not validated with the tool: t 1.
    # Scenario: runcast plan --link '?v=1'
    # Prices: snapshot x.
    # Forecast, to hold the first minutes of the run against:
    #   a b
    """
    return comments(header_lines(header, tool=tool, tier=tier), prefix=prefix)


def comments(lines: Iterable[str], *, prefix: str = "# ") -> str:
    """Sentences as wrapped comment lines; text from outside is made safe.

    >>> print(comments(["a\\nb"], prefix="// "), end="")
    // a b
    """
    out = []
    for text in lines:
        indent = len(text) - len(text.lstrip(" "))
        line = " " * indent + plain(text)
        wrapped = [line] if line.startswith("Scenario:") else textwrap.wrap(
            line, WIDTH, subsequent_indent=" " * (indent + 2), break_on_hyphens=False,
            break_long_words=False,
        )  # fmt: skip
        out += [f"{prefix}{part}".rstrip() for part in wrapped or [""]]
    return "".join(f"{line}\n" for line in out)


def to_fill_in(blanks: Iterable[Blank], line: Callable[[Blank], str]) -> str:
    """The block: for each value the remark that it is missing, if it is, and its `line`.

    >>> print(to_fill_in([Blank(name="A", what="a folder")], lambda b: b.name + "=\\n"), end="")
    # --- fill in before starting ---
    # TODO runcast: A - a folder
    A=
    # ---
    """
    found = [FILL_IN + "\n"]
    for blank in blanks:
        if not blank.known:
            found.append(f"{TODO}{blank.name} - {plain(blank.what)}\n")
        found.append(line(blank))
    return "".join([*found, FILLED_IN + "\n"])

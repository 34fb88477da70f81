"""Shell files with the arguments of a training program, written and read back."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from core.errors import shown
from runners.recipes.header import Blank, commented, comments, to_fill_in
from runners.recipes.job import Header, RecipeError
from runners.recipes.target import Tier

Arguments = Mapping[str, str | int | bool]
BEGIN = "exec python "
_ASSIGNED = re.compile(r"^([A-Z][A-Z_]*)=(.*)$", re.M)
_USED = re.compile(r"\$\{([A-Z][A-Z_]*):\?\}")


class Several(str):
    """Words after one flag, with spaces between them."""

    __slots__ = ()


class Filled(str):
    """Name of a variable of the first block, whose value stands in this place."""

    __slots__ = ()


def given(settings: Mapping[str, str | int | bool | None]) -> dict[str, str | int | bool]:
    """Settings as arguments: one without a value is left out."""
    return {flag: value for flag, value in settings.items() if value is not None}


def script(
    header: Header, file: str, program: Sequence[str], arguments: Arguments, *, tool: str,
    tier: Tier, notes: Sequence[str] = (), environment: Mapping[str, str] | None = None,
    last: str = "", blanks: Sequence[Blank] = (),
) -> str:  # fmt: skip
    """A bash file that becomes one process of the job; every word is quoted. A true value is a bare
    flag, a false one is left out. `last` comes after the words that the caller adds. `blanks` are
    assigned in the first block; bash stops at one that is used and empty."""
    used = (
        f"One process of the job. Start it with a launcher's file, or: torchrun ... --no-python "
        f"bash {file}",
        "What is given to it goes to the program, too.",
    )
    block = to_fill_in(blanks, lambda b: f"{b.name}={shlex.quote(str(b.value)) * b.known}\n")
    lines = ["#!/usr/bin/env bash", block.rstrip("\n")]
    lines += [commented(header, tool=tool, tier=tier).rstrip("\n")]
    lines += [comments((*used, *notes)).rstrip("\n"), "set -euo pipefail"]
    lines += [f"export {name}={shlex.quote(v)}" for name, v in (environment or {}).items()]
    body = [BEGIN + shlex.join(program)]
    for flag, value in arguments.items():
        if isinstance(value, Filled):
            body.append(f'{shlex.quote(flag)} "${{{value}:?}}"')
        elif isinstance(value, Several):
            body.append(shlex.join([flag, *value.split()]))
        elif value is not False:
            body.append(shlex.join([flag] if value is True else [flag, str(value)]))
    body += ['"$@"', shlex.quote(last)] if last else ['"$@"']
    return "\n".join(lines) + "\n" + " \\\n  ".join(body) + "\n"


def program_words(text: str, name: str) -> list[str]:
    """Every word after python in such a file, without those that its caller adds; variables of
    the first block have their values, and are empty without one."""
    head, begin, rest = text.partition("\n" + BEGIN)
    try:
        assigned = {n: "".join(shlex.split(v)) for n, v in _ASSIGNED.findall(head)}
        words = (w for w in shlex.split(rest.replace("\\\n", " ")) if w != "$@")
        found = [_USED.sub(lambda m: assigned.get(m[1], ""), w) for w in words]
    except ValueError:
        found = []
    if not begin or not found:
        raise RecipeError(f"{name} does not start python.")
    return found


def flags(given: Sequence[str], name: str, *, several: Sequence[str] = ()) -> dict[str, str | bool]:
    """`--flag value` pairs; a flag without a value is True. Twice is an error, and a second word
    but for the flags that take `several`."""
    found: dict[str, str | bool] = {}
    at = ""
    for word in given:
        if word.startswith("--"):
            if word in found:
                raise RecipeError(f"{name} gives {shown(word)} twice.")
            found[at := word] = True
        elif at in several and found[at] is not True:
            found[at] = f"{found[at]} {word}"
        elif at:
            if found[at] is not True:
                raise RecipeError(f"{name} has the word {shown(word)}, which belongs to no flag.")
            found[at] = word
    return found


def number(
    found: Mapping[str, str | bool], flag: str, name: str, default: int | None = None
) -> int:
    """A whole number that a flag holds."""
    value = found.get(flag, "" if default is None else str(default))
    if not isinstance(value, str) or not value.isdigit():
        raise RecipeError(f"{name} has no number after {flag}.")
    return int(value)

"""Shell files with the arguments of a training program, written and read back."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from core.errors import shown
from runners.recipes.header import commented, comments
from runners.recipes.job import Header, RecipeError
from runners.recipes.target import Tier

Arguments = Mapping[str, str | int | bool]
BEGIN = "exec python "


def script(
    header: Header, file: str, program: Sequence[str], arguments: Arguments, *, tool: str,
    tier: Tier, notes: Sequence[str] = (), environment: Mapping[str, str] | None = None,
    last: str = "",
) -> str:  # fmt: skip
    """A bash file that becomes one process of the job; every word is quoted. A true value is a bare
    flag, a false one is left out. `last` comes after the words that the caller adds."""
    used = (
        f"One process of the job. Start it with a launcher's file, or: torchrun ... --no-python "
        f"bash {file}",
        "What is given to it goes to the program, too.",
    )
    lines = ["#!/usr/bin/env bash", commented(header, tool=tool, tier=tier).rstrip("\n")]
    lines += [comments((*used, *notes)).rstrip("\n"), "set -euo pipefail"]
    lines += [f"export {name}={shlex.quote(v)}" for name, v in (environment or {}).items()]
    body = [BEGIN + shlex.join(program)]
    for flag, value in arguments.items():
        if value is not False:
            body.append(shlex.join([flag] if value is True else [flag, str(value)]))
    body += ['"$@"', shlex.quote(last)] if last else ['"$@"']
    return "\n".join(lines) + "\n" + " \\\n  ".join(body) + "\n"


def program_words(text: str, name: str) -> list[str]:
    """Every word after python in such a file, without those that its caller adds."""
    _, begin, rest = text.partition("\n" + BEGIN)
    try:
        found = [word for word in shlex.split(rest.replace("\\\n", " ")) if word != "$@"]
    except ValueError:
        found = []
    if not begin or not found:
        raise RecipeError(f"{name} does not start python.")
    return found


def flags(given: Sequence[str], name: str) -> dict[str, str | bool]:
    """`--flag value` pairs; a flag without a value is True. Twice is an error."""
    found: dict[str, str | bool] = {}
    at = ""
    for word in given:
        if word.startswith("--"):
            if word in found:
                raise RecipeError(f"{name} gives {shown(word)} twice.")
            found[at := word] = True
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

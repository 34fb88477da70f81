"""Checks and escapes of user input that is written into files.

A shell line is built from words that are quoted one by one, YAML and JSON by their own writers, a
comment from text without a line break. Input that cannot be written safely is refused with a
sentence.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import TypeVar

from core.errors import RuncastError, shown
from runners.launchers import quoting as launching
from runners.recipes.job import RecipeError

_T = TypeVar("_T")
MOST_CHARS = 2000  # of one option
ENV = "env:"  # begins options that are variables of the job
_SPACE = re.compile(r"\s+")
_BUCKETS = ("s3", "gs", "r2", "nebius", "oci", "cos", "https")
_BUCKET = re.compile(r"([a-z0-9]{2,10})://[A-Za-z0-9][A-Za-z0-9._/@-]{1,250}", re.ASCII)


def plain(text: str, *, quotes: bool = True) -> str:
    """Text from outside as one line for a comment; unprintable characters become blanks.

    >>> plain("a\\nb\\u2028c"), plain("it's", quotes=False)
    ('a b c', 'it%27s')
    """
    line = _SPACE.sub(" ", "".join(c if c.isprintable() else " " for c in text)).strip()
    return line if quotes else line.replace("'", "%27")


def one_line(text: str, what: str) -> str:
    """Text of at most 2,000 characters that can all be printed; RecipeError for any other."""
    if not text.strip():
        raise RecipeError(f"{what} is empty: leave it out or give it.")
    if len(text) > MOST_CHARS:
        raise RecipeError(f"{what} has {len(text):,} characters; {MOST_CHARS:,} are allowed.")
    if not text.isprintable():
        raise RecipeError(f"{what} {shown(text)} holds a line break or something unprintable.")
    return text


def command_words(text: str) -> list[str]:
    """The argument list of a command, as a shell would split it; nothing in it is expanded.

    >>> command_words("python train.py --name 'a b; $(x)'")
    ['python', 'train.py', '--name', 'a b; $(x)']
    """
    line = one_line(text, "--command")
    try:
        words = shlex.split(line)
    except ValueError:
        raise RecipeError(f"--command {shown(text)} has a quote that is not closed.") from None
    if not words or words[0].startswith("-"):
        raise RecipeError(f"--command {shown(text)} does not begin with a program.")
    return words


def shell(words: list[str]) -> str:
    """An argument list as one line of a shell, each word quoted where it must be."""
    return shlex.join(words)


def variables(options: Mapping[str, str]) -> dict[str, str]:
    """The job's variables among the options: names are checked, secrets refused."""
    given = {k.removeprefix(ENV): v for k, v in options.items() if k.startswith(ENV)}
    for name, value in given.items():
        if len(value) > MOST_CHARS:
            raise RecipeError(
                f"--env {shown(name)} has {len(value):,} characters; {MOST_CHARS:,} are allowed."
            )
    return as_recipe_error(lambda: launching.variables(f"{k}={v}" for k, v in given.items()))


def name(text: str, option: str) -> str:
    """A partition, an account, a namespace."""
    return as_recipe_error(lambda: launching.name(text, option))


def image(text: str, option: str) -> str:
    """A container image."""
    return as_recipe_error(lambda: launching.image(text, option))


def path(text: str, option: str) -> str:
    """A path on a node."""
    return as_recipe_error(lambda: launching.path(text, option))


def hosts(text: str) -> tuple[str, ...]:
    """Hosts as a,b,c; none twice."""
    return as_recipe_error(lambda: launching.hosts(text))


def bucket(text: str, option: str, kinds: tuple[str, ...] = _BUCKETS) -> str:
    """The address of a bucket, s3://name/folder."""
    match = _BUCKET.fullmatch(text)
    if match is None or match[1] not in kinds:
        raise RecipeError(
            f"{option} {shown(text)} is no bucket like s3://name/folder: it begins with one of "
            f"{', '.join(kinds)}; letters, digits and '. _ - / @' are allowed."
        )
    return text


def whole(text: str, option: str, least: int, most: int) -> int:
    """A whole number between two."""
    if not (text.isascii() and text.isdigit() and len(text) < 8 and least <= int(text) <= most):
        raise RecipeError(f"{option} {shown(text)} is not a whole number from {least} to {most}.")
    return int(text)


def positive(text: str, option: str, most: float) -> float:
    """A positive number, not above `most`.

    >>> positive("3e-4", "learning_rate", most=10.0)
    0.0003
    """
    try:
        value = float(one_line(text, option)) if text.isascii() else 0.0
    except ValueError:
        value = 0.0
    if not 0 < value <= most:
        raise RecipeError(f"{option} {shown(text)} is no number above 0, at most {most:g}.")
    return value


def as_recipe_error(checked: Callable[[], _T]) -> _T:
    """The result of a check of the launchers; its error becomes a RecipeError."""
    try:
        return checked()
    except RecipeError:
        raise
    except RuncastError as e:
        raise RecipeError(str(e)) from None

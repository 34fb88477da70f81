"""Errors that a user can cause and fix. Any other exception is a bug.

RuncastError
├── ScenarioError   the scenario (form, link or command line) asks for something unknown
├── ModelError      a config.json cannot be read as a model
├── FactError       a facts table has a row that cannot be trusted
└── RunsError       a file of measured runs cannot be read
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection

SHOWN = 60  # characters of a foreign value that a sentence repeats
LISTED = 12  # names that a sentence lists before it counts the rest


class RuncastError(ValueError):
    """Base of every error that is shown to the user as a sentence, not a traceback.

    `template` is the sentence with its fields in braces, for who calls them otherwise;
    `as_labelled` is the one for a form, where that calls them by their labels.
    """

    def __init__(self, sentence: str = "", *, template: str = "", as_labelled: str = "") -> None:
        super().__init__(sentence)
        self.template = template
        self.as_labelled = as_labelled or sentence

    def named(self, name_of: Callable[[str], str]) -> str:
        """The sentence with each field of its template called as `name_of` calls it."""
        return re.sub(r"{(\w+)}", lambda m: name_of(m[1]), self.template) or str(self)


class ScenarioError(RuncastError):
    """The scenario (form, link or command line) asks for something impossible or unknown."""


class ModelError(RuncastError):
    """A config.json cannot be read as a model that this project can estimate."""


class FactError(RuncastError):
    """A facts table has a row that cannot be trusted."""


class RunsError(RuncastError):
    """A file of measured runs or models cannot be read."""


def shown(value: object) -> str:
    """A value from outside, quoted and cut, safe to repeat in a sentence.

    >>> shown("x" * 100)[-6:]
    "xxx..'"
    """
    text = value if isinstance(value, str) else repr(value)
    printable = "".join(c if c.isprintable() else "?" for c in text[: SHOWN + 1])
    return repr(printable if len(printable) <= SHOWN else printable[: SHOWN - 2] + "..")


def nearest(name: str, known: Collection[str]) -> str | None:
    """The known name that was probably meant, or None: of names about as near, one with the first
    letter that was given."""
    lower, given = {k.lower(): k for k in known}, name[:SHOWN].lower()
    guesses = difflib.get_close_matches(given, lower, n=3, cutoff=0.5)
    guesses.sort(key=lambda g: g[:1] != given[:1])  # stable: the nearest first
    return lower[guesses[0]] if guesses else None


def unknown_sentence(
    kind: str, name: str, known: Collection[str], *, guess: str | None = None
) -> str:
    """Sentence with the unknown name, the known name that was probably meant, and what is known."""
    guess = guess or nearest(name, known)
    hint = f" Did you mean {guess!r}?" if guess else ""
    names = sorted(known)
    rest = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"Unknown {kind} {shown(name)}.{hint} Known: {', '.join(names[:LISTED])}{rest}."


def not_installed(package: str, extra: str) -> RuncastError:
    """The error of a package that is missing, with the extra of this distribution that has it."""
    return RuncastError(f"The package {package} is not installed: pip install 'runcast[{extra}]'.")


def unknown_name(
    kind: str, name: str, known: Collection[str], *, guess: str | None = None
) -> ScenarioError:
    """`unknown_sentence` as the error of a scenario."""
    return ScenarioError(unknown_sentence(kind, name, known, guess=guess))

"""Checks of user input for commands: names, paths, hosts, variables.

Commands are argument lists. Two things pass through a shell: the command line of `ssh`, which the
remote shell reads, and the text of a batch script. Both are checked here first, and quoted.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from core.errors import RuncastError, shown

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", re.ASCII)
_PATH = re.compile(r"[A-Za-z0-9_./~][A-Za-z0-9_./~+@%=-]{0,511}", re.ASCII)
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./:@-]{0,255}", re.ASCII)
_CONTAINER = re.compile(r"[A-Za-z0-9/][A-Za-z0-9_./:@#+-]{0,511}", re.ASCII)
_MOUNT = re.compile(r"/[A-Za-z0-9_./+@=-]{0,255}:/[A-Za-z0-9_./+@=-]{0,255}(?::[a-z+]{2,40})?")
_HOST = re.compile(
    r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}@)?[A-Za-z0-9][A-Za-z0-9_.-]{0,252}(?::\d{1,5})?", re.ASCII
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_ALLOWED = {
    "letters, digits, '_', '.' and '-' are allowed": _NAME,
    "letters, digits and '_ . / ~ + @ % = -' are allowed": _PATH,
    "an image looks like registry/name:tag": _IMAGE,
    "a container looks like registry#name:tag, docker://name:tag or /path/name.sqsh": _CONTAINER,
    "a mount looks like /on/the/node:/in/the/container": _MOUNT,
    "a host looks like name, user@name or user@name:port": _HOST,
}


class LaunchError(RuncastError):
    """A run cannot be started, followed or fetched; the sentence is the reason."""


class UnreachableError(LaunchError):
    """The place did not answer, but may answer later."""


def _checked(text: str, option: str, pattern: re.Pattern[str]) -> str:
    if pattern.fullmatch(text):
        return text
    allowed = next(words for words, p in _ALLOWED.items() if p is pattern)
    raise LaunchError(f"{option} {shown(text)} is refused: {allowed}.")


def name(text: str, option: str) -> str:
    """A partition, an account, a namespace.

    >>> name("gpu; rm -rf", "--partition")
    Traceback (most recent call last):
    ...
    runners.launchers.quoting.LaunchError: --partition 'gpu; rm -rf' is refused: letters, \
digits, '_', '.' and '-' are allowed.
    """
    return _checked(text, option, _NAME)


def path(text: str, option: str) -> str:
    """A path on a node, without blanks, because batch scripts and scp use it unquoted."""
    if ".." in text.split("/"):
        raise LaunchError(f"{option} {shown(text)} is refused: it leads through '..'.")
    return _checked(text, option, _PATH)


def image(text: str, option: str) -> str:
    """A container image."""
    return _checked(text, option, _IMAGE)


def container(text: str, option: str) -> str:
    """An image as pyxis or Apptainer names it: in a registry, or a file of the nodes."""
    return _checked(text, option, _CONTAINER)


def mount(text: str, option: str) -> str:
    """A folder of the node and its place in a container."""
    return _checked(text, option, _MOUNT)


def hosts(text: str) -> tuple[str, ...]:
    """The hosts of `a,user@b:2222`, in order; none twice.

    >>> hosts("a, user@b:2222")
    ('a', 'user@b:2222')
    """
    found = tuple(_checked(h.strip(), "--hosts", _HOST) for h in text.split(",") if h.strip())
    if not found:
        raise LaunchError("--hosts names no host: give a,b,... as your ssh configuration has them.")
    if len(set(found)) < len(found):
        twice = next(h for h in found if found.count(h) > 1)
        raise LaunchError(f"--hosts names {shown(twice)} twice.")
    if bad := [h for h in found if ":" in h and not 0 < int(h.rpartition(":")[2]) < 65_536]:
        raise LaunchError(f"--hosts {shown(bad[0])} has no port between 1 and 65535.")
    return found


def variables(texts: Iterable[str]) -> dict[str, str]:
    """NAME=VALUE of every --env. They are written to files, so secrets are refused."""
    found = {}
    for text in texts:
        variable, equals, value = text.partition("=")
        if not equals or not _VARIABLE.fullmatch(variable):
            raise LaunchError(
                f"--env {shown(text)} is no NAME=VALUE; a name has letters, digits and '_'."
            )
        if _SECRET.search(variable):
            raise LaunchError(
                f"--env {shown(variable)} is refused: it looks like a secret, and variables are "
                "written to files."
            )
        if not value.isprintable():
            raise LaunchError(f"--env {shown(variable)} has a value that cannot be printed.")
        found[variable] = value
    return found


def shell_line(arguments: Sequence[str]) -> str:
    """An argument list as a line for a shell, each argument quoted; ~/ stays the home folder."""
    return " ".join(
        "~/" + shlex.quote(a[2:]) if a.startswith("~/") else shlex.quote(a) for a in arguments
    )

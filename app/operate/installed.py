"""Checks of the versions of Runcast, Python and the required packages against their pins."""

from __future__ import annotations

import platform
import re
import sys
import tomllib
from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import PackageNotFoundError, requires
from importlib.metadata import version as installed
from pathlib import Path

from app.operate.finding import Finding, State
from app.scenario.version import ROOT, commit, version

LEAST_PYTHON = (3, 11)
MEND = "pip install -e . -c requirements.txt"
PINS, PYPROJECT = ROOT / "requirements.txt", ROOT / "pyproject.toml"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def look(now: datetime) -> Iterator[Finding]:
    """The versions. A package that differs from its pin has not been tested with the others."""
    id = commit()
    yield Finding(
        area="installed",
        name="runcast",
        state="ok" if version() else "warning",
        value=" ".join(filter(None, (version() or "not installed", id and f"commit {id[:12]}"))),
        todo="" if version() else f"Install it: {MEND}",
        numbers={"version": version() or None, "commit": id or None},
    )
    here = platform.python_version()
    fits = sys.version_info[:2] >= LEAST_PYTHON
    yield Finding(
        area="installed",
        name="python",
        state="ok" if fits else "broken",
        value=here,
        todo="" if fits else f"Runcast needs Python {'.'.join(map(str, LEAST_PYTHON))} or newer.",
        numbers={"version": here},
    )
    pins = pinned(PINS)
    for name in asked_for():
        yield _package(name, pins.get(normal(name)))


def asked_for() -> list[str]:
    """The packages that Runcast requires, and those of its extras that are installed; from the
    checkout or else from the metadata."""
    try:
        project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
        lines = project["dependencies"]
        extras = [
            line for e, of in project["optional-dependencies"].items() if e != "dev" for line in of
        ]
    except (OSError, KeyError):
        try:
            stated = requires("runcast") or []
        except PackageNotFoundError:
            return []
        lines = [line for line in stated if "extra ==" not in line]
        split = [line.partition("extra ==") for line in stated]
        extras = [line for line, _, extra in split if extra and "dev" not in extra]
    needed, more = (
        [found[0] for line in of if (found := _NAME.match(line))] for of in (lines, extras)
    )
    return [*dict.fromkeys([*needed, *filter(version_of_package, more)])]


def pinned(path: Path) -> dict[str, str]:
    """The versions in a file of pins, by package; empty if there is no file, as in a wheel."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    parts = (line.split(";")[0].partition("==") for line in lines)
    return {normal(name.strip()): pin.strip() for name, _, pin in parts if pin}


def normal(name: str) -> str:
    """The normalized name of a package, as indexes compare it.

    >>> normal("Vl_Convert.Python")
    'vl-convert-python'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def version_of_package(name: str) -> str:
    """The version of an installed package; '' if it is not installed."""
    try:
        return installed(name)
    except PackageNotFoundError:
        return ""


def _package(name: str, pin: str | None) -> Finding:
    here = version_of_package(name)
    state: State = "ok" if here and pin in (None, here) else "warning" if here else "broken"
    values = {"ok": here, "warning": f"{here}, tested with {pin}", "broken": "missing"}
    todo = {"ok": "", "warning": f"Bring it to its pin: {MEND}", "broken": f"Install it: {MEND}"}
    return Finding(
        area="installed",
        name=name,
        state=state,
        value=values[state],
        todo=todo[state],
        numbers={"version": here or None, "pin": pin},
    )

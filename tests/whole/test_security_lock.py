"""deploy/requirements.lock: the pins of requirements.txt that a server needs, each with hashes."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
LOCKED = ("auth", "metrics", "postgres", "report", "ui")  # extras: deploy/Makefile
LOCK = (ROOT / "deploy/requirements.lock").read_text()
MACHINES = [(python, machine) for python in ("3.11", "3.12", "3.13", "3.14")
            for machine in ("x86_64", "aarch64")]  # fmt: skip


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def entries() -> list[tuple[Requirement, list[str]]]:
    """What each entry of the lock asks for, and its hashes."""
    joined = LOCK.replace("\\\n", " ")
    lines = [line for line in joined.splitlines() if line and not line.startswith("#")]
    parts = [line.split("--hash=") for line in lines]
    return [(Requirement(wanted.strip()), [h.strip() for h in found]) for wanted, *found in parts]


def environment(python: str, machine: str) -> dict[str, str]:
    """What markers see on Linux with CPython."""
    return {**default_environment(), "python_version": python, "python_full_version": f"{python}.0",
            "platform_machine": machine, "sys_platform": "linux", "platform_system": "Linux",
            "os_name": "posix", "implementation_name": "cpython",
            "platform_python_implementation": "CPython", "extra": ""}  # fmt: skip


def installed(python: str, machine: str) -> dict[str, str]:
    """Name -> version of what the lock installs there."""
    where = environment(python, machine)
    return {
        normal(r.name): str(r.specifier).removeprefix("==")
        for r, _ in entries()
        if r.marker is None or r.marker.evaluate(where)
    }


@cache
def stated(name: str) -> list[Requirement]:
    """All that an installed distribution ever asks for."""
    return [*map(Requirement, requires(name) or [])]


def asked(wanted: str, extras: set[str], where: dict[str, str]) -> list[Requirement]:
    """What an installed distribution asks for, with those extras."""
    return [
        r
        for r in stated(wanted)
        if r.marker is None or any(r.marker.evaluate({**where, "extra": e}) for e in {"", *extras})
    ]


def needed(where: dict[str, str]) -> set[str]:
    """Every distribution that a server needs with a login, whatever asks for it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [line for e in LOCKED for line in project["optional-dependencies"][e]]
    lines = [*project["dependencies"], *extras]
    left, found = [*map(Requirement, lines)], {}
    while left:
        wanted = left.pop()
        name, before = normal(wanted.name), found.get(normal(wanted.name))
        if before is None or not wanted.extras <= before:
            found[name] = (before or set()) | wanted.extras
            left += asked(name, found[name], where)
    return set(found)


def pins() -> dict[str, str]:
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return {normal(name): version for name, _, version in (line.partition("==") for line in lines)}


def test_every_entry_is_an_exact_version_with_a_sha256():
    assert entries()
    for wanted, hashes in entries():
        assert re.fullmatch(r"==\d[\w.]*", str(wanted.specifier)), wanted
        assert hashes, wanted
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", h) for h in hashes), wanted


def test_it_names_no_index_and_no_option():
    options = re.findall(r"^\s*(-\S+?)[=\s]", LOCK, re.M)
    assert set(options) == {"--hash"}
    assert "://" not in LOCK


@pytest.mark.parametrize(("python", "machine"), MACHINES)
def test_the_versions_are_those_of_requirements_txt(python, machine):
    found = installed(python, machine)
    assert {n: v for n, v in found.items() if pins().get(n) != v} == {}


@pytest.mark.parametrize(("python", "machine"), MACHINES)
def test_it_is_what_the_dashboard_needs_all_the_way_down_and_no_more(python, machine):
    assert set(installed(python, machine)) == needed(environment(python, machine))


def test_neither_torch_nor_a_tool_of_the_tests_is_in_it():
    names = {normal(r.name) for r, _ in entries()}
    assert not names & {"torch", "pytest", "ruff", "mypy", "playwright", "hypothesis"}
    assert {"streamlit", "authlib", "psycopg", "psycopg-binary", "runcast"} - names == {"runcast"}

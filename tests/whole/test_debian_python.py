"""Every pin installs with the Python of the oldest system that README.md names."""

from __future__ import annotations

import re
from importlib.metadata import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

PINS = (Path(__file__).parents[2] / "requirements.txt").read_text()
# Of Debian 12; pip refuses a wheel that asks for more, were it 3.11.5.
PYTHON = "3.11.2"


def test_every_pin_installs_with_the_python_of_debian_12():
    wanted = {name: metadata(name)["Requires-Python"] for name in names()}
    assert len(wanted) > 100
    assert {n: w for n, w in wanted.items() if not takes(w)} == {}


@pytest.mark.parametrize(("wanted", "good"), [(">=3.11.5", False), (">=3.12", False),
                                              (">=3.11", True), (None, True)])  # fmt: skip
def test_what_asks_for_a_newer_one_would_be_noticed(wanted, good):
    assert takes(wanted) is good


def takes(wanted: str | None) -> bool:
    return wanted is None or PYTHON in SpecifierSet(wanted)


def names() -> list[str]:
    """What is pinned for every machine: an entry with a marker may not be installed here."""
    return re.findall(r"^([\w.-]+)==[^;\s]+$", PINS, re.M)

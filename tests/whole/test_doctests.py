"""The examples in docstrings give what they say."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("app", "core", "hardware", "pricing", "runners")
EXAMPLES = [
    str(path.relative_to(ROOT).with_suffix("")).replace("/", ".")
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
    if re.search(r"^ +>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)
]


def test_there_are_examples_in_most_of_core():
    assert sum(name.startswith("core.") for name in EXAMPLES) > 30


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name):
    module = importlib.import_module(name)
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0

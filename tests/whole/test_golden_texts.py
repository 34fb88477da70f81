"""Texts of commands and pages are those that were recorded: a refactoring moves none of them."""

import pytest

from tests.support import golden_text
from tests.support.golden_text import FOLDER, SCENARIOS, differences, lines_of, texts_of

QUICK = {"lora"}  # of the others each takes ten seconds
NAMES = [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in SCENARIOS]


@pytest.mark.parametrize("name", NAMES)
def test_texts_are_as_recorded(name, monkeypatch):
    monkeypatch.setenv("RUNCAST_TODAY", golden_text.TODAY)
    monkeypatch.setenv("COLUMNS", "100")
    moved = {
        file: lines
        for file, text in texts_of(name).items()
        if (lines := differences((FOLDER / file).read_text(encoding="utf-8"), text))
    }
    shown = "\n".join(line for file, lines in moved.items() for line in (f"{file}:", *lines[:12]))
    assert not moved, (
        f"If these are meant to move, `python -m tests.support.golden_text` records them:\n{shown}"
    )


def test_recorded_files_are_those_of_the_scenarios():
    expected = {f"{n}.{medium}.txt" for n in SCENARIOS for medium in golden_text.MEDIA}
    assert {path.name for path in FOLDER.iterdir()} == expected


def test_differences_ignore_rounding_only():
    assert not differences("usd: 10062.1; id: a", "usd: 10062.2; id: a")
    assert differences("usd: 10062.1", "usd: 10063.1") == ["- usd: 10062.1\n+ usd: 10063.1"]
    assert differences("a\nb", "a") == ["-b"]


def test_json_lines_are_compact_and_named():
    value = {"plans": [{"id": "x", "usd": 1.23456789, "null": None, "about": "y" * 200}]}
    lines = list(lines_of(value, "plan"))
    assert lines == [
        "plan:",
        "  plans:",
        "    x:",
        "      id: x; usd: 1.23457",
        f"      about: {'y' * 200}",
    ]

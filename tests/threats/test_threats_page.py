"""docs/threats.md: every threat has a test that is there."""

from __future__ import annotations

import ast
import re

import pytest

from tests.conftest import ROOT

PAGE = (ROOT / "docs/threats.md").read_text(encoding="utf-8")
NUM_THREATS = 34
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows() -> dict[int, tuple[str, str, list[tuple[str, str]]]]:
    """Number -> the threat, what happens, the tests: file and function."""
    table, _, lists = PAGE.partition("## The tests")
    parts = re.split(r"^Threat (\d+):$", lists, flags=re.M)[1:]
    shown = {int(n): NAMED.findall(text) for n, text in zip(parts[::2], parts[1::2], strict=True)}
    found = {}
    for line in table.splitlines():
        if re.match(r"\| \d+ \|", line):
            number, threat, happens = (c.strip() for c in line.strip("|").split("|"))
            found[int(number)] = (threat, happens, shown.pop(int(number), []))
    assert shown == {}  # tests of a threat that the table does not have
    return found


def collected(path: str) -> set[str]:
    """The tests that pytest would collect from a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}


def test_every_threat_is_there_and_has_a_test():
    assert list(rows()) == list(range(1, NUM_THREATS + 1))
    for number, (threat, happens, shown) in rows().items():
        assert threat, number
        assert happens.endswith((".", ")")) or len(happens) > 20, number
        assert shown, number


@pytest.mark.parametrize("number", range(1, NUM_THREATS + 1))
def test_every_test_that_the_page_names_exists(number):
    named = rows()[number][2]
    assert [
        f"{p}::{n}" for p, n in named if not (ROOT / p).is_file() or n not in collected(p)
    ] == []
    assert len(set(named)) == len(named)


def test_every_test_of_this_folder_is_for_a_threat_of_the_page():
    """What is only about the tests themselves, and the bounds, has no row."""
    named = {path for _, _, shown in rows().values() for path, _ in shown}
    here = {p.relative_to(ROOT).as_posix() for p in (ROOT / "tests/threats").glob("test_*.py")}
    about_pages = {"tests/threats/test_threats_page.py"}
    assert here - named == about_pages


def test_a_name_that_is_not_there_is_seen():
    assert NAMED.findall("`tests/app/web/test_link.py::test_x` `tests/y.py`") == [
        ("tests/app/web/test_link.py", "test_x")
    ]
    assert "test_x" not in collected("tests/app/web/test_link.py")

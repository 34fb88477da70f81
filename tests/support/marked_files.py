"""A file that spells no mark which `-m` asks for is not even imported: most have none. So a mark is
spelled in the file whose tests have it; one that is not ends the run."""

from __future__ import annotations

import re
from itertools import chain, combinations
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

MARKS = frozenset(("browser", "journey", "serial", "services", "slow"))
SPELLED = re.compile(r"\bmark\.(\w+)")


def spelled(path: Path) -> frozenset[str]:
    """The marks of a tier that a file names."""
    return MARKS.intersection(SPELLED.findall(path.read_text(encoding="utf-8")))


def may_hold(expression: str, marks: frozenset[str]) -> bool:
    """Whether a test with some of these marks would be one that is asked for."""
    asked = Expression.compile(expression)
    some = chain.from_iterable(combinations(marks, n) for n in range(len(marks) + 1))
    return any(asked.evaluate(lambda name, own=own, **_: name in own) for own in some)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    asked = config.option.markexpr
    is_test = collection_path.match("test_*.py") and collection_path.is_file()
    return True if asked and is_test and not may_hold(asked, spelled(collection_path)) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    by_file: dict[Path, frozenset[str]] = {}
    for item in items:
        own = MARKS.intersection(mark.name for mark in item.iter_markers())
        if own and not own <= by_file.setdefault(item.path, spelled(item.path)):
            raise pytest.UsageError(f"{item.nodeid} has marks that its file does not spell: {own}")

"""The table of planted errors: one line of one module of core, and what is wrong with the other.

The original text stands in its module exactly once (a test checks it), so that a line that moves
or changes is planted again by hand. `tests` are those of the module itself: the error must be
caught close to where it is. `caught_by` is the first test of these that fails, which
`python -m tests.mutations --name` finds and writes.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from tests.mutations.copies import tests_of

TABLE = Path(__file__).with_name("planted.csv")


@dataclass(frozen=True, slots=True)
class Planted:
    """One error."""

    module: str  # of core
    kind: str
    original: str
    planted: str
    files: tuple[str, ...]  # of the tests that must catch it
    caught_by: str  # the test that does


def _rows() -> list[dict[str, str]]:
    with TABLE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _planted() -> tuple[Planted, ...]:
    return tuple(
        Planted(
            module=row["module"],
            kind=row["kind"],
            original=row["original"].replace("\\n", "\n"),
            planted=row["planted"].replace("\\n", "\n"),
            files=tuple(
                file for name in (row["tests"] or row["module"]).split() for file in tests_of(name)
            ),
            caught_by=row["caught_by"],
        )
        for row in _rows()
    )


def write_names(caught_by: list[str]) -> None:
    """The table with these names of tests, one for each of its rows."""
    rows = [row | {"caught_by": name} for row, name in zip(_rows(), caught_by, strict=True)]
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


PLANTED = _planted()

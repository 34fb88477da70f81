"""Which version made a link, and which of its numbers have changed since.

app/scenario/link_changes.csv lists every number of a recorded link that has changed, with the
version that changed it and the reason. The tests compare it with the files of tests/golden/links.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.version import InvalidVersion, Version

from app.scenario.version import version
from core.scenario import Scenario
from core.scenario.types import MOST_VERSION_CHARS

TABLE = Path(__file__).parent / "link_changes.csv"
MOST_REASONS = 3


@dataclass(frozen=True, slots=True)
class Change:
    """A number of a released link that has changed since that release, and why."""

    version: str  # version of the release that made the link
    about: str  # name of the link in the release's file
    number: str  # a column of that file; * means all columns
    old: str
    new: str
    since: str  # version that changed the number
    reason: str  # one sentence
    commit: str


def changes() -> tuple[Change, ...]:
    """Every change of a number of a released link."""
    return _rows(TABLE)


@cache
def _rows(table: Path) -> tuple[Change, ...]:
    with table.open(newline="", encoding="utf-8") as file:
        return tuple(Change(**row) for row in csv.DictReader(file))


@cache
def installed() -> str:
    """The version written into new links, without its local part; '' if unknown.

    >>> str(Version("0.2.0rc1+mine").public)
    '0.2.0rc1'
    """
    try:
        here = Version(version()).public
    except InvalidVersion:
        return ""
    return here if len(here) <= MOST_VERSION_CHARS else ""


def stamped(scenario: Scenario) -> Scenario:
    """The scenario, marked as made by the installed version."""
    here = installed()
    return scenario if scenario.made == here else scenario.model_copy(update={"made": here})


def since(scenario: Scenario, what: str) -> list[str]:
    """What has changed since a scenario's link was made: one note, or none if the link is from this
    version or names no version. `what` begins the sentence: 'This link'."""
    made, here = scenario.made, installed()
    if not made or not here or (then := Version(made)) == (now := Version(here)):
        return []
    begins = f"{what} was made with Runcast {made}"
    if then > now:
        return [f"{begins}, which is newer than the {here} here: its numbers may have been others."]
    found = (c for c in changes() if then < Version(c.since) <= now)
    reasons = list(dict.fromkeys(c.reason for c in found))
    if not reasons:
        return [f"{begins}, here is {here}: no number of a recorded link has changed since."]
    more = len(reasons) - MOST_REASONS
    listed = [*reasons[:MOST_REASONS], *([f"And {more:,} more."] if more > 0 else [])]
    return [f"{begins}, here is {here}. Since then: {' '.join(listed)}"]

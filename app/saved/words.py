"""Saved scenarios in words: the lines of the list, on the page and on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from app.document import format as fmt
from app.saved.saved import SHORT, model_of, query_of
from core.errors import shown
from core.scenario import Scenario
from pricing.store.saved import SavedScenario

SHOWN = 10  # rows of the list on the page; a search finds the others


def what(saved: SavedScenario) -> str:
    """The model, its tokens, and the price snapshot."""
    tokens = Scenario.from_query(query_of(saved))[0].num_tokens
    prices = f"prices {saved.snapshot_id}" if saved.snapshot_id else "the newest prices"
    return f"{model_of(saved)}, {fmt.tokens(tokens)} tokens, {prices}"


def when(at: datetime) -> str:
    """A time in UTC, to the minute.

    >>> when(datetime(2026, 11, 22, 5, 31, tzinfo=UTC))
    '2026-11-22 05:31 UTC'
    """
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def line(saved: SavedScenario) -> str:
    """The line below the name in the list."""
    return f"{what(saved)}; changed {when(saved.updated_at)}"


def count_line(found: Sequence[SavedScenario], every: Sequence[SavedScenario]) -> str:
    """How many scenarios there are, how many were found, and how many are shown.

    >>> count_line([], [])
    'Nothing is saved yet.'
    """
    if not every:
        return "Nothing is saved yet."
    if not found:
        return f"None of {fmt.count(len(every))} has that in its name or model."
    if len(found) > SHOWN:
        return f"The last changed {SHOWN} of {fmt.count(len(found))}: search for the others."
    return f"{fmt.count(len(found))} of {fmt.count(len(every))}"


def saved_sentence(saved: SavedScenario) -> str:
    """The confirmation of a save."""
    return f"Saved as {shown(saved.name)}."


def deleted_sentence(saved: SavedScenario) -> str:
    """The confirmation of a deletion."""
    return f"Deleted {shown(saved.name)}: its short link opens nothing now."


def terminal_line(saved: SavedScenario) -> str:
    """One line of `runcast scenarios list`."""
    return f"{saved.name}: {line(saved)}"


def lines(saved: SavedScenario) -> list[str]:
    """The output of `runcast scenarios show`; links are on lines of their own, to copy."""
    return [
        f"{saved.name}: {what(saved)}",
        f"saved {when(saved.created_at)}, changed {when(saved.updated_at)}",
        f"?{saved.query.removeprefix('?')}",
        f"?{SHORT}={saved.id}",
    ]

"""The query of a link that reopens an answer."""

from __future__ import annotations

from urllib.parse import urlencode

from app.scenario.age import stamped
from core.scenario import Scenario


def link_query(scenario: Scenario, prices: str) -> str:
    """The query string that reopens this answer: v=1&...&made=<version>&prices=<snapshot>."""
    flat = {**stamped(scenario).to_query(), "prices": prices}
    return urlencode(flat, safe=",/:")

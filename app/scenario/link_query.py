"""The query of a link that reopens an answer."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from app.scenario.age import stamped
from core.scenario import Scenario
from pricing.offers import snapshot


def link_query(scenario: Scenario, prices: str) -> str:
    """The query string that reopens this answer: v=1&...&made=<version>&prices=<snapshot>."""
    flat = {**stamped(scenario).to_query(), "prices": prices}
    return urlencode(flat, safe=",/:")


def document_head(scenario: Scenario, version: int) -> dict[str, Any]:
    """The first keys of a document on a scenario: its schema's version and its link."""
    link = link_query(scenario, snapshot(scenario.prices).id)
    return {"schema_version": version, "link": link}

"""Whole price lists that are held back, and what a person decides about one: take it or leave it.

A list that is left stays held back while its source says about the same, even where a second
refresh or another source confirms it. A list that is taken is no longer left, and is published when
its source is asked again and says about the same. The decision to leave is kept with the row that
holds the list back, and ends with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from core.errors import ScenarioError, shown
from pricing.judgement import WHOLE, Quarantined
from pricing.lease import lease
from pricing.source_state import read_quarantine, write_quarantine
from pricing.store.engine import Store
from pricing.store.quarantine import TEXT_MAX, record_taken

Rows = tuple[Quarantined, ...]


def held_lists(folder: Path) -> dict[str, Rows]:
    """The sources whose whole list is held back, each with the reasons."""
    found: dict[str, Rows] = {}
    for q in read_quarantine(folder):
        if q.rule in WHOLE:
            found[q.source] = (*found.get(q.source, ()), q)
    return found


def leave(source: str, *, by: str, why: str, folder: Path) -> None:
    """Keep the list of a source held back while it says about the same. `ScenarioError` if it is
    not held back, `LeaseError` while a refresh is at work."""
    said = (f"{by}: {why}" if why else by)[:TEXT_MAX]
    _decide(source, folder, lambda q: replace(q, left_by=said))


def take(store: Store, source: str, *, by: str, why: str, folder: Path) -> None:
    """Record that a person believes the list of a source: asked again, it is published if it says
    about the same. Raises as `leave`."""
    rows = _decide(source, folder, lambda q: replace(q, left_by=""))
    record_taken(store, rows, by=by, why=why)


def _decide(source: str, folder: Path, change: Callable[[Quarantined], Quarantined]) -> Rows:
    """Change the rows that hold back the list of a source; returns them."""
    with lease(folder):
        rows = read_quarantine(folder)
        found = [q for q in rows if q.source == source and q.rule in WHOLE]
        if not found:
            raise ScenarioError(f"No whole list of {shown(source)} is held back: see the sources.")
        write_quarantine([change(q) if q in found else q for q in rows], folder)
    return tuple(found)

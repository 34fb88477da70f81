"""Saved scenarios as JSON: docs/saved-scenarios.md lists every key."""

from __future__ import annotations

from collections.abc import Sequence

from app.document.as_json import Json
from app.saved.saved import SHORT, model_of
from pricing.store.saved import SavedScenario


def scenario_json(saved: SavedScenario) -> dict[str, Json]:
    """One saved scenario: its name, its links, and when it was changed."""
    return {
        "id": saved.id,
        "owner": saved.owner,
        "name": saved.name,
        "model": model_of(saved),
        "link": f"?{saved.query.removeprefix('?')}",
        "short_link": f"?{SHORT}={saved.id}",
        "prices": saved.snapshot_id,
        "created_at": saved.created_at.isoformat(),
        "updated_at": saved.updated_at.isoformat(),
    }


def list_json(found: Sequence[SavedScenario], *, owner: str) -> dict[str, Json]:
    """The saved scenarios of one owner."""
    return {"owner": owner, "scenarios": [scenario_json(s) for s in found]}

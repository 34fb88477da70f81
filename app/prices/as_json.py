"""Price history, ages and quarantined rows as JSON: the keys of docs/prices.md, never renamed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from app.document.as_json import attributes
from pricing.history import History, PriceOn
from pricing.store.quarantine import Held

if TYPE_CHECKING:
    from app.prices.freshness import CloudAge


def history_json(found: History) -> dict[str, Any]:
    """The history of one price as JSON."""
    return {
        **found.sku._asdict(),
        "spells": [
            attributes(s, "source", "usd_per_hour", "first_at", "last_at", "until")
            for s in found.spells
        ],
        "gaps": [attributes(g, "source", "begins", "ends", "why") for g in found.gaps],
    }


def on_json(
    day: dt.date, prices: Sequence[PriceOn], asked: int, machine_hours: float
) -> dict[str, Any]:
    """The prices on one day as JSON."""
    return {
        "day": day,
        "num_series": asked,
        "machine_hours": machine_hours,
        "prices": [
            {
                **p.sku._asdict(),
                "usd_per_hour": p.usd_per_hour,
                "usd": p.usd_per_hour * machine_hours,
                **attributes(p, "source", "seen_from", "seen_until", "exact"),
            }
            for p in prices
        ],
    }


def held_json(held: Held) -> dict[str, Any]:
    """One row that is or was in quarantine, as JSON."""
    return {
        **attributes(held, "key", "source", "rule", "sentence", "usd_per_hour"),
        "sku": held.sku._asdict() if held.sku else None,
        **attributes(held, "since", "until", "releasable"),
    }


def freshness_json(snapshot_id: str, found: Sequence[CloudAge]) -> dict[str, Any]:
    """The age of each cloud's prices as JSON."""
    return {"snapshot": snapshot_id, "clouds": [asdict(c) for c in found]}

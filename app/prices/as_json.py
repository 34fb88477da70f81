"""Price history and quarantined rows as JSON. docs/prices.md lists the keys: never rename one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from pricing.history import History, PriceOn
from pricing.store.quarantine import Held


def history_json(found: History) -> dict[str, Any]:
    """The history of one price as JSON."""
    return {
        **found.sku._asdict(),
        "spells": [
            {
                "source": s.source,
                "usd_per_hour": s.usd_per_hour,
                "first_at": s.first_at,
                "last_at": s.last_at,
                "until": s.until,
            }
            for s in found.spells
        ],
        "gaps": [
            {"source": g.source, "begins": g.begins, "ends": g.ends, "why": g.why}
            for g in found.gaps
        ],
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
                "source": p.source,
                "seen_from": p.seen_from,
                "seen_until": p.seen_until,
                "exact": p.exact,
            }
            for p in prices
        ],
    }


def held_json(held: Held) -> dict[str, Any]:
    """One row that is or was in quarantine, as JSON."""
    return {
        "key": held.key,
        "source": held.source,
        "rule": held.rule,
        "sentence": held.sentence,
        "usd_per_hour": held.usd_per_hour,
        "sku": held.sku._asdict() if held.sku else None,
        "since": held.since,
        "until": held.until,
        "releasable": held.releasable,
    }

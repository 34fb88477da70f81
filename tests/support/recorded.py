"""Refreshes as the store writes them down, made by hand."""

from dataclasses import replace
from datetime import UTC, datetime

from core.machine.offer import Offer
from pricing.series import Sku
from pricing.store.engine import Store
from pricing.store.lease import store_lease
from pricing.store.queries import changes
from pricing.store.recording import RunFound, SourceFound, record
from tests.made_up import plans

NOW = datetime(2026, 3, 1, 6, tzinfo=UTC)


def offer(usd: float = 50.0, region: str = "us-east-1") -> Offer:
    """Eight H100s on demand."""
    return plans.offer(
        region=region,
        usd_per_hour=usd,
        scale_out_gbit_per_s=None,
        observed_at="2026-03-01",
        source="made",
    )


def found(source: str, seen: list[Offer], kept: tuple[Offer, ...] | list[Offer] = ()):
    """What a source said."""
    return SourceFound(
        source=source, status="refreshed", at=NOW, rows=len(seen), seen=seen, kept=kept
    )


def run_of(*sources, at=NOW, token=1, snapshot_id="0123456789ab", quarantined=()) -> RunFound:
    """A refresh of these sources at this time."""
    return RunFound(
        token=token,
        began_at=at,
        ended_at=at,
        outcome="refreshed",
        published=True,
        snapshot_id=snapshot_id,
        offers=sum(s.rows for s in sources),
        seconds=1.0,
        host="made",
        sources=[replace(s, at=at) for s in sources],
        quarantined=list(quarantined),
    )


def write(store: Store, *sources: SourceFound, at: datetime = NOW, **more):
    """Write a refresh of these sources into the store."""
    with store_lease(store) as held, held.writing() as connection:
        return record(connection, run_of(*sources, at=at, token=held.token, **more))


def prices_in_use(store: Store, source: str) -> dict[Sku, float]:
    """What the changes in the store leave as the prices of a source."""
    newest = {c.sku: c.after for c in changes(store, limit=10**6)[::-1] if c.source == source}
    return {sku: usd for sku, usd in newest.items() if usd is not None}

"""A process that refreshes again and again until it is killed: `python -m tests.feeds.refreshing`.

It prints the id of each snapshot after it was published: what is printed must never be lost. The
store is beside the prices, or where RUNCAST_DATABASE_URL says; the lease of a killed process ends
within a second there.
"""

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pricing.lease import LeaseError
from pricing.refresh import refresh
from pricing.sources import Source
from pricing.store import lease
from tests.made_up import plans

ROWS = 300


def made(usd: float) -> Source:
    """A source without a server: one price in many regions."""
    offer = plans.offer(
        usd_per_hour=usd,
        scale_out_gbit_per_s=None,
        observed_at=datetime.now(UTC).date().isoformat(),
        source="made",
    )
    rows = [replace(offer, region=f"region-{i}") for i in range(ROWS)]
    return Source(name="made", says="made for a test", fetch=lambda session: rows)


def main(arguments: Sequence[str]) -> None:
    """`refreshing FOLDER STEP`: prices from that step on, for ever."""
    folder, step = Path(arguments[0]), int(arguments[1])
    environ = {k: v for k, v in os.environ.items() if k == "RUNCAST_DATABASE_URL"}
    lease.TERM_S = 1.0
    while True:
        step += 1
        usd = 40 + step / 100_000  # every snapshot of every process is another
        try:
            report = refresh([made(usd)], folder=folder, environ=environ)
        except LeaseError:  # of the process that was killed before
            time.sleep(0.05)
            continue
        print(report.snapshot_id if not report.store else report.store, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Times of the store's queries at so many observations: `python -m tests.bench.store 1_000_000`.

Synthetic: 40,000 series of twelve sources, a refresh every six hours, a price that changes now and
then, sources that fail. It fills a store in a temporary folder (or RUNCAST_DATABASE_URL, which
must be empty) and prints medians of seven runs, each on a connection of its own.
"""

import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from pricing.history import history, known_skus, price_on
from pricing.series import Sku
from pricing.store.engine import Store
from pricing.store.models import ObservationRow, RunRow, SeriesRow, SourceRunRow, table_of
from pricing.store.opening import open_store
from pricing.store.quarantine import quarantine
from pricing.store.queries import (
    changes,
    observed,
    refresh_runs,
    skus,
)

SERIES = 40_000
SOURCES = 12
RUNS = 1_460  # a year
NOW = datetime(2026, 11, 21, tzinfo=UTC)
BATCH = 20_000
PURCHASES = ("on_demand", "spot", "reserved_1y")
GPUS = tuple(f"GPU-{i}" for i in range(30))


def sku(i: int) -> Sku:
    return Sku(f"cloud-{i % 20}", f"machine-{i % 400}", GPUS[i % 30], (1, 2, 4, 8)[i % 4],
               f"region-{i // 400}", PURCHASES[i % 3])  # fmt: skip


def fill(store: Store, wanted: int) -> None:
    """So many observations: the first of every series, then changes at random refreshes."""
    rng = random.Random(0)
    with store.writing() as connection:
        runs = [
            {
                "id": r, "token": r, "began_at": at(r), "ended_at": at(r), "outcome": "refreshed",
                "published": True, "snapshot_id": f"{r:012x}", "offers": SERIES, "seconds": 20.0,
                "host": "bench",
            }
            for r in range(1, RUNS + 1)
        ]  # fmt: skip
        connection.execute(table_of(RunRow).insert(), runs)
        told = [
            {
                "run_id": r, "source": f"source-{s}", "at": at(r), "rows": 1, "new": 0,
                "status": "failed" if rng.random() < 0.01 else "refreshed", "changed": 0,
                "gone": 0, "quarantined": 0, "seconds": 1.0, "megabytes": 1.0, "sentence": "",
            }
            for r in range(1, RUNS + 1)
            for s in range(SOURCES)
        ]  # fmt: skip
        connection.execute(table_of(SourceRunRow).insert(), told)
        for batch in batches(series()):
            connection.execute(table_of(SeriesRow).insert(), batch)
    for batch in batches(events(rng, wanted)):
        with store.writing() as connection:
            connection.execute(table_of(ObservationRow).insert(), batch)


def at(run: int) -> datetime:
    return NOW - timedelta(hours=6) * (RUNS - run)


def series() -> Iterator[dict[str, object]]:
    for i in range(SERIES):
        s = sku(i)
        usd = 1.0 + i % 97
        yield {
            **s._asdict(), "id": i + 1, "source": f"source-{i % SOURCES}", "ref": "bench",
            "state": "seen", "usd_per_hour": usd, "usd_per_gpu_hour": usd / s.gpu_count,
        }  # fmt: skip


def events(rng: random.Random, wanted: int) -> Iterator[dict[str, object]]:
    each = wanted // SERIES
    for i in range(SERIES):
        later = sorted(rng.sample(range(2, RUNS + 1), each - 1))
        for r in (1, *later):
            gone = r > 1 and rng.random() < 0.05
            yield {
                "series_id": i + 1, "run_id": r, "state": "gone" if gone else "seen",
                "usd_per_hour": None if gone else 1.0 + rng.random() * 97,
                "observed_at": at(r).date().isoformat(),
            }  # fmt: skip


def batches(rows: Iterator[dict[str, object]]) -> Iterator[list[dict[str, object]]]:
    held: list[dict[str, object]] = []
    for row in rows:
        held.append(row)
        if len(held) == BATCH:
            yield held
            held = []
    if held:
        yield held


def milliseconds(ask: Callable[[], object]) -> float:
    taken = []
    for _ in range(7):
        began = time.perf_counter()
        ask()
        taken.append(1000 * (time.perf_counter() - began))
    return statistics.median(taken)


def main() -> None:
    wanted = int(sys.argv[1].replace("_", "")) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory(dir=os.environ.get("RUNCAST_BENCH_DIR")) as folder:
        store = open_store(folder=Path(folder))
        began = time.perf_counter()
        fill(store, wanted)
        print(f"{wanted:,} observations, {store.engine.dialect.name}, ", end="")
        print(f"filled in {time.perf_counter() - began:.0f} s", end="")
        file = Path(folder) / "store.sqlite"
        print(f", {file.stat().st_size / 1e6:.0f} MB" if file.exists() else "")
        one, month = sku(1234), NOW - timedelta(days=30)
        asked: dict[str, Callable[[], object]] = {
            "refresh_runs, 50": lambda: refresh_runs(store),
            "skus of one accelerator": lambda: skus(store, accelerator=GPUS[4]),
            "observations of one SKU": lambda: observed(store, one),
            "observations of one SKU, 30 days": lambda: observed(store, one, since=month),
            "changes, 100": lambda: changes(store),
            "quarantine": lambda: quarantine(store),
            "known_skus": lambda: known_skus(accelerator=GPUS[4], store=store),
            "history of one SKU": lambda: history(one, store=store),
            "history of one SKU, 30 days": lambda: history(one, since=month.date(), store=store),
            "price_on": lambda: price_on(one, date(2026, 6, 1), store=store),
        }
        for name, ask in asked.items():
            print(f"{name:34} {milliseconds(ask):8.1f} ms")
        store.close()


if __name__ == "__main__":
    main()

"""What survives a disk that is full, and a feed of real size. tests/services kills refreshes."""

import gzip
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import FactError
from pricing import offers as snapshots
from pricing.offers import read_rows
from pricing.refresh import refresh
from pricing.source_state import last_good, read_quarantine, read_state
from pricing.sources import chosen
from tests.feeds import shapes
from tests.feeds.refreshing import ROWS, made
from tests.feeds.server import Feed, Reply, serving

ROOT = Path(__file__).parents[2]
MIB = 2**20
OFFERS = int(os.environ.get("RUNCAST_OFFERS", "25000"))


def whole(folder):
    """Everything a reader or the next refresh opens is whole; returns the current id."""
    current = snapshots.installed_id(folder=folder / "snapshots")
    for path in (folder / "snapshots").glob("*.parquet"):
        read_rows(path)  # refuses what does not hash to its name
    state = read_state(folder)
    if state.snapshot_id:  # a first refresh may be killed before it is written
        assert (folder / "snapshots" / f"{state.snapshot_id}.parquet").is_file()
        assert len(last_good(state, "made", folder)) == ROWS
    read_quarantine(folder)
    return current


PROGRAM = """
import resource, sys
from pathlib import Path
from pricing.refresh import refresh
from tests.feeds.refreshing import made
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    refresh([made(44.0)], folder=Path(sys.argv[1]), environ={})
except OSError as e:
    print("OSError", e.errno)
"""


@pytest.mark.parametrize("room_bytes", [600, 8_000, 20_000])
def test_a_full_disk_leaves_the_old_snapshot_readable(tmp_path, room_bytes):
    """The kernel refuses to write past so many bytes, as it does where no space is left."""
    before = refresh([made(43.0)], folder=tmp_path, environ={}).snapshot_id
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), str(room_bytes)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("OSError")
    assert whole(tmp_path) == before
    assert not list(tmp_path.rglob(".*"))  # no half file is left behind
    assert refresh([made(44.0)], folder=tmp_path, environ={}).snapshot_id != before


def test_a_snapshot_that_was_damaged_on_the_disk_is_refused(tmp_path):
    current = refresh([made(43.0)], folder=tmp_path, environ={}).snapshot_id
    path = tmp_path / "snapshots" / f"{current}.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FactError, match="cannot be read"):
        snapshots.snapshot(folder=tmp_path / "snapshots")


# --- size ----------------------------------------------------------------------------------------

STREAM = """
import re, sys
from pricing.fetch.session import Session
from pricing.sources import chosen
(source,) = chosen(["aws_on_demand"])
environ = {"RUNCAST_PRICE_URL_AWS_ON_DEMAND": sys.argv[1], "RUNCAST_AWS_REGIONS": "us-east-1"}
with Session(source="aws_on_demand", environ=environ, deadline_s=300, cap_bytes=10**9) as session:
    offers = list(source.fetch(session))
    print(len(offers), session.bytes_read, len(session.parts),
          int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("packed", [False, True])
def test_a_list_of_300_megabytes_is_read_in_300_mebibytes(packed):
    """The size of a real region's list; nearly all of it is machines without a GPU."""
    # VmHWM is of this program alone: ru_maxrss remembers the test process that started it.
    head, _, rows = shapes.aws_csv().partition('"SKU"')
    header, _, gpus = rows.partition("\n")
    cpu = shapes.table(shapes.AWS_COLUMNS, [shapes.aws_row("m5.large", "0.096")], 1)
    block = cpu.partition("\n")[2] * 2000
    first, often, last = (
        gzip.compress(part.encode(), 1) if packed else part.encode()
        for part in (f'{head}"SKU"{header}\n', block, gpus)
    )

    def pour(handler):
        for part in (first, *[often] * (300_000_000 // len(block) + 1), last):
            handler.wfile.write(part)

    headers = {"Content-Encoding": "gzip"} if packed else {}
    feed = Feed({shapes.aws_path("us-east-1"): Reply(b"", "text/csv", headers=headers, write=pour)})
    with serving(feed) as base:
        done = subprocess.run(
            [sys.executable, "-c", STREAM, base],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
    offers, size_bytes, failed, peak_bytes = map(int, done.stdout.split())
    print(f"{size_bytes / 1e6:.0f} MB, peak {peak_bytes / MIB:.0f} MiB")
    assert (offers, failed) == (4, 0)
    assert size_bytes > 300_000_000
    assert peak_bytes < 300 * MIB


@pytest.mark.slow
def test_offers_from_loopback_take_300_us_each(tmp_path):
    """All of them in one catalogue: parsed, judged, published and opened again. Processor seconds,
    because other tests run beside this one; `make soak` has 100,000 of them in 30."""
    rows = [
        shapes.gpuhunt_row("p5.48xlarge", f"region-{i}", 50 + i % 10, 8, "H100", 80.0)
        for i in range(OFFERS)
    ]
    path = f"/v3/aws/{shapes.VERSION}/catalog.zip"
    catalogue = Reply(shapes.gpuhunt_zip("aws", rows), kind="application/zip")
    (source,) = chosen(["gpuhunt"])
    with serving(Feed(shapes.gpuhunt() | {path: catalogue})) as base:
        for _ in range(2):
            began = time.process_time()
            report = refresh([replace(source)], folder=tmp_path, environ=shapes.mirrors(base))
            took_s = time.process_time() - began
            print(f"{report.offers} offers in {took_s:.1f} s")
            assert took_s < 300e-6 * OFFERS
    assert report.offers > OFFERS
    assert len(snapshots.snapshot(folder=tmp_path / "snapshots").offers) == report.offers

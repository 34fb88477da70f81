"""The power fails at random points, and the disk forgets what was not flushed: what was
acknowledged is there, and nothing is half there. RUNCAST_KILLS=200 is the long one."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import time
from contextlib import closing

import pytest

from pricing import offers as snapshots
from pricing.offers import read_rows
from pricing.source_state import last_good, read_state
from tests.feeds.refreshing import ROWS
from tests.services.test_faults_kill import everything
from tests.support.forks import forks, until_printed
from tests.support.power import disk

pytestmark = [pytest.mark.services, pytest.mark.slow]

CUTS = int(os.environ.get("RUNCAST_KILLS", "6"))


@pytest.fixture
def power(tmp_path, monkeypatch):
    """A disk, and the data folder on it."""
    try:
        with disk(tmp_path) as made:
            monkeypatch.setenv("RUNCAST_DATA_DIR", str(made.place / "data"))
            yield made
    except OSError as e:
        pytest.skip(f"no disk whose power can be cut: {e}")


@pytest.fixture(scope="module")
def boss():
    with forks() as found:
        yield found


def cut_off(power, child):
    """The power fails while it writes; the disk is back afterwards."""
    power.cut()
    child.kill()
    power.restore()


def test_the_disk_forgets_what_was_not_flushed(power):
    (power.place / "lost").write_text("x" * 100_000)
    with (power.place / "kept").open("w") as file:
        file.write("y")
        file.flush()
        os.fsync(file.fileno())
    power.cut()
    power.restore()
    assert (power.place / "kept").read_text() == "y"
    assert not (power.place / "lost").exists() or not (power.place / "lost").read_bytes()


@pytest.mark.timeout(400 + 6 * CUTS)
def test_what_people_keep_is_there_after_every_power_cut(boss, power):
    rng, kept, acknowledged, in_between = random.Random(15), {}, 0, 0
    environ = {"RUNCAST_DATA_DIR": str(power.place / "data")}
    for cut in range(CUTS):
        child = boss.start("tests.support.acknowledged", cut * 1000, environ=environ)
        until_printed(child, 2 * rng.randrange(1, 8))
        time.sleep(rng.uniform(0.0, 0.06))
        cut_off(power, child)
        begun = None
        # After the cut a write is refused, not acknowledged.
        for line in child.out.splitlines(keepends=True):
            if line == "done\n":
                kept[begun["kind"], begun["name"]] = begun["step"]
                acknowledged, begun = acknowledged + 1, None
            elif line.endswith("\n") and not line.startswith("refused"):
                begun = json.loads(line)
        here = everything()
        if begun is not None:
            in_between += 1
            key = begun["kind"], begun["name"]
            assert here.get(key) in (kept.get(key), begun["step"])
            kept[key] = here.get(key)
        assert here == {key: step for key, step in kept.items() if step is not None}
    with closing(sqlite3.connect(power.place / "data/prices/store.sqlite")) as store:
        assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    print(
        f"{CUTS} power cuts, {in_between} of them within a write, {acknowledged} writes "
        "acknowledged, none lost"
    )
    assert acknowledged > 0


@pytest.mark.timeout(400 + 6 * CUTS)
def test_prices_are_whole_after_every_power_cut(boss, power):
    rng, acknowledged = random.Random(16), 0
    folder = power.place / "data/prices"
    for cut in range(CUTS):
        child = boss.start("tests.feeds.refreshing", folder, cut * 1000, environ={})
        until_printed(child, rng.randrange(1, 3))
        time.sleep(rng.uniform(0.0, 0.3))
        cut_off(power, child)
        printed = [line[:-1] for line in child.out.splitlines(keepends=True) if len(line) == 13]
        acknowledged += len(printed)
        for path in (folder / "snapshots").glob("*.parquet"):
            read_rows(path)  # refuses what does not hash to its name
        assert printed[-1] in snapshots.snapshot_ids(folder=folder / "snapshots")
        state = read_state(folder)
        assert (folder / "snapshots" / f"{state.snapshot_id}.parquet").is_file()
        assert len(last_good(state, "made", folder)) == ROWS
        snapshots.installed_id(folder=folder / "snapshots")
    print(f"{CUTS} power cuts of refreshes, {acknowledged} snapshots acknowledged, none lost")

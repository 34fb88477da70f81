"""The data folder fails: full, read-only, locked, damaged, of a newer version. Prices and plans are
answered as before, whatever else is asked says one sentence, and all works again afterwards.

Commands are forks of a real command line, the page is a real server.
tests/pricing/test_refresh_store.py and tests/app/saved/test_saved_page.py hold the same at the
level of functions.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from contextlib import contextmanager

import pytest

from app.saved import saved
from core.scenario import Scenario
from tests.feeds import shapes
from tests.feeds.server import Feed, serving
from tests.support import event_loop
from tests.support.acknowledged import calibration_of
from tests.support.browsing import FEW, served
from tests.support.forks import forks
from tests.support.page_client import session
from tests.support.small_disk import small_disk

pytestmark = [pytest.mark.services, pytest.mark.slow]

LINK = "?model=llama3.1-8b&gpu=H100-80GB-SXM&num_gpus=64&cloud=aws"
PLAN = ("plan", "--link", LINK, "--json")
REFRESH = ("refresh", "--source", "verda")
BOOK = "kind,provider,accelerator,usd_per_gpu_hour\nrate,aws,h100,{}\n"


class Person:
    """Somebody at a command line, on one data folder."""

    def __init__(self, boss, base, folder, files):
        self.boss, self.files = boss, files
        self.environ = {"RUNCAST_DATA_DIR": str(folder), "COLUMNS": "300", **shapes.mirrors(base)}

    def run(self, *words):
        return self.boss.run("app.cli", *words, environ=self.environ)

    def does(self, *words):
        done = self.run(*words)
        assert done.status == 0, done.err + done.out
        return done.out

    def refused(self, *words):
        """One sentence on standard error, and nothing else."""
        done = self.run(*words)
        assert done.status == 2, done.err + done.out
        assert done.out == ""
        assert done.err.startswith("runcast: ")
        assert done.err.count("\n") == 1
        return done.err.strip()

    def writes(self, n):
        """Every way in which something is kept; the second time other things than the first."""
        (self.files / f"{n}.csv").write_text(BOOK.format(f"2.{n}"))
        (self.files / f"{n}.json").write_bytes(calibration_of(n))
        return [
            ("scenarios", "save", f"number {n}", "--link", LINK),
            ("prices", "book", "add", self.files / f"{n}.csv", "--name", "acme"),
            ("calibrations", "add", self.files / f"{n}.json"),
        ]


@pytest.fixture(scope="module")
def boss():
    with forks() as found:
        yield found


@pytest.fixture(scope="module")
def base():
    with serving(Feed(shapes.replica())) as found:
        yield found


@pytest.fixture(scope="module")
def whole(boss, base, tmp_path_factory):
    """A data folder with something of every kind in it."""
    folder = tmp_path_factory.mktemp("whole")
    person = Person(boss, base, folder / "data", folder)
    for words in (REFRESH, *person.writes(1)):
        person.does(*words)
    return folder / "data"


@pytest.fixture
def person(boss, base, whole, tmp_path):
    shutil.copytree(whole, tmp_path / "data")
    return Person(boss, base, tmp_path / "data", tmp_path)


def plan_of(person):
    told = json.loads(person.does(*PLAN))
    return told["plans"][0]["id"], told["plans"][0]["usd"]


# --- the disk ------------------------------------------------------------------------------------


@pytest.fixture
def disk(whole, tmp_path):
    with small_disk(tmp_path / "disk") as found:
        shutil.copytree(whole, found.data)
        yield found


def test_on_a_full_disk_plans_are_made_every_write_says_so_and_then_works(
    boss, base, disk, tmp_path
):
    person = Person(boss, base, disk.data, tmp_path)
    before, listed = plan_of(person), person.does("prices", "book", "list")
    disk.fill()
    assert plan_of(person) == before
    assert person.does("prices", "book", "list") == listed
    out = disk.folder / "files"
    exports = [
        ("export", "--to", "torchrun", "--link", LINK, "--out", out / "launch"),
        ("report", "--link", LINK, "--to", "md,html", "--out", out / "report"),
    ]
    for words in (REFRESH, *person.writes(2), *exports):
        sentence = person.refused(*words)
        assert "no space left on device." in sentence or "the disk is full." in sentence, sentence
    assert not [p for p in disk.folder.rglob(".*") if p.is_file()]
    assert plan_of(person) == before
    disk.empty()
    for words in (REFRESH, *person.writes(2), *exports):
        person.does(*words)
    assert "number 1" in (here := person.does("scenarios", "list"))
    assert "number 2" in here


def test_a_disk_that_became_read_only_is_one_sentence_each_and_plans_are_made(
    boss, base, disk, tmp_path
):
    person = Person(boss, base, disk.data, tmp_path)
    before = plan_of(person)
    disk.remount("ro")
    try:
        assert plan_of(person) == before
        for words in (REFRESH, *person.writes(2)):
            sentence = person.refused(*words)
            assert "read-only" in sentence or "this process may read it" in sentence or (
                "unable to open" in sentence), sentence  # fmt: skip
    finally:
        disk.remount("rw")
    for words in (REFRESH, *person.writes(2)):
        person.does(*words)


# --- the store -----------------------------------------------------------------------------------


@contextmanager
def overwritten(file, begin, end):
    """Other bytes in the middle of a file, and its own again."""
    content = file.read_bytes()
    file.write_bytes(content[:begin] + bytes(end - begin) + content[end:])
    yield
    file.unlink()  # what the document says: move it away, and put the copy there
    file.write_bytes(content)


@contextmanager
def newer(file):
    _version(file, "9999")
    yield
    _version(file, "0002")


def _version(file, number):
    store = sqlite3.connect(file)
    store.execute("UPDATE alembic_version SET version_num = ?", [number])
    store.commit()
    store.close()


@contextmanager
def locked(file):
    store = sqlite3.connect(file, isolation_level=None)
    store.execute("PRAGMA locking_mode = EXCLUSIVE")
    store.execute("BEGIN EXCLUSIVE")
    yield
    store.close()


DAMAGED = "it is damaged, so restore a backup (`runcast restore`) or move it away"
FAULTS = {
    "header": (lambda file: overwritten(file, 0, 4096), DAMAGED),
    "middle": (lambda file: overwritten(file, 8192, file.stat().st_size), DAMAGED),
    "newer": (newer, "was written by a newer version of Runcast"),
    "locked": (locked, "another process writes to it, and did not end in time"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_store_that_cannot_be_used_is_one_sentence_and_prices_are_still_published(person, fault):
    file = next((person.files / "data").rglob("store.sqlite"))
    spoiled, said = FAULTS[fault]
    before = plan_of(person)
    with spoiled(file):
        save, book, calibration = person.writes(2)
        assert said in person.refused(*save)
        assert said in " ".join(person.does(*REFRESH).split())
        person.does(*book)
        assert said in person.does(*calibration)
        assert plan_of(person)[0] == before[0]
    person.does(*person.writes(3)[0])
    here = person.does("scenarios", "list")
    assert "number 1" in here
    assert "number 3" in here
    person.does(*REFRESH)


def test_a_store_that_was_moved_away_is_begun_anew(person):
    file = next((person.files / "data").rglob("store.sqlite"))
    file.write_bytes(b"no database" * 1000)
    person.refused(*person.writes(2)[0])
    file.unlink()
    person.does(*person.writes(2)[0])
    assert "number 2" in person.does("scenarios", "list")


# --- prices --------------------------------------------------------------------------------------


def test_a_damaged_snapshot_is_a_sentence_and_the_next_refresh_writes_it_again(person):
    before = plan_of(person)
    folder = person.files / "data/prices/snapshots"
    current = folder / f"{(folder / 'current').read_text().strip()}.parquet"
    for content in (current.read_bytes()[:-60] + bytes(60), current.read_bytes()[:100]):
        current.write_bytes(content)
        assert "`runcast refresh` may write it again" in person.refused(*PLAN)
        person.does(*REFRESH)
        assert plan_of(person) == before


def test_a_damaged_state_of_the_sources_is_a_sentence_that_says_what_to_do(person):
    file = person.files / "data/prices/state.json"
    file.write_bytes(file.read_bytes()[:50])
    before = plan_of(person)
    assert "move it away and refresh again" in person.refused(*REFRESH)
    assert plan_of(person) == before
    file.unlink()
    person.does(*REFRESH)


# --- the page ------------------------------------------------------------------------------------


def test_the_page_stands_says_one_sentence_and_saves_again(whole, tmp_path, monkeypatch):
    """One server through a full disk, a read-only one, a locked store and a damaged one."""
    with small_disk(tmp_path / "disk") as disk:
        shutil.copytree(whole, disk.data)
        monkeypatch.setenv("RUNCAST_DATA_DIR", str(disk.data))
        kept = saved.keep(Scenario(), owner="local", name="mine", replace=True)
        with served(tmp_path / "log", RUNCAST_DATA_DIR=str(disk.data)) as server:
            recovered_s = event_loop.run(_page(server.url, disk, kept.id))
    assert len(recovered_s) == 3
    print(f"the page works again {max(recovered_s):.1f} s after a fault of its store at most")


async def _page(url, disk, id):
    file = disk.data / "prices/store.sqlite"
    async with session(url) as one:
        await one.open(FEW)
        await one.edit(saved_section=True)
        recovered_s = []

        async def saves(name, said):
            """Save, and look at what the page says and that its answer is there."""
            seen = await one.click("saved_save", saved_name=name)
            assert any(said in alert for alert in seen.alerts), (said, seen.alerts)
            assert " expected (P10-P90 " in seen.text
            assert seen.text.count("Traceback") == 0

        await saves("first", "Saved as")
        disk.fill()
        await saves("full", "cannot be used")
        disk.empty()
        began = time.monotonic()
        await saves("room", "Saved as")
        recovered_s.append(time.monotonic() - began)
        for spoiled, said in (
            (lambda: locked(file), "another process writes to it"),
            (lambda: overwritten(file, 0, 4096), "it is damaged"),
        ):
            with spoiled():
                # The list cannot be read either, so there is no field to type a name into.
                seen = await one.open(f"s={id}")
                assert any(said in alert for alert in seen.alerts), seen.alerts
                assert " expected (P10-P90 " in seen.text
            began = time.monotonic()
            seen = await one.open(f"s={id}")
            assert not seen.alerts
            recovered_s.append(time.monotonic() - began)
        return recovered_s

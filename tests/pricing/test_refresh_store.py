"""What the store knows of a refresh: that it agrees with what is published, whatever went wrong."""

import sqlite3
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pricing import offers as snapshots
from pricing.fetch.network import SourceError
from pricing.judgement import Quarantined
from pricing.lease import LeaseError
from pricing.publish import make_current
from pricing.refresh import refresh
from pricing.series import sku_of
from pricing.source_state import last_good, read_quarantine, read_state, write_state
from pricing.store import engine, refresh_record
from pricing.store.engine import StoreError
from pricing.store.lease import store_lease
from pricing.store.opening import open_store
from pricing.store.quarantine import quarantine, release
from pricing.store.queries import observed, refresh_runs
from tests.feeds.refreshing import made
from tests.support.recorded import prices_in_use

ROOT = Path(__file__).parents[2]


def run(*sources, folder, **more):
    return refresh(sources, folder=folder, environ={}, **more)


def priced(usd):
    return made(usd)


def store_of(folder):
    return open_store(folder=folder, environ={})


def in_use(folder):
    """Prices of 'made' as the store and as the published snapshot have them."""
    rows = snapshots.snapshot(folder=folder / "snapshots").offers
    return (
        set(prices_in_use(store_of(folder), "made").values()),
        {o.usd_per_hour for o in rows if o.source == "made"},
    )


def fails(source):
    def fetch(session):
        raise SourceError("It is down.")

    return replace(source, fetch=fetch)


def test_a_refresh_is_written_down(tmp_path):
    first = run(priced(50.0), folder=tmp_path)
    again = run(priced(50.0), fails(replace(made(1.0), name="other")), folder=tmp_path)
    assert first.store == again.store == ""
    runs = refresh_runs(store_of(tmp_path))
    assert [(r.outcome, r.snapshot_id, r.published) for r in runs] == [
        ("in part", again.snapshot_id, True),
        ("refreshed", first.snapshot_id, True),
    ]
    assert [(s.source, s.status, s.rows) for s in runs[0].sources] == [
        ("made", "refreshed", 300),
        ("other", "failed", 0),
    ]
    sku = sku_of(last_good(read_state(tmp_path), "made", tmp_path)[0])
    assert len(observed(store_of(tmp_path), sku)[0]) == 1
    assert sum(s.source == "made" for r in runs for s in r.sources) == 2


def test_a_refresh_in_which_everything_fails_is_a_gap_too(tmp_path):
    run(priced(50.0), folder=tmp_path)
    run(fails(made(1.0)), folder=tmp_path)
    newest = refresh_runs(store_of(tmp_path))[0]
    assert (newest.outcome, newest.published) == ("failed", False)
    assert newest.sources[0].sentence == "It is down."


def test_a_dry_run_is_not_written_down_and_makes_no_store(tmp_path):
    run(priced(50.0), folder=tmp_path, dry_run=True)
    assert list(tmp_path.iterdir()) == []


def test_what_is_held_back_is_unknown_and_a_person_releases_it(tmp_path):
    run(priced(50.0), folder=tmp_path)
    run(priced(10.0), folder=tmp_path)  # a fifth of it
    store = store_of(tmp_path)
    held = quarantine(store)
    assert len(held) == 300
    assert {h.key for h in held} == {q.key for q in read_quarantine(tmp_path)}
    assert prices_in_use(store, "made") == {}  # not one of them was seen
    one = next(h for h in held if h.sku.region == "region-7")
    release(store, one.key, by="ada")
    report = run(priced(10.5), folder=tmp_path)
    assert report.lines[-1].quarantined == 299
    assert prices_in_use(store, "made") == {one.sku: 10.5}
    published = snapshots.snapshot(folder=tmp_path / "snapshots").offers
    assert {o.region for o in published if o.usd_per_hour == 10.5} == {"region-7"}
    assert len(quarantine(store)) == 299
    # It is a word about this price, not about the place for ever.
    run(priced(2.0), folder=tmp_path)
    assert len(quarantine(store)) == 300


def test_a_price_outside_its_band_can_be_released_and_zero_cannot(tmp_path):
    run(priced(50.0), folder=tmp_path)
    for usd, rule in ((4000.0, "band"), (0.0, "price")):
        run(priced(usd), folder=tmp_path)
        assert {h.rule for h in quarantine(store_of(tmp_path))} == {rule}
        assert {h.releasable for h in quarantine(store_of(tmp_path))} == {rule == "band"}
    run(priced(4000.0), folder=tmp_path)
    release(store_of(tmp_path), quarantine(store_of(tmp_path))[0].key, by="ada")
    run(priced(4000.0), folder=tmp_path)
    assert list(prices_in_use(store_of(tmp_path), "made").values()) == [4000.0]


def test_a_quarantine_of_an_older_version_is_read(tmp_path):
    (tmp_path / "quarantine.json").write_text(
        '[{"source": "a", "rule": "jump", "sentence": "S.", "usd_per_hour": 3.0}]'
    )
    (row,) = read_quarantine(tmp_path)
    assert row == Quarantined(source="a", rule="jump", sentence="S.", usd_per_hour=3.0)
    assert not row.releasable  # it does not say of what


# --- a store that cannot be used -----------------------------------------------------------------


def test_a_locked_store_does_not_stop_a_refresh_and_the_next_one_catches_up(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "BUSY_S", 0.1)
    run(priced(50.0), folder=tmp_path)
    other = sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        report = run(priced(49.0), folder=tmp_path)
    finally:
        other.close()
    assert report.published
    assert report.store == (
        "The store 'store.sqlite' cannot be used: another process writes to it, and did not end "
        "in time."
    )
    assert in_use(tmp_path) == ({50.0}, {49.0})
    later = datetime.now(UTC) + timedelta(hours=6)
    assert run(priced(48.0), folder=tmp_path, now=lambda: later).store == ""
    assert in_use(tmp_path) == ({48.0}, {48.0})
    runs = refresh_runs(store_of(tmp_path))
    assert [r.outcome for r in runs] == ["refreshed", "recovered", "refreshed"]
    assert runs[1].snapshot_id == report.snapshot_id
    assert [r.sources[0].rows for r in runs] == [300, 300, 300]


def test_a_store_that_locks_up_in_the_middle_does_not_stop_it_either(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "BUSY_S", 0.1)
    other = []

    def locks(*_):
        other.append(sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None))
        other[0].execute("BEGIN IMMEDIATE")

    report = run(priced(50.0), folder=tmp_path, progress=locks)
    other[0].close()
    assert report.published
    assert "another process writes to it" in report.store
    assert refresh_runs(store_of(tmp_path)) == []


def test_a_store_that_is_no_database_does_not_stop_it(tmp_path):
    (tmp_path / "store.sqlite").write_bytes(b"something else" * 1000)
    report = run(priced(50.0), folder=tmp_path)
    assert report.published
    assert report.store.endswith("file is not a database.")


FULL = """
import resource, sys
from pathlib import Path
from pricing.refresh import refresh
from tests.feeds.refreshing import made
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
report = refresh([made(44.0)], folder=Path(sys.argv[1]), environ={})
print(report.published, report.store)
"""


def test_a_full_disk_of_the_store_leaves_it_as_it_was_and_prices_are_published(tmp_path):
    """The kernel refuses to let the store's log grow: the snapshot, a smaller file, has room."""
    run(priced(43.0), folder=tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path), "60000"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("True The store 'store.sqlite' cannot be used: ")
    assert done.stderr == ""
    assert in_use(tmp_path) == ({43.0}, {44.0})
    assert run(priced(45.0), folder=tmp_path).store == ""
    assert in_use(tmp_path) == ({45.0}, {45.0})


# --- killed between two steps --------------------------------------------------------------------


class KilledError(BaseException):
    """As a signal would: nothing catches it."""


@pytest.mark.parametrize("step", ["write_state", "make_current", "record", "forget_unused_rows"])
def test_a_refresh_that_ends_before_a_step_is_ended_by_the_next_one(tmp_path, monkeypatch, step):
    """Before the state is written the old snapshot stays; after it the new one is published."""
    run(priced(50.0), folder=tmp_path)
    where = refresh_record if step == "record" else sys.modules["pricing.refresh"]

    def dies(*_, **__):
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(where, step, dies)
        with pytest.raises(KilledError):
            run(priced(49.0), folder=tmp_path)
    decided = 50.0 if step == "write_state" else 49.0
    later = datetime.now(UTC) + timedelta(hours=6)
    run(fails(made(1.0)), folder=tmp_path, now=lambda: later)
    assert in_use(tmp_path) == ({decided}, {decided})
    published = [r for r in refresh_runs(store_of(tmp_path)) if r.published]
    assert published[0].snapshot_id == snapshots.installed_id(folder=tmp_path / "snapshots")
    assert len(published) == (1 if step == "write_state" else 2)


def test_a_snapshot_that_a_person_named_by_hand_is_replaced_by_the_next_refresh(tmp_path):
    old = run(priced(50.0), folder=tmp_path).snapshot_id
    run(priced(49.0), folder=tmp_path)
    make_current(old, tmp_path / "snapshots")
    run(priced(48.0), folder=tmp_path)
    assert in_use(tmp_path) == ({48.0}, {48.0})


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe", b"0123456789ab"])
def test_a_damaged_pointer_is_mended_by_the_next_refresh(tmp_path, damage):
    published = run(priced(50.0), folder=tmp_path).snapshot_id
    (tmp_path / "snapshots/current").write_bytes(damage)
    run(fails(made(1.0)), folder=tmp_path)
    assert snapshots.installed_id(folder=tmp_path / "snapshots") == published


def test_a_state_that_names_a_lost_snapshot_does_not_publish_it(tmp_path):
    run(priced(50.0), folder=tmp_path)
    state = read_state(tmp_path)
    write_state(replace(state, snapshot_id="0" * 12), tmp_path)
    run(fails(made(1.0)), folder=tmp_path)
    current = snapshots.installed_id(folder=tmp_path / "snapshots")
    assert current == state.snapshot_id


# --- the lease of the store ----------------------------------------------------------------------


def test_who_lost_the_lease_of_the_store_publishes_nothing(tmp_path):
    run(priced(50.0), folder=tmp_path)

    def taken_over(*_):
        with store_lease(store_of(tmp_path)):
            pass

    with pytest.raises(LeaseError, match="this one publishes nothing"):
        run(priced(49.0), folder=tmp_path, progress=taken_over)
    assert in_use(tmp_path) == ({50.0}, {50.0})
    assert len(refresh_runs(store_of(tmp_path))) == 1


def test_the_tokens_of_the_store_only_rise(tmp_path):
    tokens = []
    for _ in range(3):
        with store_lease(store_of(tmp_path)) as held:
            tokens.append(held.token)
            held.renew()
    assert tokens == [1, 2, 3]
    with pytest.raises(LeaseError):
        held.__class__(store=held.store, token=2, term_s=1.0).renew()


def test_a_wrong_address_is_said_and_prices_are_published(tmp_path):
    environ = {"RUNCAST_DATABASE_URL": "oracle://ada:canary@db/x"}
    report = refresh([priced(50.0)], folder=tmp_path, environ=environ)
    assert report.published
    assert report.store.startswith("RUNCAST_DATABASE_URL names a 'oracle' database")
    assert "canary" not in report.store
    with pytest.raises(StoreError):
        open_store(folder=tmp_path, environ=environ)

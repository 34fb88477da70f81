"""The store, on SQLite and on a real PostgreSQL: what it keeps, what it answers, how it fails."""

import shutil
import sqlite3
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from core.errors import ScenarioError
from pricing.judgement import Quarantined
from pricing.series import sku_of
from pricing.store import engine, opening
from pricing.store import upgrade as upgrading
from pricing.store.engine import StoreBusyError, StoreError
from pricing.store.models import Base
from pricing.store.opening import open_store
from pricing.store.quarantine import quarantine, release, releases
from pricing.store.queries import (
    changes,
    observed,
    refresh_runs,
    skus,
)
from pricing.store.saved import (
    Calibration,
    calibrations,
    index_calibration,
    save_scenario,
)
from pricing.store.upgrade import upgrade
from tests.support.recorded import NOW, found, offer, write

SECRET = "canary-passw0rd"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.services)])
def store(request, tmp_path, store_environ):
    """An empty store of each kind."""
    opened = open_store(folder=tmp_path, environ=store_environ(request.param))
    yield opened
    opened.close()


# --- prices --------------------------------------------------------------------------------------


def test_a_price_is_written_when_it_changes_and_not_every_time(store):
    for n, usd in enumerate([50.0, 50.0, 50.0, 48.0, 48.0]):
        write(store, found("oci", [offer(usd)]), at=NOW + timedelta(hours=n))
    told = observed(store, sku_of(offer()))[0]
    assert [(o.state, o.usd_per_hour, o.at) for o in told] == [
        ("seen", 50.0, NOW),
        ("seen", 48.0, NOW + timedelta(hours=3)),
    ]
    assert len(changes(store)) == 2
    assert len(refresh_runs(store)) == 5  # the heartbeat


def test_what_is_gone_held_back_or_not_asked_is_an_event_once(store):
    a, b, c = (offer(region=r) for r in "abc")
    write(store, found("oci", [a, b, c]))
    for n in (1, 2):
        write(store, found("oci", [a], kept=[b]), at=NOW + timedelta(hours=n))
    states = {o.region: [x.state for x in observed(store, sku_of(o))[0]] for o in (a, b, c)}
    assert states == {"a": ["seen"], "b": ["seen", "unknown"], "c": ["seen", "gone"]}
    write(store, found("oci", [a, b, c]), at=NOW + timedelta(hours=3))
    assert [x.state for x in observed(store, sku_of(b))[0]] == ["seen", "unknown", "seen"]


def test_a_source_that_failed_leaves_its_prices_as_they_were(store):
    write(store, found("oci", [offer()]))
    write(store, replace(found("oci", []), status="failed", sentence="It is down."))
    assert [o.state for o in observed(store, sku_of(offer()))[0]] == ["seen"]
    assert [r.sources[0].status for r in refresh_runs(store)] == ["failed", "refreshed"]
    assert refresh_runs(store)[0].sources[0].sentence == "It is down."


def test_two_sources_of_one_place_are_two_series(store):
    write(store, found("oci", [offer(50.0)]), found("skypilot", [offer(51.0)]))
    told = observed(store, sku_of(offer()))[0]
    assert {(o.source, o.usd_per_hour) for o in told} == {("oci", 50.0), ("skypilot", 51.0)}
    assert skus(store) == [sku_of(offer())]


def test_since_gives_the_price_at_that_time_and_what_came_after(store):
    for n, usd in enumerate([50.0, 51.0, 52.0, 53.0]):
        write(store, found("oci", [offer(usd)]), at=NOW + timedelta(hours=n))
    asked = NOW + timedelta(hours=2, minutes=-1)
    told = observed(store, sku_of(offer()), since=asked)[0]
    assert [o.usd_per_hour for o in told] == [51.0, 52.0, 53.0]
    assert len(observed(store, sku_of(offer()), since=NOW + timedelta(days=9))[0]) == 1


def test_the_last_changes_say_what_was_before(store):
    write(store, found("oci", [offer(50.0)]))
    write(store, found("oci", [offer(48.0)]))
    write(store, found("oci", []))
    assert [(c.before, c.after) for c in changes(store)] == [
        (48.0, None),
        (50.0, 48.0),
        (None, 50.0),
    ]
    assert len(changes(store, limit=1)) == 1


def test_runs_come_newest_first_with_their_sources(store):
    for n in range(3):
        write(store, found("oci", [offer()]), at=NOW + timedelta(hours=n), snapshot_id=f"{n:012}")
    told = refresh_runs(store, limit=2)
    assert [r.snapshot_id for r in told] == ["000000000002", "000000000001"]
    assert [s.source for r in told for s in r.sources] == ["oci", "oci"]
    assert len(refresh_runs(store, since=NOW + timedelta(hours=1))) == 2
    assert told[0].ended_at == NOW + timedelta(hours=2)
    assert told[0].ended_at.tzinfo is UTC


def test_a_run_is_written_whole_or_not_at_all(store, monkeypatch):
    write(store, found("oci", [offer(50.0)]))
    dies = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr("pricing.store.recording._record_held", dies)
    with pytest.raises(KeyboardInterrupt):
        write(store, found("oci", [offer(40.0)]))
    assert len(refresh_runs(store)) == 1
    assert [o.usd_per_hour for o in observed(store, sku_of(offer()))[0]] == [50.0]


# --- what is held back ---------------------------------------------------------------------------


def held(usd=17.0, rule="jump", **more):
    values = {"source": "oci", "rule": rule, "sentence": f"It was 55 and is {usd}."}
    return (
        Quarantined(**values, usd_per_hour=usd, **sku_of(offer())._asdict())
        if not more
        else (Quarantined(**values | more))
    )


def test_what_is_held_back_is_there_until_it_is_no_longer(store):
    for n, usd in enumerate([17.0, 17.5]):
        at = NOW + timedelta(hours=n)
        write(store, found("oci", [], kept=[offer()]), at=at, quarantined=[held(usd)])
    (told,) = quarantine(store)
    assert (told.usd_per_hour, told.since, told.until) == (17.5, NOW, None)
    assert told.key == held().key
    assert told.sku == sku_of(offer())
    write(store, replace(found("oci", []), status="failed"), quarantined=[held()])
    assert len(quarantine(store)) == 1  # a silent source keeps its own
    write(store, found("oci", [offer()]), at=NOW + timedelta(hours=3))
    assert quarantine(store) == []
    (past,) = quarantine(store, held_only=False)
    assert past.until == NOW + timedelta(hours=3)
    write(store, found("oci", []), at=NOW + timedelta(hours=4), quarantined=[held()])
    assert len(quarantine(store, held_only=False)) == 2


def test_a_person_releases_a_price_and_not_a_row_that_cannot_be_one(store):
    shapeless = held(None, rule="shape", sentence="{}: no price")
    write(store, found("oci", []), quarantined=[held(), shapeless, held(0.0, rule="price")])
    given = release(store, held().key, by="ada", why="seen on the invoice")
    assert (given.usd_per_hour, given.by, given.sku) == (17.0, "ada", sku_of(offer()))
    assert releases(store) == [given]
    for key in (shapeless.key, held(0.0, rule="price").key):
        with pytest.raises(ScenarioError, match="nobody can release"):
            release(store, key, by="ada")
    with pytest.raises(ScenarioError, match="Nothing that is held back has the key 'nonsense'"):
        release(store, "nonsense", by="ada")
    whole = Quarantined(source="oci", rule="moved", sentence="oci: it moved.", measure=0.5)
    write(store, found("oci", []), quarantined=[whole])
    with pytest.raises(ScenarioError, match="holds back the whole list of oci: take it on"):
        release(store, whole.key, by="ada")


# --- calibrations --------------------------------------------------------------------------------


def test_calibrations_are_found_by_accelerator(store):
    made = Calibration(
        id="ab" * 32, accelerator="H100-80GB-SXM", num_gpus=8, machine="node-1", stack="torch 2.13",
        measured_at=NOW, path="calibrations/ab.json",
    )  # fmt: skip
    index_calibration(store, made)
    index_calibration(store, replace(made, note="again"))
    assert calibrations(store) == [replace(made, note="again")]
    assert calibrations(store, accelerator="B200-180GB") == []


# --- opening -------------------------------------------------------------------------------------


def test_it_is_a_file_beside_the_prices_in_wal_mode(tmp_path):
    store = open_store(folder=tmp_path, environ={})
    assert (tmp_path / "store.sqlite").is_file()
    with store.reading() as connection:
        modes = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
    assert modes == ["wal", 2, 1]


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nonsense", "is no address like sqlite:///FILE or postgresql://"),
        (f"mysql://ada:{SECRET}@db/runcast", "names a 'mysql' database"),
        (f"postgresql://ada:{SECRET}@db:port/runcast", "is no address like"),
        (
            f"postgresql://ada:{SECRET}@127.0.0.1:1/runcast",
            "runcast' on 127.0.0.1:1 cannot be used",
        ),
        (f"postgres://ada@127.0.0.1:1/runcast?password={SECRET}", "cannot be used"),
        (f"postgresql://ada:{SECRET}@no-such-host.invalid/runcast", "no-such-host.invalid"),
        ("sqlite://", "names a 'sqlite' database"),
        ("sqlite:////dev/null/store.sqlite", "cannot be made"),
    ],
)
def test_a_database_that_cannot_be_used_is_a_sentence_without_its_password(tmp_path, url, says):
    with pytest.raises(StoreError) as error:
        open_store(folder=tmp_path, environ={"RUNCAST_DATABASE_URL": url})
    assert says in str(error.value)
    assert SECRET not in str(error.value)
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)
    assert SECRET not in "".join(traceback.format_exception(error.value))  # as a log prints it


def test_a_file_that_is_no_database_is_a_sentence(tmp_path):
    (tmp_path / "store.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(StoreError, match="file is not a database"):
        open_store(folder=tmp_path, environ={})


def test_a_store_of_a_newer_version_is_left_alone(store):
    write(store, found("oci", [offer()]))
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreError, match=r"by a newer version of Runcast \(its tables are 9999"):
        upgrade(store)
    assert len(changes(store)) == 1


def test_the_tables_are_those_of_the_models(store):
    """What the migrations make, column by column, index by index."""
    with store.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []


NEWEST = str(upgrading.scripts().get_current_head())
NEXT = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "9000", "{newest}", None, None


def upgrade():
    op.add_column("series", sa.Column("colour", sa.Text(), nullable=True))
    {then}
"""


@pytest.fixture
def next_version(tmp_path, monkeypatch):
    """A version with one migration more, which may die after its first step."""

    def release(then="pass"):
        folder = tmp_path / "migrations"
        folder.mkdir(exist_ok=True)
        if folder != upgrading.MIGRATIONS:
            for known in upgrading.MIGRATIONS.glob("v*.py"):
                shutil.copy(known, folder)
        (folder / "v9000_colour.py").write_text(NEXT.format(newest=NEWEST, then=then))
        monkeypatch.setattr(upgrading, "MIGRATIONS", folder)

    return release


def version(store):
    with store.reading() as connection:
        columns = {c["name"] for c in sa.inspect(connection).get_columns("series")}
        return upgrading.revision_of(connection), "colour" in columns


def test_a_newer_version_brings_the_tables_forward_and_keeps_what_is_in_them(store, next_version):
    write(store, found("oci", [offer()]))
    next_version()
    upgrade(store)
    upgrade(store)
    assert version(store) == ("9000", True)
    assert [o.usd_per_hour for o in observed(store, sku_of(offer()))[0]] == [50.0]


def test_a_migration_that_dies_half_way_leaves_the_old_tables(store, next_version):
    write(store, found("oci", [offer()]))
    next_version(then="raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        upgrade(store)
    assert version(store) == (NEWEST, False)
    next_version()
    upgrade(store)
    assert version(store) == ("9000", True)


def test_a_locked_store_is_a_sentence_and_readers_do_not_wait(tmp_path, monkeypatch):
    store = open_store(folder=tmp_path, environ={})
    write(store, found("oci", [offer()]))
    monkeypatch.setattr(engine, "BUSY_S", 0.1)
    opening._opened.cache_clear()
    impatient = open_store(folder=tmp_path, environ={})
    other = sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        assert len(refresh_runs(impatient)) == 1
        with pytest.raises(StoreBusyError, match="another process writes to it"):
            save_scenario(impatient, owner="ada", name="x", query="?v=1")
    finally:
        other.close()


def test_threads_that_open_a_new_store_at_once_make_its_tables_once(tmp_path):
    ready = threading.Barrier(8)

    def opens(_):
        ready.wait()
        return refresh_runs(open_store(folder=tmp_path, environ={}))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(opens, range(8))) == [[]] * 8


def test_times_are_kept_in_utc_whatever_their_zone(store):
    at = datetime(2026, 3, 1, 23, 30, tzinfo=UTC).astimezone()
    write(store, found("oci", [offer()]), at=at)
    (run,) = refresh_runs(store)
    assert run.ended_at == at
    assert run.ended_at.utcoffset() == timedelta(0)

"""A backup of a store on a real PostgreSQL, and back."""

import os
import secrets
import subprocess
import threading
import zipfile

import psycopg
import pytest

from pricing.backup.archive import BackupError
from pricing.backup.make import backup
from pricing.backup.restore import restore
from pricing.disk import write_atomically
from pricing.store import dump
from pricing.store.condition import condition
from pricing.store.engine import StoreError
from pricing.store.opening import open_store
from pricing.store.saved import save_scenario, saved_scenarios
from tests.servers.postgres import PASSWORD

pytestmark = pytest.mark.services


@pytest.fixture
def databases(postgres_server, postgres_url, monkeypatch, tmp_path):
    """Make one of two databases, each with a data folder, that of the installation."""
    second = f"second_{secrets.token_hex(4)}"  # a store is opened once a process and address
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {second}")
    monkeypatch.setenv("PATH", f"{postgres_server.programs}:{os.environ['PATH']}")
    urls = {"first": postgres_url, "second": postgres_server.url(second)}

    def use(name):
        monkeypatch.setenv("RUNCAST_DATABASE_URL", urls[name])
        monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path / name))
        return tmp_path / name

    use("first")
    yield use
    for name in urls:
        use(name)
        open_store().close()
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {second} WITH (FORCE)")


def save(name):
    save_scenario(open_store(), owner="local", name=name, query="model=llama3.1-70b")


def names():
    return sorted(s.name for s in saved_scenarios(open_store(), owner="local"))


def test_a_store_with_writers_at_work_is_there_again_elsewhere(databases, tmp_path):
    write_atomically(databases("first") / "price_books/acme.json", b"{}")
    stop, said = threading.Event(), []

    def write():
        while not stop.is_set():
            save(f"written {len(said):04}")
            said.append(1)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while len(said) < 5:
            assert writer.is_alive()
        least = len(said)
        made = backup(tmp_path / "b.zip", version="0.1.0")
        most = len(said) + 1
    finally:
        stop.set()
        writer.join()
    assert made.store.kind == "postgresql"
    assert PASSWORD.encode() not in (tmp_path / "b.zip").read_bytes()
    there = databases("second")
    open_store()  # a server that has started, and made its empty tables
    restore(tmp_path / "b.zip")
    found = names()
    assert found == [f"written {n:04}" for n in range(len(found))]
    assert least <= len(found) <= most
    assert (there / "price_books/acme.json").read_bytes() == b"{}"
    save("after it")


def test_what_was_there_is_put_aside_and_back_where_it_fails(databases, tmp_path, monkeypatch):
    databases("first")
    save("70B")
    write_atomically(databases("first") / "price_books/acme.json", b"{}")
    backup(tmp_path / "b.zip", version="0.1.0")
    there = databases("second")
    save("mine")
    with pytest.raises(BackupError, match="--replace puts what is here aside"):
        restore(tmp_path / "b.zip")

    def full(*args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("pricing.backup.restore.shutil.move", full)
        with pytest.raises(OSError, match="No space"):
            restore(tmp_path / "b.zip", replace=True)
    assert names() == ["mine"]
    done = restore(tmp_path / "b.zip", replace=True)
    assert names() == ["70B"]
    assert (there / done.aside / "store.dump").stat().st_size > 1000


def test_a_dump_that_is_not_ours_or_cut_changes_nothing(databases, postgres_server, tmp_path):
    databases("second")
    save("mine")
    store = open_store()
    foreign = tmp_path / "foreign.dump"
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS evil AS SELECT 1 AS a")
    subprocess.run(
        [postgres_server.programs / "pg_dump", "--format=custom", "--table=evil",
         f"--file={foreign}", postgres_server.url("postgres")],
        check=True,
    )  # fmt: skip
    with pytest.raises(StoreError, match="a table 'evil', not of ours"):
        dump.restore_postgresql(store, foreign)
    dump.dump_postgresql(store, tmp_path / "whole.dump")
    save("later")
    whole = (tmp_path / "whole.dump").read_bytes()
    (tmp_path / "cut.dump").write_bytes(whole[: len(whole) * 2 // 3])
    with pytest.raises(StoreError, match="pg_restore failed") as caught:
        dump.restore_postgresql(store, tmp_path / "cut.dump")
    assert PASSWORD not in str(caught.value)
    assert names() == ["later", "mine"]


def test_its_condition_is_said_without_a_user_or_a_password(databases):
    databases("first")
    assert not condition().exists
    save("70B")
    found = condition()
    assert (found.kind, found.saved_scenarios, found.wrong) == ("postgresql", 1, "")
    assert found.size_bytes > 1_000_000
    assert found.revision == found.newest_revision
    assert PASSWORD not in repr(found)
    with open_store().writing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    assert "written by a newer version" in condition(thorough=False).wrong
    with open_store().writing() as connection:
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{found.revision}'")


def test_tools_that_are_missing_or_too_old_are_a_sentence(databases, tmp_path, monkeypatch):
    databases("first")
    save("70B")
    tools = tmp_path / "bin"
    tools.mkdir()
    monkeypatch.setenv("PATH", str(tools))
    with pytest.raises(StoreError, match=r"pg_dump is not here.*postgresql-client-\d+"):
        backup(tmp_path / "b.zip", version="0.1.0")
    old = tools / "pg_dump"
    old.write_text("#!/bin/sh\necho 'pg_dump (PostgreSQL) 9.6.24'\n")
    old.chmod(0o755)
    with pytest.raises(StoreError, match=r"pg_dump is of PostgreSQL 9 and the server of \d+"):
        backup(tmp_path / "b.zip", version="0.1.0")
    assert not (tmp_path / "b.zip").exists()


def test_an_archive_of_the_other_kind_of_store_is_refused(databases, tmp_path, monkeypatch):
    databases("first")
    save("70B")
    backup(tmp_path / "b.zip", version="0.1.0")
    assert "store.dump" in zipfile.ZipFile(tmp_path / "b.zip").namelist()
    monkeypatch.delenv("RUNCAST_DATABASE_URL")
    with pytest.raises(BackupError, match=r"store is postgresql and this installation's is sqlite"):
        restore(tmp_path / "b.zip")

"""A backup has everything, a restore puts back all of it or nothing, and no archive is trusted."""

import errno
import hashlib
import io
import json
import os
import re
import shutil
import sqlite3
import stat
import threading
import warnings
import zipfile
from pathlib import Path
from unittest.mock import Mock

import pytest

from core.errors import RuncastError
from pricing import publish
from pricing.backup import archive as archives
from pricing.backup import restore as restoring
from pricing.backup.archive import BackupError, is_kept
from pricing.backup.make import backup
from pricing.backup.restore import restore
from pricing.disk import write_atomically
from pricing.lease import lease
from pricing.offers import SNAPSHOTS, installed_id, read_rows, snapshot
from pricing.source_state import SourceState, State, read_state, write_state
from pricing.store.opening import open_store
from pricing.store.saved import save_scenario, saved_scenarios
from tests.support.documented_keys import paths

BOOK = b"accelerator,usd_per_gpu_hour\nH100-80GB-SXM,1.23\n"


@pytest.fixture
def data(monkeypatch, tmp_path):
    """Make the folder of this name that of the installation; its path."""

    def named(name):
        folder = tmp_path / name
        monkeypatch.setenv("RUNCAST_DATA_DIR", str(folder))
        return folder

    named("data")
    return named


def fill(folder):
    """An installation that keeps one of everything."""
    rows = read_rows(SNAPSHOTS / f"{installed_id(folder=SNAPSHOTS)}.parquet")[:50]
    published = folder / "prices/snapshots"
    publish.make_current(publish.write_snapshot(rows, published), published)
    write_state(State(sources={"oci": SourceState(name="oci", rows=7)}), folder / "prices")
    write_atomically(folder / "prices/cache/oci/body", b"for the next refresh")
    write_atomically(folder / "calibrations/0123456789abcdef.json", b"{}")
    write_atomically(folder / "price_books/acme.json", b'{"added_on": "2026-11-22", "rows": []}')
    (folder / "calibrations/.left-behind").write_text("of a killed process")
    save("70B")


def save(name, query="model=llama3.1-70b"):
    return save_scenario(open_store(), owner="local", name=name, query=query)


def names():
    return sorted(s.name for s in saved_scenarios(open_store(), owner="local"))


def tree(folder):
    """Every file below a folder that is not of a running store, with what is in it."""
    return {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for p in folder.rglob("*")
        if p.is_file() and "store.sqlite" not in p.name and not p.name.startswith("lease")
    }


def is_private(path):
    return stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


@pytest.fixture
def made(data, tmp_path):
    """An archive of a full installation."""
    fill(data("data"))
    backup(tmp_path / "b.zip", version="0.1.0")
    return tmp_path / "b.zip"


# --- round trip ----------------------------------------------------------------------------------


def test_what_was_backed_up_is_there_again_on_another_machine(data, made):
    before, prices = tree(data("data")), snapshot()
    other = data("other")
    done = restore(made)
    kept = {n: b for n, b in before.items() if "cache" not in n and "left-behind" not in n}
    assert tree(other) == kept
    assert names() == ["70B"]
    assert snapshot() == prices
    assert read_state(other / "prices").of("oci").rows == 7
    assert (done.aside, done.manifest.store.kind) == ("", "sqlite")


def test_archive_and_restored_files_are_for_their_owner_alone(data, made):
    restore_into = data("other")
    restore(made)
    assert is_private(made)
    files = [p for p in restore_into.rglob("*") if p.is_file() and not p.name.startswith("lease")]
    assert len(files) > 4
    assert not [p for p in files if not is_private(p)]


def test_a_backup_is_one_state_while_others_write(data, tmp_path):
    fill(data("data"))
    stop, said = threading.Event(), []

    def write():
        count = 0
        while not stop.is_set() and count < 500:
            save(f"written {count:03}")
            said.append(count)  # acknowledged
            count += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while len(said) < 5:
            assert writer.is_alive()
        least = len(said)
        backup(tmp_path / "b.zip", version="0.1.0")
        most = len(said) + 1
    finally:
        stop.set()
        writer.join()
    data("other")
    restore(tmp_path / "b.zip")
    found = [n for n in names() if n.startswith("written")]
    assert found == [f"written {n:03}" for n in range(len(found))]  # no gap
    assert least <= len(found) <= most
    save("after it")


def test_what_was_here_is_put_aside_and_the_server_goes_on(data, made):
    here = data("other")
    fill(here)
    save("mine")
    (here / "price_books/mine.json").write_text("{}")
    reader = sqlite3.connect(here / "prices/store.sqlite")  # a server that has it open
    count = "SELECT count(*) FROM saved_scenarios"
    assert reader.execute(count).fetchone() == (2,)
    with pytest.raises(BackupError, match="--replace puts what is here aside"):
        restore(made)
    done = restore(made, replace=True)
    assert names() == ["70B"]
    assert reader.execute(count).fetchone() == (1,)
    reader.close()
    assert not (here / "price_books/mine.json").exists()
    aside = here / done.aside
    assert (aside / "price_books/mine.json").read_text() == "{}"
    with sqlite3.connect(aside / "store.sqlite") as old:
        assert old.execute(count).fetchone() == (2,)
    old.close()
    save("and more")
    assert names() == ["70B", "and more"]


def test_an_empty_store_that_a_server_has_made_is_nothing_to_put_aside(data, made):
    data("other")
    open_store()
    restore(made)
    assert names() == ["70B"]


def test_a_damaged_store_is_put_aside_as_it_is(data, made):
    here = data("other")
    (here / "prices").mkdir(parents=True)
    (here / "prices/store.sqlite").write_bytes(b"no database at all" * 100)
    done = restore(made, replace=True)
    assert names() == ["70B"]
    assert (here / done.aside / "store.sqlite").read_bytes().startswith(b"no database")


def test_an_archive_of_an_older_version_is_brought_forward(data, made):
    older = "DROP INDEX ix_saved_scenarios_id; ALTER TABLE saved_scenarios DROP COLUMN id;"
    older += "UPDATE alembic_version SET version_num='0001'"
    rewritten(made, store=older, manifest=lambda said: said["store"].update(revision="0001"))
    here = data("other")
    restore(made)
    with sqlite3.connect(here / "prices/store.sqlite") as store:
        assert store.execute("SELECT version_num FROM alembic_version").fetchone() == ("0002",)
        assert len(store.execute("SELECT id FROM saved_scenarios").fetchone()[0]) == 16
    store.close()
    assert names() == ["70B"]


def test_an_installation_that_keeps_nothing_has_no_backup(data, tmp_path):
    data("data")
    with pytest.raises(BackupError, match="nothing to back up"):
        backup(tmp_path / "b.zip", version="0.1.0")
    assert list(tmp_path.glob("*.zip")) == []


def test_an_archive_is_not_replaced_unless_it_may_be(made):
    with pytest.raises(BackupError, match="is there already"):
        backup(made, version="0.1.0")
    before = made.read_bytes()
    backup(made, version="0.2.0", replace=True)
    assert made.read_bytes() != before


def test_a_refresh_that_works_is_waited_for_and_then_named(data, tmp_path):
    fill(data("data"))
    with lease(data("data") / "prices"), pytest.raises(BackupError, match="Another refresh works"):
        backup(tmp_path / "b.zip", version="0.1.0", wait_s=0.1)
    assert list(tmp_path.glob("*.zip")) == []


# --- failures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", range(1, 9))
def test_whatever_step_fails_the_old_data_is_back(data, made, monkeypatch, step):
    here = data("other")
    fill(here)
    save("mine")
    before, at = tree(here), 0
    move, load = shutil.move, restoring.load_sqlite

    def failing(call, *args):
        nonlocal at
        at += 1
        if at == step:
            raise OSError(28, "No space left on device")
        return call(*args)

    monkeypatch.setattr(restoring.shutil, "move", lambda *a: failing(move, *a))
    monkeypatch.setattr(restoring, "load_sqlite", lambda *a: failing(load, *a))
    with pytest.raises(OSError, match="No space"):
        restore(made, replace=True)
    assert at >= step
    assert tree(here) == before
    assert names() == ["70B", "mine"]
    assert not [p for p in here.iterdir() if "restore" in p.name]


def test_no_room_on_the_disk_is_said_before_anything_is_written(data, made, monkeypatch):
    here = data("other")
    free = shutil.disk_usage("/")._replace(free=1000)
    monkeypatch.setattr(restoring.shutil, "disk_usage", lambda path: free)
    with pytest.raises(BackupError, match="the disk has 1,000 free"):
        restore(made)
    assert tree(here) == {}


# --- archives that nobody should believe ---------------------------------------------------------


def rewritten(path, *, change=None, manifest=None, store=None, more=()):
    """The archive with its manifest, its store or single members changed."""
    with zipfile.ZipFile(path) as file:
        held = {i.filename: file.read(i) for i in file.infolist()}
    said = json.loads(held.pop("manifest.json"))
    if store is not None:
        place = path.with_suffix(".sqlite")
        place.write_bytes(held["store.sqlite"])
        connection = sqlite3.connect(place)
        with connection:
            connection.executescript(store)
        connection.close()
        held["store.sqlite"] = place.read_bytes()
        for member in said["members"]:
            if member["name"] == "store.sqlite":
                member["bytes"] = len(held["store.sqlite"])
                member["sha256"] = hashlib.sha256(held["store.sqlite"]).hexdigest()
    if manifest is not None:
        manifest(said)
    if change is not None:
        change(held)
    with zipfile.ZipFile(path, "w") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two members of one name
        file.writestr("manifest.json", json.dumps(said))
        for name, content in [*held.items(), *more]:
            file.writestr(name, content)


def listed(name, content=b"x"):
    """A change of the manifest that names one more member, as it is."""
    one = {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return lambda said: said["members"].append(one)


def link(name):
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def packed(name, kind):
    info = zipfile.ZipInfo(name)
    info.compress_type = kind
    return info


def first_named(said, name="prices/state.json"):
    return next(m for m in said["members"] if m["name"] == name)


HOSTILE = {
    **{
        f"a member that no backup has: {name}": (
            {"manifest": listed(name), "more": [(name, b"x")]}, "nothing that a backup has")
        for name in ("prices/store.sqlite", "prices/store.sqlite-wal", "prices/lease",
                     "prices/cache/oci/body")
    },
    "a path upwards": (
        {"manifest": listed("../evil"), "more": [("../evil", b"x")]}, "nothing that a backup has"),
    "a path upwards in a folder": (
        {"manifest": listed("prices/../../evil"), "more": [("prices/../../evil", b"x")]},
        "nothing that a backup has"),
    "an absolute path": (
        {"manifest": listed("/tmp/evil"), "more": [("/tmp/evil", b"x")]}, "nothing that a backup"),
    "another folder": (
        {"manifest": listed("ssh/keys"), "more": [("ssh/keys", b"x")]}, "nothing that a backup"),
    "a hidden file": (
        {"manifest": listed("prices/.evil"), "more": [("prices/.evil", b"x")]}, "nothing that a"),
    "a link": (
        {"manifest": listed("prices/evil", b"/etc/passwd"),
         "more": [(link("prices/evil"), b"/etc/passwd")]}, "is no plain file"),
    "a member that the manifest lacks": ({"more": [("prices/evil", b"x")]}, "do not agree"),
    "a member that is not there": ({"manifest": listed("prices/gone")}, "do not agree"),
    "the same name twice": ({"more": [("prices/state.json", b"x")]}, "two members of one name"),
    "another content": (
        {"change": lambda held: held.update({"prices/state.json": b"{}"})}, "is damaged"),
    "a bomb": (
        {"change": lambda held: held.update({"prices/state.json": bytes(300_000_000)})},
        "is damaged"),
    "more than there is": (
        {"manifest": lambda said: first_named(said).update(bytes=10**15)}, "cannot be read"),
    "a bomb that no limit holds": (
        {"more": [(packed("prices/evil", zipfile.ZIP_BZIP2), b"x")]}, "packed as no backup is"),
    "another such bomb": (
        {"more": [(packed("prices/evil", zipfile.ZIP_LZMA), b"x")]}, "packed as no backup is"),
    "a bomb that says so": (
        {"manifest": lambda said: first_named(said).update(bytes=49 * 10**9)}, "damaged|the disk"),
    "another format": ({"manifest": lambda said: said.update(format="x/9")}, "this version reads"),
    "no sizes": ({"manifest": lambda said: first_named(said).pop("bytes")}, "cannot be read"),
    "no store": (
        {"change": lambda held: held.pop("store.sqlite"),
         "manifest": lambda said: said["members"].pop(0)}, "lacks its store"),
    "a newer store": (
        {"manifest": lambda said: said["store"].update(revision="9999")},
        "written by a newer version"),
    "a newer store that does not say so": (
        {"store": "UPDATE alembic_version SET version_num='9999'"}, "is '9999', not"),
    "a store with a trigger": (
        {"store": "CREATE TRIGGER evil AFTER INSERT ON leases BEGIN SELECT 1; END"},
        "a trigger or view"),
    "a store with another table": ({"store": "CREATE TABLE evil (a)"}, "'evil', not of ours"),
    "a store that is none": (
        {"change": lambda held: held.update({"store.sqlite": b"x" * 200}),
         "manifest": lambda said: first_named(said, "store.sqlite").update(
             bytes=200, sha256=hashlib.sha256(b"x" * 200).hexdigest())},
        "store cannot be read: file is not a database"),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_an_archive_that_is_not_sound_changes_nothing(data, made, tmp_path, what):
    change, sentence = HOSTILE[what]
    rewritten(made, **change)
    here = data("other")
    fill(here)
    before = tree(here)
    outside = {p.name for p in tmp_path.iterdir()}
    with pytest.raises(RuncastError, match=sentence):
        restore(made, replace=True)
    assert tree(here) == before
    assert names() == ["70B"]
    assert {p.name for p in tmp_path.iterdir()} == outside
    assert not [p for p in here.iterdir() if "restore" in p.name]


def bomb():
    """A Parquet file of 48 kB that unpacks to 400 GB."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 400_000, pa.int32()), ["x" * 10**6])
    pq.write_table(pa.table({"provider": texts}), out := io.BytesIO())
    return out.getvalue()


@pytest.mark.parametrize("make", [lambda: b"PAR1 no longer", bomb])
def test_prices_that_are_not_what_their_name_says_are_refused(data, made, make, monkeypatch, capfd):
    with zipfile.ZipFile(made) as file:
        name = next(n for n in file.namelist() if n.endswith(".parquet"))
    content = make()
    digest = hashlib.sha256(content).hexdigest()
    new = {name: content, name.replace(".parquet", ".sha256"): digest.encode()}

    def named(said):
        for one, what in new.items():
            its = {"bytes": len(what), "sha256": hashlib.sha256(what).hexdigest()}
            first_named(said, one).update(its)

    rewritten(made, change=lambda held: held.update(new), manifest=named)
    data("other")
    monkeypatch.setattr("pricing.backup.checking.FILE_S", 3.0)
    with pytest.raises(BackupError, match=f"prices are damaged: {Path(name).name}"):
        restore(made)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("content", [b"", b"PK", b"no zip at all" * 1000])
def test_a_file_that_is_no_archive_is_a_sentence(data, tmp_path, content):
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(BackupError, match=r"'x\.zip' is no backup, or is damaged"):
        restore(tmp_path / "x.zip")
    with pytest.raises(BackupError, match=r"There is no file 'y\.zip'"):
        restore(tmp_path / "y.zip")


FIXED = {"price_books/acme.json": b'{"rows": []}'}
SAMPLE = range(5, 3690, 37)  # bits of its headers and contents


def fixed(path):
    """An archive of the same bytes everywhere, so that a flip hits the same field on every run: no
    clock, SQLite or version writes into it, and zlib packs only what it can pack in one way."""
    with zipfile.ZipFile(path, "w") as file:
        writer, place = archives.Writer(file), path.with_suffix(".member")
        for name, content in FIXED.items():
            place.write_bytes(content)
            writer.add(name, place)
        said = {
            "format": "runcast-backup/1", "created_at": "2026-11-22T00:00:00Z",
            "runcast_version": "0.1.0",
            "store": {"kind": "none", "revision": "", "server_version": ""},
            "members": [m.model_dump() for m in writer.members],
        }  # fmt: skip
        file.writestr(zipfile.ZipInfo("manifest.json"), json.dumps(said, indent=1))
    return path.read_bytes()


def test_every_cut_of_an_archive_is_refused(data, tmp_path):
    file = tmp_path / "b.zip"
    whole = fixed(file)
    here = data("other")
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        with pytest.raises(BackupError):
            restore(file)
    assert tree(here) == {}


def test_every_flipped_bit_is_refused_or_harmless(data, tmp_path, monkeypatch):
    """Each bit of the directory and of the record at the end, and some of the rest. What no reader
    looks at (a time, who may read a file) changes nothing."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # 500 restores, and no power cut
    file = tmp_path / "b.zip"
    whole = fixed(file)
    directory = whole.index(b"PK\1\2")
    assert SAMPLE[-1] < 8 * directory
    here = data("flipped")
    restore(file)
    assert tree(here) == FIXED
    shutil.rmtree(here)
    refused = 0
    for bit in [*SAMPLE, *range(8 * directory, 8 * len(whole))]:
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        file.write_bytes(damaged)
        try:
            restore(file)
        except BackupError:
            refused += 1
            assert tree(here) == {}
        else:
            assert tree(here) == FIXED
            shutil.rmtree(here)
    assert refused > 700


@pytest.mark.parametrize(
    ("of", "call", "number"),
    [(Path, "stat", errno.EACCES), (zipfile.ZipExtFile, "read", errno.EIO),
     (archives.os, "fsync", errno.ENOSPC), (archives.os, "fsync", errno.EINVAL)],
)  # fmt: skip
def test_a_disk_that_fails_is_no_damaged_archive(data, made, monkeypatch, of, call, number):
    """Whoever reads 'damaged' may throw away the only backup."""
    here = data("other")
    with monkeypatch.context() as patch:
        patch.setattr(of, call, Mock(side_effect=OSError(number, "of the disk")))
        with pytest.raises(OSError, match="of the disk"):
            restore(made)
    assert tree(here) == {}


def test_too_many_members_are_refused(data, made, monkeypatch):
    monkeypatch.setattr(archives, "MOST_MEMBERS", 2)
    with pytest.raises(BackupError, match="more than 2 members"):
        restore(made, replace=True)


@pytest.mark.parametrize(
    "name",
    ["", "prices", "prices/", "prices//a", "prices/a/../b", "prices/a\n", "prices\\a", "Prices/a",
     "prices/a/b/c/d/e", "prices/" + "a" * 300, "prices/ä", "prices/-\0"],
)  # fmt: skip
def test_only_names_of_a_backup_are_names(name):
    assert not is_kept(name)


# --- the command line ----------------------------------------------------------------------------


def test_both_are_one_command(data, run, tmp_path):
    fill(data("data"))
    file = tmp_path / "b.zip"
    status, out, err = run("backup", file)
    assert (status, err) == (0, "")
    assert "the sqlite store with tables of 0002" in out
    assert run("backup", file)[0] == 2
    status, out, _ = run("backup", file, "--replace", "--json")
    assert json.loads(out)["num_files"] == len(zipfile.ZipFile(file).namelist()) - 1
    data("other")
    assert run("restore", file)[0] == 0
    status, _, err = run("restore", file)
    assert (status, "--replace puts" in err) == (2, True)
    status, out, _ = run("restore", file, "--replace", "--json")
    assert status == 0
    assert json.loads(out)["put_aside"].startswith("before-restore-")
    document = (Path(__file__).parents[2] / "docs/operations.md").read_text(encoding="utf-8")
    said = {k for k in paths(json.loads(out)) if k != "store"}
    assert said <= set(re.findall(r"`([\w.\[\]]+)`", document))
    assert run("restore", tmp_path / "gone.zip")[2] == "runcast: There is no file 'gone.zip'.\n"

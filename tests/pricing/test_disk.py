"""Files that are replaced whole, or several of them or none, and a snapshot that was damaged."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from unittest.mock import Mock

import pytest

from pricing.disk import make_private, write_all_or_none, write_atomically
from pricing.offers import read_rows
from pricing.publish import write_snapshot
from pricing.store.opening import open_store
from pricing.store.saved import save_scenario


@pytest.fixture
def full(monkeypatch):
    """Writes after the first one find no room."""
    written = []

    def write(path, data):
        written.append(path)
        if len(written) > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with path.open("wb") as file:
            return file.write(data)

    monkeypatch.setattr(Path, "write_bytes", write)


def test_a_write_that_fails_names_its_file_and_leaves_the_old_one(tmp_path, monkeypatch):
    file = tmp_path / "some.json"
    write_atomically(file, b"old")
    no_room = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr("pricing.disk.os.fsync", Mock(side_effect=no_room))
    with pytest.raises(OSError, match="No space left") as error:
        write_atomically(file, b"new")
    assert error.value.filename == str(file)
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("some.json", b"old")]


def test_of_files_of_which_one_has_no_room_none_is_there(tmp_path, full):
    files = {tmp_path / "a/1.sh": b"1", tmp_path / "a/2.sh": b"2"}
    with pytest.raises(OSError, match="No space left") as error:
        write_all_or_none(files)
    assert error.value.filename == str(tmp_path / "a/2.sh")
    assert list((tmp_path / "a").iterdir()) == []


def test_files_replace_others_and_symlinks_but_not_what_these_lead_to(tmp_path):
    (tmp_path / "elsewhere").write_bytes(b"of somebody else")
    (tmp_path / "1").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "2").write_bytes(b"old")
    write_all_or_none({tmp_path / "1": b"one", tmp_path / "2": b"two"})
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {
        "1": b"one", "2": b"two", "elsewhere": b"of somebody else",
    }  # fmt: skip


@pytest.mark.parametrize("damage", [b"", b"PAR1 and no more"])
def test_a_damaged_snapshot_is_written_again(tmp_path, damage):
    rows = [("aws", "p5.48xlarge", "H100-80GB-SXM", 8, "us-east-1", "on_demand", 44.0, 3200.0,
             "2026-07-20", "made", "high", "", 80.0, 192.0, 2048.0)]  # fmt: skip
    name = write_snapshot(rows, tmp_path)
    file = tmp_path / f"{name}.parquet"
    file.write_bytes(damage)
    assert write_snapshot(rows, tmp_path) == name
    assert read_rows(file) == rows


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_the_store_and_its_folders_are_for_their_owner_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path / "new" / "data"))
    store = open_store()
    save_scenario(store, owner="local", name="mine", query="v=1")
    file = store.file
    assert file is not None
    assert mode(file) == 0o600
    assert {mode(p) for p in file.parent.glob("store.sqlite*")} == {0o600}
    assert [mode(f) for f in list(file.parents)[:3]] == [0o700] * 3
    write_atomically(tmp_path / "other" / "calibrations" / "x.json", b"{}")
    assert mode(tmp_path / "other") == 0o700


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o600), (0o666, 0o600), (0o660, 0o660)])
def test_a_store_that_everybody_may_read_is_taken_from_them(tmp_path, before, after):
    file = tmp_path / "store.sqlite"
    file.touch()
    file.chmod(before)
    make_private(file)
    assert mode(file) == after

"""Restore a backup: unpack and check everything next to the data, then swap it in.

The old data is moved to `before-restore-TIME/` in the data folder, and back again if a step fails.
The store is one transaction, files are renamed. A process that is killed between two renames leaves
both, and running the command again with --replace completes it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from core.errors import FactError, shown
from pricing.backup.archive import FOLDERS, STORES, BackupError, Manifest, Reader, opened
from pricing.backup.checking import check_snapshots
from pricing.backup.make import WAIT_S, data_folder, give_to_owner, kept_files, no_refresh
from pricing.disk import make_private, private_folder, sync_folder
from pricing.offers import installed_id
from pricing.store.dump import (
    check_sqlite,
    dump_postgresql,
    dump_sqlite,
    has_rows,
    load_sqlite,
    restore_postgresql,
)
from pricing.store.engine import STORE_FILE, Store, StoreError, store_as_it_is
from pricing.store.upgrade import known_revisions, upgrade

SPARE_BYTES = 64_000_000  # of the disk, to be left free
_STAGED = ".restore-"
_BESIDE_SQLITE = ("-wal", "-shm", "-journal")
_STAYS = frozenset(
    {"lease", "lease.lock", "cache", *(STORE_FILE + end for end in ("", *_BESIDE_SQLITE))}
)

Undo = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The result of a restore."""

    manifest: Manifest
    aside: str  # folder inside the data folder with the old data; '' if there was none


def restore(
    path: Path,
    *,
    replace: bool = False,
    wait_s: float = WAIT_S,
    environ: Mapping[str, str] | None = None,
    now: datetime | None = None,
) -> Restored:
    """Replace what this installation keeps by the archive at `path`, completely or not at all.

    `BackupError` or `StoreError` if that fails: nothing has changed then.
    """
    data = data_folder()
    at = (datetime.now(UTC) if now is None else now).strftime("%Y%m%dT%H%M%SZ")
    with opened(path) as archive:
        manifest = archive.manifest
        store = store_as_it_is(environ=environ)
        try:
            _check_fits(manifest, store)
            if not replace and (what := _kept_here(data, store)):
                raise BackupError(
                    f"This installation has {what} already: --replace puts what is here "
                    "aside and the archive in its place."
                )
            (data / "prices").mkdir(parents=True, exist_ok=True, mode=0o700)
            give_to_owner(data / "prices", data)
            _check_room(manifest, data)
            staged = Path(tempfile.mkdtemp(dir=data, prefix=_STAGED))  # mode 0700
            try:
                _unpack(archive, staged)
                with no_refresh(data / "prices", wait_s=wait_s):
                    _forget_killed(data, staged)
                    aside = _swap(staged, data, store, manifest, data / f"before-restore-{at}")
            finally:
                shutil.rmtree(staged, ignore_errors=True)
        finally:
            store.close()
    return Restored(manifest=manifest, aside=aside)


def _forget_killed(data: Path, ours: Path) -> None:
    """Delete what a killed restore had unpacked."""
    for left in data.glob(f"{_STAGED}*"):
        if left != ours:
            shutil.rmtree(left, ignore_errors=True)


def _check_fits(manifest: Manifest, store: Store) -> None:
    """Check that the archive fits this version and this kind of store."""
    here = "postgresql" if store.is_shared else "sqlite"
    if manifest.store.kind not in ("none", here):
        raise BackupError(
            f"The archive's store is {manifest.store.kind} and this installation's is {here}: "
            "set or unset RUNCAST_DATABASE_URL."
        )
    known = known_revisions()
    if manifest.store.revision and manifest.store.revision not in known:
        raise BackupError(
            f"The archive was written by a newer version of Runcast, "
            f"{shown(manifest.runcast_version)} (its tables are "
            f"{shown(manifest.store.revision)}, this version knows {known[0]}): update Runcast."
        )


def _kept_here(data: Path, store: Store) -> str:
    """What a restore would move aside; '' for an installation that keeps nothing yet."""
    files = len(kept_files(data))
    try:
        rows = (store.file is None or os.path.exists(store.file)) and has_rows(store)
    except StoreError:
        rows = store.file is not None  # a damaged file is still data
        if not rows:
            raise
    parts = [f"{files:,} files" if files else "", f"the store {store.name}" if rows else ""]
    return " and ".join(filter(None, parts))


def _check_room(manifest: Manifest, data: Path) -> None:
    free = shutil.disk_usage(data).free
    if manifest.num_bytes + SPARE_BYTES > free:
        raise BackupError(
            f"The archive unpacks to {manifest.num_bytes:,} bytes and the disk has {free:,} free."
        )


def _unpack(archive: Reader, staged: Path) -> None:
    """Unpack, and check the store and the prices in the archive."""
    archive.unpack(staged)
    store = archive.manifest.store
    if (
        store.kind == "sqlite"
        and (found := check_sqlite(staged / STORES["sqlite"])) != store.revision
    ):
        raise BackupError(f"The archive's store is {shown(found)}, not {shown(store.revision)}.")
    try:
        check_snapshots(sorted((staged / "prices").rglob("*.parquet")))
        if ((published := staged / "prices/snapshots") / "current").is_file():
            installed_id(folder=published)
    except FactError as e:
        raise BackupError(f"The archive's prices are damaged: {e}") from None


def _swap(staged: Path, data: Path, store: Store, manifest: Manifest, aside: Path) -> str:
    """Swap the new data in; on any failure the old data is restored. Returns the folder with the
    old data."""
    undo: list[Undo] = []
    aside.mkdir(mode=0o700)
    give_to_owner(staged, data)
    try:
        _put_store(staged, store, manifest, aside, undo)
        if manifest.store.kind != "none":
            upgrade(store)  # a running server assumes the tables of its version
        for name in FOLDERS:
            _put_folder(staged / name, data / name, aside / name, undo)
    except BaseException:
        for step in reversed(undo):
            with suppress(OSError, StoreError):
                step()
        shutil.rmtree(aside, ignore_errors=True)  # its content has been moved back
        raise
    sync_folder(data)
    if any(aside.iterdir()):
        give_to_owner(aside, data)
        return aside.name
    aside.rmdir()
    return ""


def _put_store(
    staged: Path, store: Store, manifest: Manifest, aside: Path, undo: list[Undo]
) -> None:
    kind = "postgresql" if store.is_shared else "sqlite"
    new = staged / STORES[kind] if manifest.store.kind == kind else None
    old = aside / STORES[kind]
    if store.file is not None:
        _put_sqlite(new, store.file, store, old, undo)
    elif new is not None:
        if has_rows(store):
            dump_postgresql(store, old)
            undo.append(partial(restore_postgresql, store, old))
        store.close()  # our own connections would lock the tables
        restore_postgresql(store, new)


def _put_sqlite(new: Path | None, file: Path, store: Store, old: Path, undo: list[Undo]) -> None:
    """Replace the store through SQLite: a server with the file open sees the old or the new."""
    if new is not None and os.path.lexists(file):
        try:
            dump_sqlite(store, old)
            undo.append(partial(load_sqlite, store, old))
        except StoreError:
            old.unlink(missing_ok=True)
    if not old.exists():  # damaged, or nothing replaces it: it is moved aside as it is
        for part in (file.with_name(file.name + end) for end in ("", *_BESIDE_SQLITE)):
            if os.path.lexists(part):
                _move(part, old.with_name(part.name), undo)
    if new is None:
        return
    if not os.path.lexists(file):
        private_folder(file.parent)
        make_private(file)
        give_to_owner(file, file.parent)
        undo.append(partial(file.unlink, missing_ok=True))
    load_sqlite(store, new)


def _put_folder(new: Path, place: Path, aside: Path, undo: list[Undo]) -> None:
    """Swap the entries of one folder one by one: the folder itself may be a mount, and the folder
    of prices also has the lock and the store."""
    stays = _STAYS if place.name == "prices" else frozenset[str]()
    for old in sorted(place.iterdir()) if place.is_dir() else []:
        if old.name not in stays:
            aside.mkdir(parents=True, exist_ok=True, mode=0o700)
            _move(old, aside / old.name, undo)
    for one in sorted(new.iterdir()) if new.is_dir() else []:
        if not place.is_dir():
            place.mkdir(mode=0o700)
            give_to_owner(place, place.parent)
        _move(one, place / one.name, undo)


def _move(source: Path, target: Path, undo: list[Undo]) -> None:
    shutil.move(source, target)
    undo.append(partial(shutil.move, target, source))

"""Make a backup while the server works: the store, prices, price books, calibrations.

No refresh publishes meanwhile (its lock is held), so that the files and the store are consistent.
Left out: bodies cached for the next refresh, locks, settings, secrets.toml.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pricing.backup.archive import (
    FOLDERS,
    STORES,
    BackupError,
    Manifest,
    StoreInfo,
    is_kept,
    written,
)
from pricing.disk import prices_folder
from pricing.lease import LeaseError, lease
from pricing.store.condition import condition
from pricing.store.dump import dump_postgresql, dump_sqlite
from pricing.store.engine import store_as_it_is

WAIT_S = 60.0  # to wait for a running refresh


def data_folder() -> Path:
    """The data folder of this installation: RUNCAST_DATA_DIR, or the user's."""
    return prices_folder().parent


def backup(
    path: Path,
    *,
    version: str,
    replace: bool = False,
    wait_s: float = WAIT_S,
    environ: Mapping[str, str] | None = None,
    now: datetime | None = None,
) -> Manifest:
    """Write everything that this installation keeps into one archive at `path`, mode 0600."""
    data = data_folder()
    with (
        written(path, replace=replace) as archive,
        tempfile.TemporaryDirectory(dir=path.parent, prefix=".runcast-backup-") as scratch,
        no_refresh(data / "prices", wait_s=wait_s),
    ):
        store = _dumped(Path(scratch), environ)
        if store.kind != "none":
            archive.add(STORES[store.kind], Path(scratch) / STORES[store.kind])
        for name in kept_files(data):
            archive.add(name, data / name)
        if not archive.members:
            raise BackupError("There is nothing to back up: this installation keeps nothing yet.")
        return archive.finish(store, version, datetime.now(UTC) if now is None else now)


def kept_files(data: Path) -> list[str]:
    """The files of a backup other than the store, by their paths in the data folder, in order.

    Leftovers of a killed process begin with a dot; links are not followed.
    """
    found = []
    for top in FOLDERS:
        for folder, folders, files in os.walk(data / top):
            folders[:] = [f for f in folders if not os.path.islink(os.path.join(folder, f))]
            for file in files:
                full = os.path.join(folder, file)
                name = os.path.relpath(full, data).replace(os.sep, "/")
                if is_kept(name) and not os.path.islink(full):
                    found.append(name)
    return sorted(found)


@contextmanager
def no_refresh(prices: Path, *, wait_s: float) -> Iterator[None]:
    """Hold the lock of refreshes, once a running refresh has ended."""
    if not prices.is_dir():
        yield
        return
    with ExitStack() as stack:
        try:
            stack.enter_context(lease(prices, wait_s=wait_s))
        except LeaseError as e:
            raise BackupError(f"{e} Try again when it has ended.") from None
        for name in ("lease", "lease.lock"):
            give_to_owner(prices / name, prices)
        yield


def give_to_owner(path: Path, of: Path) -> None:
    """Give files that root wrote to the owner of the data, so that the server may use them."""
    if os.geteuid() == 0:
        owner = of.stat()
        for one in (path, *path.rglob("*")):
            os.chown(one, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _dumped(scratch: Path, environ: Mapping[str, str] | None) -> StoreInfo:
    """Copy the store into a folder, and return its description."""
    found = condition(environ=environ, thorough=False)
    if found.wrong:
        raise BackupError(found.wrong)
    if not found.exists:
        return StoreInfo(kind="none", revision="", server_version="")
    store = store_as_it_is(environ=environ)
    try:
        if store.is_shared:
            revision, server = dump_postgresql(store, scratch / STORES["postgresql"])
            return StoreInfo(kind="postgresql", revision=revision, server_version=server)
        revision = dump_sqlite(store, scratch / STORES["sqlite"])
        return StoreInfo(kind="sqlite", revision=revision, server_version=found.server_version)
    finally:
        store.close()

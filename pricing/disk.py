"""Folder of prices of an installation, and atomic replacement of its files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from platformdirs import user_data_path

from core.errors import FactError, shown

DATA_DIR = "RUNCAST_DATA_DIR"


def prices_folder() -> Path:
    """The folder of refreshed prices: `$RUNCAST_DATA_DIR/prices`, else the user's data folder."""
    named = os.environ.get(DATA_DIR, "").strip()
    try:
        return (Path(named).expanduser() if named else user_data_path("runcast")) / "prices"
    except RuntimeError:  # the home of an unknown user
        raise FactError(f"{DATA_DIR} is {shown(named)}, which is no folder here.") from None


def private_folder(path: Path) -> None:
    """Make a folder, and the folders above it that are missing, for its owner alone."""
    for folder in (*reversed(path.parents), path):
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)


def make_private(file: Path) -> None:
    """Make an empty file that its owner alone may read, or take from all others what the usual
    umask gave them. A file of another user, or that is shared with a group only, stays."""
    with suppress(FileExistsError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    if file.stat().st_mode & 0o007:
        with suppress(PermissionError):
            file.chmod(0o600)


def write_atomically(path: Path, data: bytes) -> None:
    """Write under a temporary name, flush to the disk, rename: a reader sees the old or the new
    file.

    On any error (a full disk, a killed process) the old file stays; a leftover temporary file
    starts with '.' and is ignored.
    """
    try:
        private_folder(path.parent)
        _replace(path, data)
    except OSError as e:  # an error of a write has no file name
        raise OSError(e.errno, e.strerror, str(path)) from None


def write_all_or_none(files: Mapping[Path, bytes]) -> None:
    """Write several files for a user: if one cannot be written, none is replaced.

    A symlink is replaced, not its target. Permissions follow the umask.
    """
    temporary = {path: path.with_name(f".{path.name}.{os.getpid()}") for path in files}
    try:
        for path, data in files.items():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                temporary[path].write_bytes(data)
            except OSError as e:
                raise OSError(e.errno, e.strerror, str(path)) from None
        for path, written in temporary.items():
            written.replace(path)
    finally:
        for written in temporary.values():
            written.unlink(missing_ok=True)


def _replace(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Flush a folder to the disk, so that new names in it survive a power cut."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

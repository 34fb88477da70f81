"""The archive of a backup: a zip file with a manifest of its content.

    manifest.json            format, when, by which version, the store, and of each member its size
                             and SHA-256
    store.sqlite             the store: a SQLite file, or
    store.dump               what pg_dump wrote, in its custom format
    prices/... price_books/... calibrations/...

It is written under a temporary name, mode 0600, and renamed. When read it is treated as hostile:
names are matched and never resolved, only plain files are accepted, and no more is unpacked than
the manifest lists and the limits allow. The hashes detect damage, not forgery.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Annotated, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError

from core.errors import RuncastError, shown
from hardware.outside.json_text import Bounds, OutsideError, json_value

FORMAT = "runcast-backup/1"
MANIFEST = "manifest.json"
FOLDERS = ("prices", "price_books", "calibrations")  # of the data folder
STORES = {"sqlite": "store.sqlite", "postgresql": "store.dump"}
# Beginnings of what is in these folders and in no backup: a store gets in by its own check only.
LEFT_OUT = ("prices/cache/", "prices/lease", "prices/store.sqlite")
MOST_MEMBERS = 100_000
MOST_BYTES = 50_000_000_000  # unpacked, all members together
MANIFEST_BYTES = 32_000_000
MANIFEST_BOUNDS = Bounds(
    num_bytes=MANIFEST_BYTES, values=4 * MOST_MEMBERS, lists=2 * MOST_MEMBERS, is_printable=True
)
CHUNK = 1 << 20
# Letters, digits, '.', '_', '-'; no name begins with a dot, and no path is deeper than in the data
# folder.
_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}"
_NAME = re.compile(rf"(?:{'|'.join(FOLDERS)})(?:/{_PART}){{1,4}}")
# What zipfile raises over damage, beside OSError. RuntimeError: encrypted, or NotImplementedError.
_DAMAGED = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError, OverflowError,
)  # fmt: skip


class BackupError(RuncastError):
    """A backup cannot be made, read or restored; the sentence is the reason."""


class Member(BaseModel):
    """One file of an archive."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str = Field(max_length=1000)
    bytes: int = Field(ge=0, le=MOST_BYTES)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class StoreInfo(BaseModel):
    """The store in the archive. With kind 'none' there was no store yet."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    kind: Literal["sqlite", "postgresql", "none"]
    revision: str = Field(max_length=100)
    server_version: str = Field(max_length=100)


class Manifest(BaseModel):
    """The manifest of an archive; keys of newer versions are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    format: str = Field(max_length=100)
    created_at: datetime
    runcast_version: str = Field(max_length=100)
    store: StoreInfo
    members: Annotated[list[Member], Field(max_length=MOST_MEMBERS), FailFast()]

    @property
    def num_bytes(self) -> int:
        return sum(m.bytes for m in self.members)


def is_kept(name: str) -> bool:
    """Whether a path inside the data folder belongs into a backup.

    >>> is_kept("prices/current"), is_kept("prices/../x"), is_kept("prices/.tmp"), is_kept("etc/x")
    (True, False, False, False)
    >>> is_kept("prices/store.sqlite-wal"), is_kept("prices/lease"), is_kept("prices/cache/oci/x")
    (False, False, False)
    """
    return _NAME.fullmatch(name) is not None and not name.startswith(LEFT_OUT)


class Writer:
    """Writer of the members of an archive."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        self._file = file
        self.members: list[Member] = []

    def add(self, name: str, path: Path) -> None:
        """Add a copy of one file; of a file that shrinks meanwhile, what was read."""
        digest, size = hashlib.sha256(), 0
        with path.open("rb") as source, self._file.open(_entry(name), "w", force_zip64=True) as to:
            while chunk := source.read(CHUNK):
                digest.update(chunk)
                size += len(chunk)
                to.write(chunk)
        self.members.append(Member(name=name, bytes=size, sha256=digest.hexdigest()))

    def finish(self, store: StoreInfo, version: str, now: datetime) -> Manifest:
        """Write the manifest, without which the archive is not valid."""
        made = Manifest(
            format=FORMAT,
            created_at=now.astimezone(UTC),
            runcast_version=version,
            store=store,
            members=self.members,
        )
        self._file.writestr(_entry(MANIFEST), made.model_dump_json(indent=1))
        return made


def _entry(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)  # dated 1980: equal data gives equal archives
    info.compress_type = (
        zipfile.ZIP_STORED if name.endswith((".parquet", ".dump")) else zipfile.ZIP_DEFLATED
    )
    info.external_attr = (stat.S_IFREG | 0o600) << 16
    return info


@contextmanager
def written(path: Path, *, replace: bool) -> Iterator[Writer]:
    """An archive at `path`, which exists only if the block ends without an error."""
    if not replace and os.path.lexists(path):
        raise BackupError(
            f"{shown(path.name)} is there already: name another file, or give --replace."
        )
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w+b") as file:
            with zipfile.ZipFile(file, "w") as archive:
                yield Writer(archive)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


class Reader:
    """An open archive whose manifest matches its content."""

    def __init__(self, name: str, file: zipfile.ZipFile, manifest: Manifest) -> None:
        self._name, self._file, self.manifest = name, file, manifest

    def unpack(self, into: Path) -> None:
        """Write every member into the empty folder `into`, checking each while it is written."""
        for member in self.manifest.members:
            path = into.joinpath(*member.name.split("/"))
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as to, self._open(member) as source:
                self._copy(source, to, member)
                to.flush()
                os.fsync(to.fileno())

    def _open(self, member: Member) -> IO[bytes]:
        with _refused(self._name):
            return self._file.open(member.name)

    def _copy(self, source: IO[bytes], to: IO[bytes], member: Member) -> None:
        """One member, never more of it than it should have."""
        digest, left = hashlib.sha256(), member.bytes
        while True:
            with _refused(self._name):
                chunk = source.read(min(CHUNK, left + 1))
            left -= len(chunk)
            if not chunk or left < 0:
                break
            digest.update(chunk)
            to.write(chunk)
        if left or digest.hexdigest() != member.sha256:
            raise BackupError(
                f"The archive is damaged: {member.name} is not what its manifest says."
            )


@contextmanager
def opened(path: Path) -> Iterator[Reader]:
    """Open an archive for reading; `BackupError` if it is not a backup of Runcast."""
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        raise BackupError(f"There is no file {shown(path.name)}.") from None
    if not is_file:
        raise BackupError(f"{shown(path.name)} is no file.")
    with _refused(path.name):
        file = zipfile.ZipFile(path)
    with file:
        with _refused(path.name):
            manifest = _manifest_of(file)
        yield Reader(path.name, file, manifest)


@contextmanager
def _refused(name: str) -> Iterator[None]:
    """What zipfile raises over a file that is damaged, or none, is a sentence.

    It goes to wherever a damaged directory says: a place before the file is EINVAL. Any other
    OSError is of the disk, and keeps its meaning.
    """
    try:
        yield
    except RuncastError:  # a ValueError, too
        raise
    except (*_DAMAGED, OSError) as e:
        if isinstance(e, OSError) and e.errno != errno.EINVAL:
            raise
        raise BackupError(
            f"{shown(name)} is no backup, or is damaged ({type(e).__name__})."
        ) from None


def _manifest_of(file: zipfile.ZipFile) -> Manifest:
    entries = file.infolist()
    if len(entries) > MOST_MEMBERS + 1:
        raise BackupError(f"The archive has more than {MOST_MEMBERS:,} members.")
    by_name = {e.filename: e for e in entries}
    if len(by_name) != len(entries):
        raise BackupError("The archive has two members of one name: it is none of ours.")
    first = by_name.pop(MANIFEST, None)
    if first is None:
        raise BackupError("The archive has no manifest.json: it is no backup of Runcast.")
    if first.file_size > MANIFEST_BYTES:
        raise BackupError(f"The archive's manifest has more than {MANIFEST_BYTES:,} bytes.")
    _check_entries([first, *by_name.values()])
    with file.open(first) as source:
        text = source.read(MANIFEST_BYTES + 1)
    try:
        found = Manifest.model_validate(json_value(text, MANIFEST_BOUNDS))
    except OutsideError as e:
        raise BackupError(f"The archive's manifest {e.clause}.") from None
    except ValidationError as e:
        where = ".".join(map(str, e.errors()[0]["loc"])) or "it is no JSON"
        raise BackupError(f"The archive's manifest cannot be read: {shown(where)}.") from None
    if found.format != FORMAT:
        raise BackupError(
            f"The archive is {shown(found.format)}, this version reads {FORMAT}: update Runcast."
        )
    _check_members(found, set(by_name))
    return found


def _check_entries(entries: Sequence[zipfile.ZipInfo]) -> None:
    for entry in entries:
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if entry.is_dir() or kind not in (0, stat.S_IFREG) or entry.flag_bits & 0x1:
            raise BackupError(f"The archive's {shown(entry.filename)} is no plain file.")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            # zipfile unpacks bzip2 and LZMA without a limit: 1 kB may fill the memory.
            raise BackupError(f"The archive's {shown(entry.filename)} is packed as no backup is.")


def _check_members(manifest: Manifest, names: set[str]) -> None:
    """Check that every member is named once and allowed, and that the total size is within the
    limit."""
    store = STORES.get(manifest.store.kind)
    listed = [m.name for m in manifest.members]
    for name in listed:
        if name != store and not is_kept(name):
            raise BackupError(f"The archive's {shown(name)} is nothing that a backup has.")
    if len(set(listed)) != len(listed) or set(listed) != names:
        odd = sorted(set(listed) ^ names)[:1] or ["twice the same name"]
        raise BackupError(f"The archive and its manifest do not agree: {shown(odd[0])}.")
    if store is not None and store not in names:
        raise BackupError(f"The archive lacks its store, {store}.")
    if manifest.num_bytes > MOST_BYTES:
        raise BackupError(f"The archive would unpack to more than {MOST_BYTES:,} bytes.")

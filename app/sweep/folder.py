"""The folder of a sweep: its manifest, its finished cells, and its results.

manifest.json         what is swept, with content hashes of it, of the tables and of the code
cells-0001.jsonl ...  one finished cell per line; each run appends to a new file and syncs it
results.parquet .csv  one row per cell, written when every cell is finished
lock                  held while a sweep runs; the system releases it, however the run ends

A line cut short by a kill counts as an unfinished cell. Nothing is rewritten in place.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import orjson
from filelock import FileLock, Timeout

from core.errors import ScenarioError, shown
from pricing.disk import sync_folder

SCHEMA = "runcast-sweep/1"
_OWN = {"lock", "manifest.json.new"}  # left by a kill before the manifest is in place

Place = tuple[Path, int]  # a file, and the offset of a line in it


class SweepFolder:
    """A sweep's folder, locked by this process; create it with `opened`."""

    def __init__(self, path: Path, prices: str) -> None:
        self.path = path
        self.prices = prices  # the price snapshot of cells that name none
        self.finished: dict[int, Place] = {}
        self.num_torn = 0  # unreadable lines
        self._parts = sorted(path.glob("cells-*.jsonl"))
        self._out: IO[bytes] | None = None

    def read_finished(self, num_cells: int) -> None:
        """Find out which cells are finished."""
        for part in self._parts:
            at = 0
            with part.open("rb") as lines:
                for line in lines:
                    number = _number(line)
                    if number is None or not 0 <= number < num_cells:
                        self.num_torn += 1
                    else:
                        self.finished.setdefault(number, (part, at))
                    at += len(line)

    def append(self, rows: Iterable[tuple[int, Mapping[str, Any]]]) -> None:
        """Append rows and sync them, so that neither a kill nor a power cut loses them."""
        whole = [(n, orjson.dumps({"cell": n, "row": row}) + b"\n") for n, row in rows]
        if self._out is None:
            last = int(self._parts[-1].stem.removeprefix("cells-")) if self._parts else 0
            part = self.path / f"cells-{last + 1:04}.jsonl"
            self._out = part.open("xb")
            self._parts.append(part)
            sync_folder(self.path)
        for number, line in whole:
            self.finished[number] = (self._parts[-1], self._out.tell())
            self._out.write(line)
        self._out.flush()
        os.fsync(self._out.fileno())

    def rows(self, numbers: Iterable[int]) -> Iterator[dict[str, Any]]:
        """The rows of finished cells, in the order of `numbers`."""
        opened: dict[Path, IO[bytes]] = {}
        try:
            for number in numbers:
                part, at = self.finished[number]
                if part not in opened:
                    opened[part] = part.open("rb")
                opened[part].seek(at)
                yield orjson.loads(opened[part].readline())["row"]
        finally:
            for file in opened.values():
                file.close()

    def close(self) -> None:
        if self._out is not None:
            self._out.close()


@contextmanager
def opened(path: Path, manifest: Mapping[str, Any]) -> Iterator[SweepFolder]:
    """Open the folder of this sweep, new or resumed; refuses another sweep or a second process."""
    path.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(path / "lock", timeout=0).acquire()
    except Timeout:
        raise ScenarioError(
            f"Another sweep is writing to {shown(str(path))}: wait for it, or give another --out."
        ) from None
    with lock:
        folder = SweepFolder(path, _begun_with(path, manifest)["prices"])
        folder.read_finished(manifest["num_cells"])
        try:
            yield folder
        finally:
            folder.close()


def _begun_with(path: Path, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """The manifest to use: this one if the sweep is new, else the one in the folder, so that its
    prices stay in use after a refresh. An error if the folder holds something else."""
    file, where = path / "manifest.json", shown(str(path))
    begun = any(path.glob("cells-*.jsonl"))
    if not file.exists():
        if {p.name for p in path.iterdir()} - _OWN:
            raise ScenarioError(f"{where} holds other files: give a new or empty folder as --out.")
        return _write_manifest(file, manifest)
    try:
        known = orjson.loads(file.read_bytes())
    except orjson.JSONDecodeError:
        known = None
    if not isinstance(known, dict) or known.get("schema") != SCHEMA:
        raise ScenarioError(f"{shown(str(file))} is not of a sweep: give another --out.")
    if known != manifest and not begun:  # the earlier run stopped before its first cell
        return _write_manifest(file, manifest)
    if known.get("sweep") != manifest["sweep"]:
        raise ScenarioError(
            f"{where} holds another sweep, of {known.get('num_cells')} cells: give another --out, "
            "or its file to resume it."
        )
    for key, what in (
        ("tables", "other tables (accelerators, fabrics, fitted fractions)"),
        ("code", "another version of Runcast or numpy"),
        ("price_books", "other rows of its price book, or on a day on which other rows count"),
    ):
        if known.get(key) != manifest[key]:
            raise ScenarioError(
                f"The sweep in {where} was begun with {what}, and one table of results must not "
                "mix two: give another --out, or resume it with what it was begun with."
            )
    return known


def _write_manifest(file: Path, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    write_whole(file, orjson.dumps(manifest, option=orjson.OPT_INDENT_2) + b"\n")
    return manifest


def write_whole(file: Path, content: bytes) -> None:
    """Write a file atomically: either all of it is there or none."""
    new = file.with_name(file.name + ".new")
    with new.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    put_in_place(new, file)


def put_in_place(new: Path, file: Path) -> None:
    """Rename a written file to its final name, and sync."""
    with new.open("rb") as written:
        os.fsync(written.fileno())
    new.replace(file)
    sync_folder(file.parent)


def _number(line: bytes) -> int | None:
    """The cell number of a line that was written completely."""
    if not line.endswith(b"\n"):
        return None
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("row"), dict):
        return None
    number = found.get("cell")
    return number if type(number) is int else None

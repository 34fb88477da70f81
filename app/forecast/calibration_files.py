"""Calibration results of this installation: one file each, named by the hash of its content.

<data>/calibrations/ID.json

A link holds only the id, so it means the same result on every installation that has it. The store
keeps an index for lists of results; planning needs only the files.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from app.forecast.calibration_origin import TITLE_MAX, AnyResult, Origin, origin_of
from app.forecast.machines import CUSTOM
from core.errors import RuncastError, ScenarioError, shown, unknown_sentence
from pricing.disk import prices_folder, write_atomically
from runners.calibration.result import ResultError, parse_result
from runners.imports.result import SCHEMA as IMPORTED
from runners.imports.result import parse_import
from runners.imports.text import ImportFileError

ID_CHARS = 16
MOST = 2_000
_ID = re.compile(rf"[0-9a-f]{{{ID_CHARS}}}")
# Inside a JSON string the quotes would be escaped, so other documents cannot match this.
_IS_IMPORT = re.compile(rb'"schema"\s*:\s*"' + re.escape(IMPORTED.encode()) + b'"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One calibration file and what it says. For a damaged file only `problem` is filled in."""

    id: str
    origin: Origin | None  # None: the file is damaged
    problem: str = ""
    note: str = ""

    @property
    def accelerator(self) -> str:
        """Canonical name; `custom` if the result names none; '' if the file is damaged."""
        return "" if self.origin is None else self.origin.accelerator

    @property
    def measured_on(self) -> dt.date | None:
        """The day of the measurement; None if it is unknown or the file is damaged."""
        return None if self.origin is None else self.origin.measured_on

    @property
    def label(self) -> str:
        """One line for lists: H100-80GB-SXM, node0, 2026-11-01 (0123abcd...)."""
        o = self.origin
        if o is None:
            return f"damaged ({self.id[:8]}...)"
        what = f"custom, {o.device[:TITLE_MAX]}" if o.accelerator == CUSTOM else o.accelerator
        return f"{what}, {o.where[:TITLE_MAX]}, {o.day} ({self.id[:8]}...)"


def folder() -> Path:
    """The folder of the results; it may not exist."""
    return prices_folder().with_name("calibrations")


def text_of(result: AnyResult) -> bytes:
    """The canonical text of a result; its hash is the id."""
    return result.model_dump_json(by_alias=True).encode()


def id_of(result: AnyResult) -> str:
    """The id of a result: equal numbers give equal ids on every installation."""
    return hashlib.sha256(text_of(result)).hexdigest()[:ID_CHARS]


def keep(result: AnyResult) -> str:
    """Write a result atomically and return its id. Writing an existing result again changes
    nothing."""
    name = id_of(result)
    if not has(name) and len(kept()) >= MOST:
        raise ScenarioError(f"There are {MOST:,} calibrations already: remove one first.")
    write_atomically(_path(name), text_of(result))
    return name


def kept() -> list[str]:
    """The ids of all results on this installation."""
    return sorted(p.stem for p in folder().glob("*.json") if _ID.fullmatch(p.stem))


def has(name: str) -> bool:
    """Whether a result with this id exists; never raises, whatever the id."""
    return bool(_ID.fullmatch(name)) and _path(name).is_file()


def parse_kept(content: bytes) -> AnyResult:
    """Parse a calib-result/1, or an import-result/1 if the content says so. Raises ResultError or
    ImportFileError."""
    return parse_import(content) if _IS_IMPORT.search(content) else parse_result(content)


def load(name: str) -> AnyResult:
    """The result with this id. Raises ScenarioError if it is unknown or damaged."""
    if not has(name):
        known = kept()
        if not known:
            raise ScenarioError(f"No calibration {shown(name)}: this server has none.")
        raise ScenarioError(unknown_sentence("calibration", name, known))
    try:
        found = parse_kept(_path(name).read_bytes())
    except (OSError, ResultError, ImportFileError) as e:
        raise ScenarioError(f"The calibration {name} is damaged: add it again. ({e})") from None
    if id_of(found) != name:
        raise ScenarioError(f"The calibration {name} is not what was added: add it again.")
    return found


def kept_of(name: str, note: str = "") -> Kept:
    """The file with this id; if it is damaged or missing, `problem` says why."""
    try:
        path = folder() / f"{name}.json"
        stat = path.stat()
        return _read(name, note, stat.st_mtime_ns, stat.st_size)
    except (OSError, RuncastError) as e:
        problem = str(e) if isinstance(e, RuncastError) else f"It cannot be read: {e.strerror}."
        return Kept(id=name, origin=None, problem=problem, note=note)


@lru_cache(maxsize=256)
def _read(name: str, note: str, changed_ns: int, size: int) -> Kept:
    """Cached reading: a file is read again only after it has changed."""
    return Kept(id=name, origin=origin_of(load(name)), note=note)


def id_label(name: str) -> str:
    """The label of an id in the form; an unknown id is shown as it is."""
    return kept_of(name).label if has(name) else name


def remove(name: str) -> None:
    """Delete a result, even a damaged one. Raises ScenarioError if the id is unknown."""
    if not has(name):
        load(name)  # raises with what is wrong with the id
    _path(name).unlink()


def _path(name: str) -> Path:
    return folder() / f"{name}.json"

"""Checks of the data: the store, calibrations, price books, and free disk space."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TypeVar

from app.forecast import calibrations
from app.operate.finding import Finding
from core.errors import RuncastError
from pricing.backup.make import data_folder
from pricing.book.files import book_names, load_book
from pricing.store.condition import Condition, condition

T = TypeVar("T")
LOW_BYTES, FULL_BYTES = 1_000_000_000, 64_000_000
SHOWN = 3


def look_at_store(now: datetime) -> Iterator[Finding]:
    """The store: kind, tables, size, integrity, and the number of saved scenarios."""
    found = condition()
    yield Finding(
        area="store",
        name=found.kind or "store",
        state="broken" if found.wrong else "ok",
        value=found.wrong or _store_value(found),
        todo=_store_todo(found),
        numbers={
            "kind": found.kind,
            "revision": found.revision or None,
            "newest_revision": found.newest_revision,
            "server_version": found.server_version or None,
            "size_bytes": found.size_bytes,
            "saved_scenarios": found.saved_scenarios,
        },
    )


def _store_value(found: Condition) -> str:
    if not found.exists:
        return f"{found.name}: no tables yet, they are made when something is first kept"
    size = "" if found.size_bytes is None else f", {found.size_bytes / 1e6:,.1f} MB"
    count = found.saved_scenarios
    saved = "" if count is None else f", saved scenarios: {count:,}"
    sound = ", integrity ok" if found.kind == "sqlite" else f", server {found.server_version}"
    return f"{found.name}: tables of {found.revision}{sound}{size}{saved}"


def _store_todo(found: Condition) -> str:
    if not found.wrong:
        return ""
    if "newer version" in found.wrong:
        return "Update this installation, or restore a backup of this version."
    if "damaged" in found.wrong or "not a database" in found.wrong:
        return "Stop the server and restore a backup: `runcast restore FILE --replace`."
    if found.kind == "sqlite":
        return "Let this user read and write the data folder, and see that its disk has room."
    return "See that the server runs, and what RUNCAST_DATABASE_URL names."


def look_at_files(now: datetime) -> Iterator[Finding]:
    """The data folder and its disk, calibrations with their ages, and price books."""
    yield _folder()
    yield _calibrations(now)
    yield _price_books()


def _folder() -> Finding:
    folder = data_folder()
    place = next(p for p in (folder, *folder.parents) if p.exists())
    free = shutil.disk_usage(place).free
    writable = os.access(place, os.W_OK | os.X_OK)
    todo = ""
    if not writable:
        todo = "This user may not write there: nothing can be refreshed or saved."
    elif free < LOW_BYTES:
        todo = "Make room: a full disk keeps what is there, and takes nothing new."
    return Finding(
        area="data",
        name="folder",
        state="broken" if not writable or free < FULL_BYTES else "warning" if todo else "ok",
        value=f"{folder}, {free / 1e9:,.1f} GB free"
        + ("" if folder.exists() else ", not made yet"),
        todo=todo,
        numbers={"free_bytes": free, "writable": writable},
    )


def _calibrations(now: datetime) -> Finding:
    rows = [calibrations.read(name) for name in calibrations.ids()]
    damaged = [c.id for c in rows if c.problem]
    ages = [max(0, (now.date() - c.measured_on).days) for c in rows if c.measured_on is not None]
    old = sum(age > calibrations.OLD_DAYS for age in ages)
    todo = _add_again(damaged)
    if old and not todo:
        todo = f"{old} older than {calibrations.OLD_DAYS} days: measure again, `runcast calibrate`."
    aged = f", {min(ages)} to {max(ages)} days old" if ages else ""
    return Finding(
        area="data",
        name="calibrations",
        state="warning" if todo else "ok",
        value=f"{len(rows):,}{aged}" if rows else "none",
        todo=todo,
        numbers={
            "count": len(rows),
            "newest_age_days": min(ages, default=None),
            "oldest_age_days": max(ages, default=None),
            "damaged": len(damaged),
        },
    )


def _price_books() -> Finding:
    names = book_names()
    _, damaged = _loaded(names, load_book)
    return Finding(
        area="data",
        name="price books",
        state="warning" if damaged else "ok",
        value=f"{len(names):,}" if names else "none",
        todo=_add_again(damaged),
        numbers={"count": len(names), "damaged": len(damaged)},
    )


def _loaded(names: Iterable[str], load: Callable[[str], T]) -> tuple[list[T], list[str]]:
    """What could be loaded, and the names of what is damaged."""
    found, damaged = list[T](), list[str]()
    for name in names:
        try:
            found.append(load(name))
        except RuncastError:
            damaged.append(name)
    return found, damaged


def _add_again(damaged: list[str]) -> str:
    return f"Damaged, add again: {', '.join(damaged[:SHOWN])}." if damaged else ""

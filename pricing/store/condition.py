"""Condition of the store, examined without changing it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import func, select, text

from pricing.store.engine import Store, StoreError, store_as_it_is
from pricing.store.models import ScenarioRow, table_of
from pricing.store.upgrade import known_revisions, revision_of

WRONG_SHOWN = 3  # findings of an integrity check that a sentence repeats


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Facts on the store for whoever runs a server."""

    kind: str  # sqlite, postgresql
    name: str  # of a file, or host and database: no user, no password
    exists: bool  # tables were made
    revision: str  # of its tables, '' for none yet
    newest_revision: str  # that this version makes
    server_version: str  # of PostgreSQL or of the SQLite library
    size_bytes: int | None
    saved_scenarios: int | None
    wrong: str  # a sentence if it cannot be used, is newer, or is damaged; '' if it is sound

    @property
    def is_sound(self) -> bool:
        return not self.wrong


def condition(
    *,
    folder: Path | None = None,
    environ: Mapping[str, str] | None = None,
    thorough: bool = True,
) -> Condition:
    """The condition of the store. `thorough` also reads all of it (SQLite) and counts its rows."""
    known = known_revisions()
    found: dict[str, object] = {
        "kind": "", "name": "", "exists": False, "revision": "", "newest_revision": known[0],
        "server_version": "", "size_bytes": None, "saved_scenarios": None, "wrong": "",
    }  # fmt: skip
    try:
        store = store_as_it_is(folder=folder, environ=environ)
        found |= {"kind": store.engine.dialect.name, "name": store.name}
        try:
            found |= _looked_at(store, known, thorough=thorough)
        finally:
            store.close()
    except StoreError as e:
        found["wrong"] = str(e)
    return Condition(**found)  # type: ignore[arg-type]


def _looked_at(store: Store, known: tuple[str, ...], *, thorough: bool) -> dict[str, object]:
    file = store.file
    if file is not None and not os.path.exists(file):
        return {"wrong": _cannot_be_made(file)}
    found: dict[str, object] = {}
    with store.reading() as connection:
        revision = revision_of(connection) or ""
        found |= {"exists": bool(revision), "revision": revision}
        version = "SELECT sqlite_version()" if file else "SHOW server_version"
        found["server_version"] = str(connection.execute(text(version)).scalar_one()).split()[0]
        if revision and revision not in known:
            return found | {
                "wrong": f"The store {store.name} was written by a newer version of Runcast (its "
                f"tables are {revision}, this version knows {known[0]}): update this installation."
            }
        if not thorough:
            return found
        if file is not None:
            found["size_bytes"] = os.path.getsize(file)
            statement = text(f"PRAGMA integrity_check({WRONG_SHOWN})")
            findings = [str(row[0]) for row in connection.execute(statement)]
            if findings != ["ok"]:
                return found | {
                    "wrong": f"The store {store.name} is damaged: {'; '.join(findings)}."
                }
        else:
            size = text("SELECT pg_database_size(current_database())")
            found["size_bytes"] = int(connection.execute(size).scalar_one())
        if revision == known[0]:
            counted = select(func.count()).select_from(table_of(ScenarioRow))
            found["saved_scenarios"] = int(connection.execute(counted).scalar_one())
    return found


def _cannot_be_made(file: Path) -> str:
    """Why a missing store cannot be created; '' if it can."""
    place = file.parent
    while not os.path.exists(place) and place != place.parent:
        place = place.parent
    if os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK):
        return ""
    return f"The store {file.name} cannot be made: its folder may not be written to."

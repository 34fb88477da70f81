"""Dump of the whole store to one file while it is in use, and its restore.

SQLite: its online backup, a consistent state of the database whatever is written meanwhile.
PostgreSQL: pg_dump and pg_restore in the custom format, in one transaction each, with the password
in the environment and not on the command line.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from sqlalchemy import inspect, text

from core.errors import shown
from pricing.store.engine import BUSY_S, Store, StoreError
from pricing.store.models import Base
from pricing.store.upgrade import revision_of

TOOL_S = 3600.0
LOCK_S = 60
REVISIONS = "alembic_version"
# Entries that pg_dump writes for our tables; other entries are not from a backup.
_KINDS = ("TABLE", "TABLE DATA", "CONSTRAINT", "FK CONSTRAINT", "INDEX", "COMMENT")
_ENTRY = re.compile(r"\d+; \d+ \d+ ([A-Z][A-Z ]*[A-Z]) \S+ (\S+)")


def tables() -> frozenset[str]:
    """Every table of the store."""
    return frozenset({*Base.metadata.tables, REVISIONS})


def has_rows(store: Store) -> bool:
    """Whether the store has any rows: a server creates empty tables at its start."""
    with store.reading() as connection:
        here = set(inspect(connection).get_table_names())
        existing = sorted(set(Base.metadata.tables) & here)
        return any(
            connection.execute(text(f"SELECT 1 FROM {name} LIMIT 1")).first() for name in existing
        )


# --- SQLite --------------------------------------------------------------------------------------


def dump_sqlite(store: Store, to: Path) -> str:
    """Copy a SQLite store that is in use to a file; returns the revision of its tables."""
    if store.file is None:
        raise StoreError(f"The store {store.name} is no file.")
    os.close(os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with (
            closing(sqlite3.connect(f"{store.file.as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(to)) as copy,
        ):
            source.execute(f"PRAGMA busy_timeout={int(BUSY_S * 1000)}")
            source.backup(copy)  # in one step: a write would restart the copy
            copy.execute("PRAGMA journal_mode=DELETE")  # one file, without a log
            return _revision(copy)
    except sqlite3.Error as e:
        raise StoreError(f"The store {store.name} cannot be copied: {e}.") from None


def load_sqlite(store: Store, file: Path) -> None:
    """Replace a SQLite store, which may be in use, by a copied file, in one transaction."""
    if store.file is None:
        raise StoreError(f"The store {store.name} is no file.")
    try:
        with (
            closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(store.file, timeout=BUSY_S)) as place,
        ):
            place.execute("PRAGMA synchronous=FULL")
            source.backup(place)  # all pages in one step
    except sqlite3.Error as e:
        raise StoreError(f"The store {store.name} cannot be replaced: {e}.") from None


def check_sqlite(file: Path) -> str:
    """Check that a copied file is a sound store of ours; returns the revision of its tables."""
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as found:
            found.execute("PRAGMA trusted_schema=OFF")
            kinds = set(found.execute("SELECT type, tbl_name FROM sqlite_master"))
            if odd := sorted(n for kind, n in kinds if kind not in ("table", "index")):
                raise StoreError(f"The archive's store has a trigger or view of {shown(odd[0])}.")
            if odd := sorted({n for _, n in kinds} - tables()):
                raise StoreError(f"The archive's store has a table {shown(odd[0])}, not of ours.")
            findings = [str(row[0]) for row in found.execute("PRAGMA integrity_check(3)")]
            if findings != ["ok"]:
                raise StoreError(f"The archive's store is damaged: {'; '.join(findings)[:200]}.")
            return _revision(found)
    except sqlite3.Error as e:
        raise StoreError(f"The archive's store cannot be read: {e}.") from None


def _revision(connection: sqlite3.Connection) -> str:
    row = connection.execute(f"SELECT version_num FROM {REVISIONS}").fetchone()
    return str(row[0]) if row else ""


# --- PostgreSQL ----------------------------------------------------------------------------------


def dump_postgresql(store: Store, to: Path) -> tuple[str, str]:
    """Dump the tables of a PostgreSQL store; returns their revision and the server's version."""
    version = _server_version(store)
    tool = _tool("pg_dump", version)
    with store.reading() as connection:
        revision = revision_of(connection) or ""
        here = sorted(tables() & set(inspect(connection).get_table_names()))
    named = [f"--table={name}" for name in here]
    arguments = ["--format=custom", "--no-owner", "--no-acl", *named, f"--file={to}"]
    _run(store, tool, arguments)
    to.chmod(0o600)
    return revision, version


def restore_postgresql(store: Store, file: Path) -> None:
    """Replace the tables by a dump, completely or not at all."""
    tool = _tool("pg_restore", _server_version(store))
    has = _tables_of(_run(None, tool, ["--list", str(file)]))
    with store.reading() as connection:
        here = tables() & set(inspect(connection).get_table_names())
    if more := sorted(here - has):
        raise StoreError(
            f"The store {store.name} has a table {more[0]}, which the archive is too old for: "
            "restore into an empty database."
        )
    database = store.url.database or store.url.username or ""
    # --clean inside one transaction: readers see the old tables or the new.
    _run(
        store,
        tool,
        ["--single-transaction", "--exit-on-error", "--clean", "--if-exists", "--no-owner",
         "--no-acl", f"--dbname={database}", str(file)],
        options=f"-c lock_timeout={LOCK_S}s",  # a hanging reader must not block this
    )  # fmt: skip


def _tables_of(listing: str) -> set[str]:
    """The tables of a dump; anything else, which would run in the database, is refused."""
    known, found = tables(), set[str]()
    for line in listing.splitlines():
        if not line or line.startswith(";"):
            continue
        entry = _ENTRY.match(line)
        if entry is None or entry[1] not in _KINDS:
            raise StoreError(f"The archive's store holds {shown(line)}, which no backup has.")
        if entry[1] in ("TABLE", "TABLE DATA") and entry[2] not in known:
            raise StoreError(f"The archive's store has a table {shown(entry[2])}, not of ours.")
        if entry[1] == "TABLE":
            found.add(entry[2])
    return found


def _server_version(store: Store) -> str:
    with store.reading() as connection:
        return str(connection.execute(text("SHOW server_version")).scalar_one()).split()[0]


def _tool(name: str, server_version: str) -> str:
    """Path of pg_dump or pg_restore, at least as new as the server, which an older one refuses."""
    found = shutil.which(name)
    server = _major(server_version)
    install = f"apt-get install postgresql-client-{server}, or put its folder on PATH"
    if found is None:
        raise StoreError(f"{name} is not here, and a PostgreSQL store needs it: {install}.")
    version = subprocess.run(
        [found, "--version"], capture_output=True, text=True, timeout=30, check=False
    ).stdout
    if _major(version) < server:
        raise StoreError(
            f"{name} is of PostgreSQL {_major(version)} and the server of {server}: {install}."
        )
    return found


def _major(version: str) -> int:
    number = re.search(r"(\d+)(?:\.\d+)*", version)
    return int(number[1]) if number else 0


def _run(store: Store | None, tool: str, arguments: Sequence[str], *, options: str = "") -> str:
    """Run a tool of PostgreSQL on the store; returns its output. Errors never show a password."""
    done = subprocess.run(
        [tool, *arguments],
        env={**_environment(store, options), "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=TOOL_S,
        check=False,
    )
    if done.returncode == 0:
        return done.stdout
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    reason = next((line for line in lines if "error" in line.lower()), (lines or ["no reason"])[0])
    password = store.url.password if store else None
    if isinstance(password, str) and password:
        reason = reason.replace(password, "***")
    raise StoreError(f"{Path(tool).name} failed: {shown(reason[:200])[1:-1]}.")


def _environment(store: Store | None, options: str) -> dict[str, str]:
    """The variables of libpq, which keep the password off the command line."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
    if store is None:
        return environ
    url = store.url
    query = {k: v for k, v in url.query.items() if isinstance(v, str)}
    given = {
        "PGHOST": url.host or query.get("host"),
        "PGPORT": str(url.port) if url.port else query.get("port"),
        "PGUSER": url.username or query.get("user"),
        "PGPASSWORD": str(url.password) if url.password else query.get("password"),
        "PGDATABASE": url.database,
        "PGSSLMODE": query.get("sslmode"),
        "PGSSLROOTCERT": query.get("sslrootcert"),
        "PGSSLCERT": query.get("sslcert"),
        "PGSSLKEY": query.get("sslkey"),
        "PGOPTIONS": " ".join(filter(None, (query.get("options"), options))),
        "PGCONNECT_TIMEOUT": "5",
    }
    return environ | {k: v for k, v in given.items() if v}

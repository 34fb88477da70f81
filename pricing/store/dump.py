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
from contextlib import closing
from pathlib import Path

from sqlalchemy import inspect, text

from core.errors import shown
from pricing.store.engine import BUSY_S, CONNECT_S, Store, StoreError
from pricing.store.models import Base
from pricing.store.upgrade import revision_of

TOOL_S = 3600.0
LOCK_S = 60
REVISIONS = "alembic_version"
TABLES = frozenset({*Base.metadata.tables, REVISIONS})
# Entries that pg_dump writes for our tables; other entries are not from a backup.
_KINDS = ("TABLE", "TABLE DATA", "CONSTRAINT", "FK CONSTRAINT", "INDEX", "COMMENT")
_ENTRY = re.compile(r"\d+; \d+ \d+ ([A-Z][A-Z ]*[A-Z]) \S+ (\S+)")


def has_rows(store: Store) -> bool:
    """Whether the store has any rows: a server creates empty tables at its start."""
    with store.reading() as connection:
        existing = sorted(set(Base.metadata.tables) & set(inspect(connection).get_table_names()))
        return any(
            connection.execute(text(f"SELECT 1 FROM {name} LIMIT 1")).first() for name in existing
        )


# --- SQLite --------------------------------------------------------------------------------------


def dump_sqlite(store: Store, file: Path) -> str:
    """Copy a SQLite store that is in use to a file; returns the revision of its tables."""
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        _copy_sqlite(Path(store.url.database or ""), file)
        with closing(sqlite3.connect(file)) as copy:
            copy.execute("PRAGMA journal_mode=DELETE")  # one file, without a log
            return _revision(copy)
    except sqlite3.Error as e:
        raise StoreError(f"The store {store.name} cannot be copied: {e}.") from None


def load_sqlite(store: Store, file: Path) -> None:
    """Replace a SQLite store, which may be in use, by a copied file, in one transaction."""
    try:
        _copy_sqlite(file, Path(store.url.database or ""))
    except sqlite3.Error as e:
        raise StoreError(f"The store {store.name} cannot be replaced: {e}.") from None


def _copy_sqlite(source: Path, target: Path) -> None:
    """Copy all pages in one step, because a write by another process would restart the copy."""
    with (
        closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True, timeout=BUSY_S)) as old,
        closing(sqlite3.connect(target, timeout=BUSY_S)) as new,
    ):
        new.execute("PRAGMA synchronous=FULL")
        old.backup(new)


def check_sqlite(file: Path) -> str:
    """Check that a copied file is a sound store of ours; returns the revision of its tables."""
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
            connection.execute("PRAGMA trusted_schema=OFF")
            entries = set(connection.execute("SELECT type, tbl_name FROM sqlite_master"))
            if odd := sorted(n for kind, n in entries if kind not in ("table", "index")):
                raise StoreError(f"The archive's store has a trigger or view of {shown(odd[0])}.")
            if odd := sorted({n for _, n in entries} - TABLES):
                raise StoreError(f"The archive's store has a table {shown(odd[0])}, not of ours.")
            findings = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(3)")]
            if findings != ["ok"]:
                raise StoreError(f"The archive's store is damaged: {'; '.join(findings)[:200]}.")
            return _revision(connection)
    except sqlite3.Error as e:
        raise StoreError(f"The archive's store cannot be read: {e}.") from None


def _revision(connection: sqlite3.Connection) -> str:
    row = connection.execute(f"SELECT version_num FROM {REVISIONS}").fetchone()
    return str(row[0]) if row else ""


# --- PostgreSQL ----------------------------------------------------------------------------------


def dump_postgresql(store: Store, file: Path) -> tuple[str, str]:
    """Dump the tables of a PostgreSQL store; returns their revision and the server's version."""
    tool, version = _tool("pg_dump", store)
    with store.reading() as connection:
        revision = revision_of(connection) or ""
        names = sorted(TABLES & set(inspect(connection).get_table_names()))
    tables = [f"--table={name}" for name in names]
    _run(tool, "--format=custom", "--no-owner", "--no-acl", *tables, f"--file={file}", store=store)
    file.chmod(0o600)
    return revision, version


def restore_postgresql(store: Store, file: Path) -> None:
    """Replace the tables by a dump, completely or not at all."""
    tool, _ = _tool("pg_restore", store)
    archived = _tables_in(_run(tool, "--list", str(file)))
    with store.reading() as connection:
        existing = TABLES & set(inspect(connection).get_table_names())
    if more := sorted(existing - archived):
        raise StoreError(
            f"The store {store.name} has a table {more[0]}, which the archive is too old for: "
            "restore into an empty database."
        )
    # --clean inside one transaction: readers see the old tables or the new.
    arguments = "--single-transaction --exit-on-error --clean --if-exists --no-owner --no-acl"
    _run(tool, *arguments.split(), str(file), store=store)


def _tables_in(listing: str) -> set[str]:
    """The tables of a dump; anything else, which would run in the database, is refused."""
    tables = set[str]()
    for line in listing.splitlines():
        if not line or line.startswith(";"):
            continue
        entry = _ENTRY.match(line)
        if entry is None or entry[1] not in _KINDS:
            raise StoreError(f"The archive's store holds {shown(line)}, which no backup has.")
        if entry[1] in ("TABLE", "TABLE DATA") and entry[2] not in TABLES:
            raise StoreError(f"The archive's store has a table {shown(entry[2])}, not of ours.")
        if entry[1] == "TABLE":
            tables.add(entry[2])
    return tables


def _tool(name: str, store: Store) -> tuple[str, str]:
    """Path of pg_dump or pg_restore and version of the server, which refuses an older tool."""
    with store.reading() as connection:
        version = str(connection.execute(text("SHOW server_version")).scalar_one()).split()[0]
    server = _major(version)
    install = f"apt-get install postgresql-client-{server}, or put its folder on PATH"
    path = shutil.which(name)
    if path is None:
        raise StoreError(f"{name} is not here, and a PostgreSQL store needs it: {install}.")
    if (major := _major(_run(path, "--version"))) < server:
        raise StoreError(f"{name} is of PostgreSQL {major} and the server of {server}: {install}.")
    return path, version


def _major(version: str) -> int:
    number = re.search(r"(\d+)(?:\.\d+)*", version)
    return int(number[1]) if number else 0


def _run(tool: str, *arguments: str, store: Store | None = None) -> str:
    """Run a tool of PostgreSQL on the store; returns its output. Errors never show a password."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("PG")} | {"LC_ALL": "C"}
    password = ""
    if store is not None:
        address, password = _address(store)
        arguments = (*arguments, f"--dbname={address}")
        environ["PGPASSWORD"] = password
    done = subprocess.run(
        [tool, *arguments],
        env=environ,
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
    if password:
        reason = reason.replace(password, "***")
    raise StoreError(f"{Path(tool).name} failed: {shown(reason[:200])[1:-1]}.")


def _address(store: Store) -> tuple[str, str]:
    """The store's libpq connection string without its password, and the password."""
    from psycopg.conninfo import make_conninfo

    url = store.url
    settings = {**url.translate_connect_args(username="user", database="dbname"), **url.query}
    password = str(settings.pop("password", None) or "")
    settings.pop("sslpassword", None)
    options = f"{settings.pop('options', '')} -c lock_timeout={LOCK_S}s"  # of a hanging reader
    address = make_conninfo(**settings, options=options, connect_timeout=CONNECT_S)
    return address, password

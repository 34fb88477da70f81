"""Open the store: SQLite in the folder of prices, or the database of RUNCAST_DATABASE_URL.

Every failure is a `StoreError` of one sentence without a password. Planning does not need the
store: callers show the sentence and continue.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from core.errors import RuncastError, not_installed, shown
from pricing.disk import prices_folder

DATABASE_URL = "RUNCAST_DATABASE_URL"
STORE_FILE = "store.sqlite"
BUSY_S = 5.0  # that a writer waits for another
CONNECT_S = 5
_POSTGRESQL = ("postgresql", "postgres", "postgresql+psycopg")
_DAMAGED = ("malformed", "not a database")
ROOM_BYTES = 2**17  # for the index of the log and some of its pages
_BUSY = "another process writes to it, and did not end in time"
_WRITES = {"runcast_writes": True}
# Limits of one transaction: a lost machine must not block the others.
_SHARED_LIMITS = ("lock_timeout = '10s'", "idle_in_transaction_session_timeout = '60s'")


class StoreError(RuncastError):
    """The store cannot be used now; the sentence is the reason, never with a password."""


class StoreBusyError(StoreError):
    """Another process holds the lock for which this one waited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """An open store. Its tables are those of this version."""

    engine: Engine
    name: str  # of a file, or host and database: no user, no password
    url: URL

    @property
    def is_shared(self) -> bool:
        """Whether several machines may use the store, so that a lock file on one of them is not
        enough."""
        return self.engine.dialect.name != "sqlite"

    @property
    def file(self) -> Path | None:
        """Path of a SQLite store; None for a server."""
        return None if self.is_shared else Path(self.url.database or "")

    def close(self) -> None:
        """Close its connections; later calls open new ones."""
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one state of the store during the block."""
        with _as_sentences(self.name, self.url), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection whose changes are all committed at the end of the block, or none of them."""
        with _as_sentences(self.name, self.url), self.engine.connect() as connection:
            chosen = connection.execution_options(**_WRITES)
            with chosen.begin():
                if self.is_shared:
                    for setting in _SHARED_LIMITS:
                        chosen.exec_driver_sql(f"SET LOCAL {setting}")
                yield chosen


def store_as_it_is(
    *, folder: Path | None = None, environ: Mapping[str, str] | None = None
) -> Store:
    """The store of this installation, nothing made or brought forward: to examine it, to copy it,
    to put it back.

    Connecting to a SQLite `file` that does not exist creates an empty one.
    """
    return store_at(url_of(folder=folder, environ=environ))


def url_of(*, folder: Path | None = None, environ: Mapping[str, str] | None = None) -> URL:
    """Where the store is. `folder` is that of the prices; RUNCAST_DATABASE_URL goes before it."""
    environ = os.environ if environ is None else environ
    return _url(
        environ.get(DATABASE_URL, "").strip(), prices_folder() if folder is None else folder
    )


def store_at(url: URL) -> Store:
    """A store that is not connected yet."""
    return Store(engine=_engine(url), name=_name(url), url=url)


def _engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        settings = {
            "connect_timeout": CONNECT_S,
            "tcp_user_timeout": 15_000,  # ms, for a server that does not answer
            "application_name": "runcast",
        }
        try:
            return create_engine(url, pool_pre_ping=True, pool_size=2, connect_args=settings)
        except ModuleNotFoundError:
            raise not_installed("psycopg", "postgres") from None
    # A file opens in a third of a millisecond, so no connection is kept that a fork could share.
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": BUSY_S})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, record: object) -> None:
    """WAL, so that readers and a writer do not wait for each other; FULL, for power cuts."""
    connection.isolation_level = None  # this module issues BEGIN itself, also before a CREATE TABLE
    deadline = time.monotonic() + BUSY_S
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as e:
            # The busy timeout does not cover two processes that change it at once.
            if "locked" not in str(e) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")


def _begin_sqlite(connection: Connection) -> None:
    """A writer takes its lock at once: a reader that becomes a writer may be refused."""
    writes = connection.get_execution_options().get("runcast_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _url(text: str, folder: Path) -> URL:
    """The database address of the environment; a StoreError for a bad one does not repeat it."""
    if not text:
        return URL.create("sqlite", database=str((folder / STORE_FILE).absolute()))
    means = "sqlite:///FILE or postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
    try:
        url = make_url(text)
        kind = url.drivername
    except (ArgumentError, ValueError):
        raise StoreError(f"{DATABASE_URL} is no address like {means}.") from None
    if kind in _POSTGRESQL:
        return url.set(drivername="postgresql+psycopg")
    if kind == "sqlite" and url.database and url.database != ":memory:":
        return url.set(database=str(Path(url.database).expanduser().absolute()))
    raise StoreError(f"{DATABASE_URL} names a {shown(kind)} database: allowed is {means}.")


def _name(url: URL) -> str:
    if url.get_backend_name() == "sqlite":
        return shown(Path(url.database or "").name)
    host = url.host or url.query.get("host") or "this machine"
    port = f":{url.port}" if url.port else ""
    return f"{shown(url.database or url.username or '')} on {host}{port}"


@contextmanager
def _as_sentences(name: str, url: URL) -> Iterator[None]:
    """Turn errors of drivers into StoreError."""
    try:
        yield
    except SQLAlchemyError as e:
        reason = _reason(e, url)
        kind = StoreBusyError if reason == _BUSY else StoreError
        raise kind(f"The store {name} cannot be used: {reason}.") from None


def _reason(error: SQLAlchemyError, url: URL) -> str:
    """The first line of a driver's error, without any password."""
    cause: Any = getattr(error, "orig", None) or error
    text = " ".join(str(cause).split("\n")[0].split()) or type(cause).__name__
    secrets = [url.password, *(v for k, v in url.query.items() if "pass" in k.lower())]
    for secret in secrets:
        if isinstance(secret, str) and secret:
            text = text.replace(secret, "***")
    if "locked" in text or "lock timeout" in text:
        return _BUSY
    if "disk is full" in text or ("disk I/O error" in text and _is_full(url)):
        return "the disk is full"
    if any(said in text for said in _DAMAGED):
        todo = "restore a backup (`runcast restore`) or move it away"
        return f"it is damaged, so {todo}: {lowered(text)}"
    if "readonly database" in text:
        return "this process may read it and not write it"
    return lowered(text[:200].rstrip(". "))


def _is_full(url: URL) -> bool:
    """Whether SQLite has no disk space even for reading."""
    try:
        left = os.statvfs(Path(url.database or "").parent)
    except OSError:
        return False
    return left.f_bavail * left.f_frsize < ROOM_BYTES


def lowered(text: str | None) -> str:
    text = text or "unknown error"
    return text[0].lower() + text[1:]

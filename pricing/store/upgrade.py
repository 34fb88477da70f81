"""Upgrade the tables of a store to those of this version, never back.

Of two processes that start at once, the first holds the lock of the database during the upgrade,
and the second then finds nothing to do. It is one transaction, so a process that is killed leaves
the old tables.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from pricing.store.engine import Store, StoreError

MIGRATIONS = Path(__file__).with_name("migrations")
_LOCK = 7_203_114_206  # any number, for the migrations of this product


def scripts() -> ScriptDirectory:
    """The migrations of this version."""
    return ScriptDirectory(str(MIGRATIONS), version_locations=[str(MIGRATIONS)])


def known_revisions() -> tuple[str, ...]:
    """The revisions that this version can upgrade, its own first."""
    return tuple(script.revision for script in scripts().walk_revisions())


def revision_of(connection: Connection) -> str | None:
    """The revision of the existing tables; None without tables."""
    return MigrationContext.configure(connection).get_current_revision()


def upgrade(store: Store) -> None:
    """Create or upgrade the tables; `StoreError` if a newer version wrote them."""
    known = scripts()
    head = known.get_current_head()
    with store.reading() as connection:
        if revision_of(connection) == head:
            return
    with store.writing() as connection:
        if store.is_shared:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        current = revision_of(connection)
        if current is not None and current not in known_revisions():
            raise StoreError(
                f"The store {store.name} was written by a newer version of Runcast (its tables "
                f"are {current}, this version knows {head}): update this installation."
            )
        _run(connection, known)


def _run(connection: Connection, known: ScriptDirectory) -> None:
    def forward(revision: Any, context: Any) -> Any:
        return known._upgrade_revs("head", revision)

    with EnvironmentContext(Config(), known, fn=forward) as environment:
        environment.configure(connection=connection)
        environment.run_migrations()

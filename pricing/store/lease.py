"""Lease of the store: the right of one refresh to write, with a fencing token.

The lock file of pricing/lease.py excludes a second refresh on one file system. Replicas that share
a PostgreSQL and no folder are excluded here: a row with a token, a holder and a time at which the
right ends unless it is renewed. The token only rises, and every write checks it inside its own
transaction, so a process that slept past its term, or was cut off, writes nothing.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, func, literal_column, select
from sqlalchemy.dialects import postgresql, sqlite

from pricing.lease import LeaseError
from pricing.store.engine import Store, StoreError
from pricing.store.models import LeaseRow, table_of

REFRESH = "refresh"
TERM_S = 60.0  # after which a holder that did not renew has lost it
_LEASES = table_of(LeaseRow)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLease:
    """The right to write, until another process takes it over."""

    store: Store
    token: int
    term_s: float

    def renew(self) -> None:
        """Renew it for another term; `LeaseError` if another process has it."""
        with self.store.writing() as connection:
            self._hold(connection)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction of the holder, during which the lease cannot be taken over.

        `LeaseError`, with nothing written, if it has been taken over.
        """
        with self.store.writing() as connection:
            self._hold(connection)
            yield connection

    def _hold(self, connection: Connection) -> None:
        """Renew the row, which locks it. After its term another process may be about to take it,
        but has not while the token is ours."""
        renewed = connection.execute(
            _LEASES.update()
            .where(_LEASES.c.name == REFRESH, _LEASES.c.token == self.token)
            .values(expires_at=_after(self.store, self.term_s))
        )
        if renewed.rowcount != 1:
            raise LeaseError("Another refresh has begun meanwhile: this one publishes nothing.")


@contextmanager
def store_lease(store: Store, *, term_s: float | None = None) -> Iterator[StoreLease]:
    """Hold the store for one refresh, renewed by a thread; LeaseError names the present holder.

    In SQLite the lock file has already shown that the last holder is gone: it is taken over.
    """
    term_s = TERM_S if term_s is None else term_s
    held = StoreLease(store=store, token=_taken(store, term_s), term_s=term_s)
    ended = threading.Event()
    renewing = threading.Thread(target=_renew, args=(held, ended), daemon=True)
    if store.is_shared:
        renewing.start()
    try:
        yield held
    finally:
        ended.set()
        if store.is_shared:
            renewing.join()
            with suppress(StoreError):  # then its term ends
                _give_back(held)


def _taken(store: Store, term_s: float) -> int:
    """The token of a lease that was free, has ended, or (SQLite) whose holder is gone."""
    insert = (postgresql if store.is_shared else sqlite).insert(_LEASES)
    values = {
        "token": 1,
        "holder": f"process {os.getpid()} on {socket.gethostname()}",
        "expires_at": _after(store, term_s),
    }
    taken = insert.values(name=REFRESH, **values).on_conflict_do_update(
        index_elements=["name"],
        set_=values | {"token": _LEASES.c.token + 1},
        where=_LEASES.c.expires_at <= func.now() if store.is_shared else None,
    )
    with store.writing() as connection:
        token = connection.execute(taken.returning(_LEASES.c.token)).scalar_one_or_none()
        if token is None:
            holder = connection.execute(
                select(_LEASES.c.holder).where(_LEASES.c.name == REFRESH)
            ).scalar_one_or_none()
            raise LeaseError(f"Another refresh works ({holder}).")
    return int(token)


def _renew(held: StoreLease, ended: threading.Event) -> None:
    """Renew until it ends or is lost, which the next write finds out."""
    while not ended.wait(held.term_s / 4):
        try:
            held.renew()
        except LeaseError:
            return
        except StoreError:
            continue  # it may answer again before the term is over


def _give_back(held: StoreLease) -> None:
    """End the term, so that the next refresh need not wait for it; the token stays."""
    with held.store.writing() as connection:
        connection.execute(
            _LEASES.update()
            .where(_LEASES.c.name == REFRESH, _LEASES.c.token == held.token)
            .values(expires_at=_after(held.store, 0.0))
        )


def _after(store: Store, seconds: float) -> ColumnElement[object]:
    """A time by the clock of the database, since clocks of clients may differ."""
    if store.is_shared:
        # Not now(), which is when the transaction began.
        return literal_column(f"clock_timestamp() + interval '{float(seconds)} seconds'")
    return func.datetime("now", f"{float(seconds):+} seconds")

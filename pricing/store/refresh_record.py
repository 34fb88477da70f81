"""The store during one refresh, whose failures never keep prices from being published.

The published prices are the files. They are written while the lease of the store is locked in a
transaction, so a refresh that lost it publishes nothing; this transaction then records the run. A
process that dies in between leaves the store one refresh behind, which the next refresh records
from the files before it begins.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pricing.judgement import Quarantined, Released
from pricing.lease import LeaseError
from pricing.series import sku_of
from pricing.source_state import SourceState, State, last_good, read_quarantine
from pricing.store.engine import DATABASE_URL, StoreBusyError, StoreError
from pricing.store.lease import StoreLease, store_lease
from pricing.store.opening import open_store
from pricing.store.quarantine import released
from pricing.store.recording import RunFound, SourceFound, knows, record


@dataclass(slots=True, kw_only=True)
class Memory:
    """The store, or the reason why there is none."""

    lease: StoreLease | None = None
    sentence: str = ""  # why something was not recorded; '' if everything was

    def released(self) -> Released:
        """Released prices; none while the store is unavailable."""
        if self.lease is not None:
            try:
                return released(self.lease.store)
            except StoreError as e:
                self.sentence = str(e)
        return {}

    def catch_up(self, state: State, folder: Path) -> None:
        """Record a published refresh that is not recorded yet, because its process was killed or
        the store could not be used."""
        if self.lease is None or not state.published_at:
            return
        published_at = datetime.fromisoformat(state.published_at)
        try:
            with self.lease.writing() as connection:
                if not knows(connection, state.snapshot_id, published_at):
                    record(connection, _recovered(state, published_at, self.lease.token, folder))
        except StoreError as e:
            self.sentence = str(e)

    def publish(self, write_files: Callable[[], None], run: Callable[[int], RunFound]) -> None:
        """Write the files, then the run. With `LeaseError`, when the lease is lost, neither is
        written."""
        written = False
        if self.lease is not None:
            try:
                with self.lease.writing() as connection:
                    write_files()
                    written = True
                    record(connection, run(self.lease.token))
            except StoreError as e:
                self.sentence = str(e)
        if not written:
            write_files()


@contextmanager
def memory(folder: Path, environ: Mapping[str, str]) -> Iterator[Memory]:
    """The store of these prices for one refresh; `LeaseError` if another refresh holds it."""
    found = Memory()
    with ExitStack() as stack:
        try:
            store = open_store(folder=folder, environ=environ)
            found.lease = stack.enter_context(store_lease(store))
        except StoreBusyError as e:
            if environ.get(DATABASE_URL):
                raise LeaseError("Another refresh works, and is just publishing.") from None
            found.sentence = str(e)
        except StoreError as e:
            found.sentence = str(e)
        yield found


def _recovered(state: State, published_at: datetime, token: int, folder: Path) -> RunFound:
    """The last refresh that published, reconstructed from the files."""
    held = read_quarantine(folder)
    sources = [
        _of_files(state, record, published_at, held, folder)
        for record in state.sources.values()
        if record.attempted_at == state.published_at
    ]
    return RunFound(
        token=token,
        began_at=published_at,
        ended_at=published_at,
        outcome="recovered",
        published=True,
        snapshot_id=state.snapshot_id,
        offers=sum(s.rows for s in sources),
        seconds=0.0,
        host=socket.gethostname(),
        sources=sources,
        quarantined=held,
    )


def _of_files(
    state: State,
    record: SourceState,
    at: datetime,
    held: Sequence[Quarantined],
    folder: Path,
) -> SourceFound:
    """One source of a refresh, from its files. Old rows that stayed are those of places that are
    held back, and rows of an earlier day in a failed part."""
    failed = record.succeeded_at != state.published_at
    in_part = bool(record.sentence) and not failed
    rows = () if failed else last_good(state, record.name, folder)
    waiting = {q.sku for q in held if q.source == record.name}
    newest = max((o.observed_at for o in rows), default="")
    kept = [o for o in rows if sku_of(o) in waiting or (in_part and o.observed_at < newest)]
    old = set(kept)
    return SourceFound(
        source=record.name,
        status="failed" if failed else "in part" if in_part else "refreshed",
        at=at,
        rows=record.rows,
        quarantined=record.quarantined,
        seconds=record.seconds,
        sentence=record.sentence,
        seen=[o for o in rows if o not in old],
        kept=kept,
    )

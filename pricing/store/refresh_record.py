"""The store during one refresh: it is asked and told, and never in the way of publishing.

The files are the truth of what is published. They are written while the store's lease is locked in
a transaction, so a refresh that lost it publishes nothing; the same transaction then takes the run
down. A process that dies between the two leaves the store one refresh behind, which the next one
writes down from the files before it begins.
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
    """The store, or why there is none."""

    lease: StoreLease | None = None
    sentence: str = ""  # why something was not written down; '' when all was

    def released(self) -> Released:
        """What a person has released; nothing while the store cannot be asked."""
        if self.lease is not None:
            try:
                return released(self.lease.store)
            except StoreError as e:
                self.sentence = str(e)
        return {}

    def catch_up(self, state: State, folder: Path) -> None:
        """Write down what was published and not yet written: the process was killed, or the store
        could not be used then."""
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
        """Write the files, then the run. `LeaseError` when the lease is lost: then neither."""
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
    """The store of these prices for one refresh; `LeaseError` when another refresh holds it."""
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
    """The last refresh that published, as the files tell of it."""
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
    """One source of it. Which rows are old ones that stayed: those of places that are held back,
    and in a part that failed those of an earlier day."""
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

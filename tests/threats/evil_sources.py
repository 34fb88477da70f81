"""Price sources whose reading does harm, for processes that are to end them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from core.machine.offer import Offer
from pricing.fetch.session import Session
from tests.made_up import plans


def honest(session: Session) -> Iterator[Offer]:
    """One price in thirty regions, at once."""
    for i in range(30):
        yield plans.offer(
            region=f"region-{i}", scale_out_gbit_per_s=None, source=session.source,
            observed_at=session.today.isoformat(),
        )  # fmt: skip


def endless(session: Session) -> Iterator[Offer]:
    """One call of C that never returns and looks at no clock and no signal. The number of its
    process is in the file that the environment names."""
    if path := session.environ.get("PROCESS"):
        Path(path).write_text(str(os.getpid()))
    sum(itertools.repeat(0))
    return honest(session)


def hungry(session: Session) -> Iterator[Offer]:
    """All the memory there is."""
    held = [b"x"]
    while held:
        held.append(b"x" * 2**24)
    return honest(session)


def crashing(session: Session) -> Iterator[Offer]:
    """What a fault of a C library does."""
    os.abort()


def faulty(session: Session) -> Iterator[Offer]:
    """A fault of our own."""
    raise KeyError("\x1b]0;owned\x07")

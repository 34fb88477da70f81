"""Whether this installation can answer: its tables, its prices, its store.

Used by /readyz of app/server.py and by `runcast doctor --ready`. Each check is one sentence, and
contains no path of the machine, user or password.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from core.errors import RuncastError
from hardware import facts
from hardware.efficiency import stacks
from pricing.offers import age_days, snapshot
from pricing.store.condition import condition

KEPT_S = 2.0  # a flood of requests is checked once


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One condition for sending requests to this server."""

    name: str
    ok: bool
    sentence: str
    numbers: dict[str, float | str]


def checks() -> list[Check]:
    """Check the tables, prices and store now."""
    named: tuple[tuple[str, Callable[[], Check]], ...] = (
        ("tables", _tables),
        ("prices", _prices),
        ("store", _store),
    )
    return [_looked_at(name, look) for name, look in named]


def ready_json(found: list[Check]) -> dict[str, Any]:
    """The JSON of /readyz and `runcast doctor --ready --json`; keys in docs/operations.md."""
    return {
        "status": "ready" if all(c.ok for c in found) else "not ready",
        "checks": [
            {"name": c.name, "ok": c.ok, "sentence": c.sentence, **c.numbers} for c in found
        ],
    }


class Kept:
    """A short-lived cache of the checks, filled once however many requests wait."""

    def __init__(self, ask: Callable[[], list[Check]] = checks, keep_s: float = KEPT_S) -> None:
        self._ask, self._keep_s = ask, keep_s
        self._lock = threading.Lock()
        self._found: list[Check] = []
        self._until = 0.0

    def now(self) -> list[Check]:
        """The checks, at most `KEPT_S` seconds old."""
        with self._lock:
            if not self._found or time.monotonic() >= self._until:
                self._found = self._ask()
                self._until = time.monotonic() + self._keep_s
            return self._found


def _looked_at(name: str, look: Callable[[], Check]) -> Check:
    try:
        return look()
    except RuncastError as e:
        said = str(e)
    except OSError as e:
        said = f"The {name} cannot be read: {(e.strerror or type(e).__name__).lower()}."
    return Check(name=name, ok=False, sentence=said, numbers={})


def _tables() -> Check:
    accelerators, known = len(facts.accelerators()), len(stacks())
    said = f"{accelerators} accelerators and {known} software stacks are known."
    return Check(name="tables", ok=True, sentence=said, numbers={"accelerators": accelerators})


def _prices() -> Check:
    found = snapshot()
    days = age_days(found.newest, datetime.now(UTC).date())
    said = f"{len(found.offers):,} prices in snapshot {found.id}, the newest of {found.newest}."
    numbers: dict[str, float | str] = {
        "snapshot": found.id,
        "offers": len(found.offers),
        "age_days": days,
    }
    return Check(name="prices", ok=True, sentence=said, numbers=numbers)


def _store() -> Check:
    found = condition(thorough=False)
    where = f"The {found.kind} store {found.name}"
    said = (
        f"{where} has the tables of {found.revision}."
        if found.exists
        else f"{where} has no tables yet: they are made when something is first kept."
    )
    if found.exists and found.revision != found.newest_revision:
        said = f"{where} is brought forward from {found.revision} when it is next opened."
    return Check(
        name="store",
        ok=found.is_sound,
        sentence=found.wrong or said,
        numbers={"kind": found.kind, "revision": found.revision},
    )

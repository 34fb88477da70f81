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

from app.operate.finding import failure_sentence
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
    looks = {"tables": _tables, "prices": _prices, "store": _store}
    return [_checked(name, look) for name, look in looks.items()]


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


def _checked(name: str, look: Callable[[], tuple[bool, str, dict[str, float | str]]]) -> Check:
    try:
        ok, sentence, numbers = look()
    except (RuncastError, OSError) as e:
        ok, sentence, numbers = False, failure_sentence(f"The {name}", e), {}
    return Check(name=name, ok=ok, sentence=sentence, numbers=numbers)


def _tables() -> tuple[bool, str, dict[str, float | str]]:
    accelerators, known = len(facts.accelerators()), len(stacks())
    sentence = f"{accelerators} accelerators and {known} software stacks are known."
    return True, sentence, {"accelerators": accelerators}


def _prices() -> tuple[bool, str, dict[str, float | str]]:
    found = snapshot()
    offers, days = len(found.offers), age_days(found.newest, datetime.now(UTC).date())
    sentence = f"{offers:,} prices in snapshot {found.id}, the newest of {found.newest}."
    return True, sentence, {"snapshot": found.id, "offers": offers, "age_days": days}


def _store() -> tuple[bool, str, dict[str, float | str]]:
    found = condition(thorough=False)
    state = f"has the tables of {found.revision}."
    if not found.exists:
        state = "has no tables yet: they are made when something is first kept."
    elif found.revision != found.newest_revision:
        state = f"is brought forward from {found.revision} when it is next opened."
    sentence = found.wrong or f"The {found.kind} store {found.name} {state}"
    return found.is_sound, sentence, {"kind": found.kind, "revision": found.revision}

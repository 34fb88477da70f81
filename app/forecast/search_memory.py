"""Keep search results by job, so that the next search covers only new jobs.

A job is a machine shape at one GPU count; its fastest layout depends only on what is trained and
how. It does not depend on prices, the way to buy, budget, deadline or order, and a choice of clouds
or accelerators only selects jobs. So when one of these changes on the page, plans are ranked again
and only jobs not searched before are searched: usually none.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.log.memory import held_bytes
from core.search.best import Best, Job
from core.search.joined_search import Taken, joined

Search = Callable[[Sequence[Job]], Best]

MOST_QUESTIONS = 24
MOST_BYTES = 96_000_000  # of all of them together
MOST_PARTS = 40  # searches kept for one question; beyond this it starts afresh


@dataclass(slots=True)
class _Known:
    """The searches of one question, and for each job its search and its number there."""

    parts: list[Best] = field(default_factory=list)
    at: dict[Job, tuple[int, int]] = field(default_factory=dict)
    num_bytes: int = 0


class SearchMemory:
    """Search results of this process, thread-safe. Two threads that need the same new job at the
    same time may both search it."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, _Known] = OrderedDict()
        self._lock = threading.Lock()

    def best(self, question: Hashable, jobs: Sequence[Job], search: Search) -> Best:
        """The result of `search(jobs)` for a question, or several at once; it is called for the new
        jobs only. If that search was cut short, or found nothing that fits, the whole search is run
        and not kept."""
        new = self._new(question, jobs)
        if new:
            found = search(new)
            if _is_cut(found):
                return found if len(new) == len(jobs) else search(jobs)
            self._keep(question, new, found)
        taken = self._taken(question, jobs)
        whole = joined(taken, num_jobs=len(jobs)) if taken else None
        return whole if whole is not None and len(whole.job) else search(jobs)

    def num_accelerators(self, question: Hashable) -> int:
        """How many accelerators have been searched for a question."""
        with self._lock:
            known = self._known.get(question)
            return len({j.accelerator for j in known.at}) if known else 0

    def _new(self, question: Hashable, jobs: Sequence[Job]) -> list[Job]:
        with self._lock:
            known = self._known.setdefault(question, _Known())
            self._known.move_to_end(question)
            while len(self._known) > MOST_QUESTIONS:
                self._known.popitem(last=False)
            return [j for j in dict.fromkeys(jobs) if j not in known.at]

    def _keep(self, question: Hashable, jobs: Sequence[Job], found: Best) -> None:
        num_bytes = held_bytes(found) + 1_000 * len(jobs)  # and each job with its cluster
        with self._lock:
            known = self._known.setdefault(question, _Known())
            if len(known.parts) >= MOST_PARTS:
                known.parts, known.at, known.num_bytes = [], {}, 0
            known.parts.append(found)
            known.num_bytes += num_bytes
            known.at |= {job: (len(known.parts) - 1, n) for n, job in enumerate(jobs)}
            while sum(k.num_bytes for k in self._known.values()) > MOST_BYTES:
                self._known.popitem(last=False)

    def _taken(self, question: Hashable, jobs: Sequence[Job]) -> list[Taken]:
        """Where the jobs are; empty if another thread has evicted them meanwhile."""
        with self._lock:
            known = self._known.get(question, _Known())
            where = [known.at.get(j) for j in jobs]
            parts = list(known.parts)
        if any(w is None for w in where):
            return []
        at = np.array(where, dtype=np.intp).reshape(-1, 2)
        return [
            Taken(best=parts[n], numbers=at[mine, 1], targets=mine)
            for n in np.unique(at[:, 0])
            if len(mine := np.flatnonzero(at[:, 0] == n))
        ]


def _is_cut(found: Best) -> bool:
    return bool(len(found.jobs_cut)) or bool(found.counts.cut)

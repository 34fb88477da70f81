"""What searches have found is kept by job, so that the next one looks for what is new only.

A job is a machine shape at one GPU count; its fastest layout depends on what is trained and how,
and on nothing else. Prices, the way to buy, budget, deadline and order are no part of it, and a
choice of clouds or accelerators is a choice among jobs. So a page on which one of these changes is
ranked anew and searched for the jobs that nobody has asked for yet: mostly none.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.forecast.training import Question
from core.search.best import Best, Job
from core.search.joined_search import Taken, joined

Search = Callable[[Sequence[Job]], Best]

MOST_QUESTIONS = 24  # what is trained and how: each up to 2 MB
MOST_PARTS = 40  # searches that one of them is made of; then it starts afresh


@dataclass(slots=True)
class _Known:
    """Searches of one question, and which of them has each job, under which number."""

    parts: list[Best] = field(default_factory=list)
    at: dict[Job, tuple[int, int]] = field(default_factory=dict)


class SearchMemory:
    """Searches of this process. Threads may ask at the same time; two that ask the same new thing
    at once may both search it."""

    def __init__(self) -> None:
        self._known: OrderedDict[Question, _Known] = OrderedDict()
        self._lock = threading.Lock()

    def best(self, question: Question, jobs: Sequence[Job], search: Search) -> Best:
        """What `search(jobs)` answers; it is asked for the new ones among the jobs. A search that
        was cut short, or found nothing that fits, is made as a whole and not kept."""
        new = self._new(question, jobs)
        if new:
            found = search(new)
            if _is_cut(found):
                return found if len(new) == len(jobs) else search(jobs)
            self._keep(question, new, found)
        taken = self._taken(question, jobs)
        whole = joined(taken, num_jobs=len(jobs)) if taken else None
        return whole if whole is not None and len(whole.job) else search(jobs)

    def _new(self, question: Question, jobs: Sequence[Job]) -> list[Job]:
        with self._lock:
            known = self._known.setdefault(question, _Known())
            self._known.move_to_end(question)
            while len(self._known) > MOST_QUESTIONS:
                self._known.popitem(last=False)
            return [j for j in dict.fromkeys(jobs) if j not in known.at]

    def _keep(self, question: Question, jobs: Sequence[Job], found: Best) -> None:
        with self._lock:
            known = self._known.setdefault(question, _Known())
            if len(known.parts) >= MOST_PARTS:
                known.parts, known.at = [], {}
            known.parts.append(found)
            known.at |= {job: (len(known.parts) - 1, n) for n, job in enumerate(jobs)}

    def _taken(self, question: Question, jobs: Sequence[Job]) -> list[Taken]:
        """Where the jobs are; empty where another thread has made room for its own meanwhile."""
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

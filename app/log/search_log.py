"""Log searches: how long they took and how much they searched, never the scenario."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import ParamSpec

from app.log import log
from core.errors import RuncastError
from core.search.plan import Answer

P = ParamSpec("P")


def logged(search: Callable[P, Answer]) -> Callable[P, Answer]:
    """Wrap a search so that it logs one line when a page rerun or a command runs it."""

    @functools.wraps(search)
    def searched(*args: P.args, **kwargs: P.kwargs) -> Answer:
        one = log.current()
        if one is None:
            return search(*args, **kwargs)
        one.add(searches=1)
        began = time.perf_counter()
        try:
            answer = search(*args, **kwargs)
        except RuncastError:
            log.event("search", outcome="refused", ms=_ms_since(began))
            raise
        ms = _ms_since(began)
        one.add(search_ms=ms, candidates=answer.num_candidates)
        log.event(
            "search",
            outcome="cut" if answer.not_searched else "done",
            ms=ms,
            candidates=answer.num_candidates,
            plans=answer.num_plans,
        )
        return answer

    return searched


def _ms_since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 1)

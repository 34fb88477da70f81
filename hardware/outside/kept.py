"""Keep what was parsed by the hash of its bytes, refusals too; one file at a time.

A page runs again with every click, so a file that is slow to parse or to refuse would be parsed as
often. Two large files are never in memory as objects at once: whoever comes second waits.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Concatenate, ParamSpec, TypeVar

from core.errors import RuncastError
from hardware.outside.interrupt import processor_seconds
from hardware.outside.json_text import OutsideError

KEPT_PARSES = 32  # of each reader
PARSE_S = 10.0  # of processor time

P = ParamSpec("P")
T = TypeVar("T")
_ONE_AT_A_TIME = threading.RLock()


def kept_by_hash(
    parse: Callable[Concatenate[bytes, P], T],
) -> Callable[Concatenate[bytes, P], T]:
    """A parser that remembers its last results and refusals. Every caller gets the same object,
    so none may change it."""
    known: OrderedDict[Hashable, T | RuncastError] = OrderedDict()

    @functools.wraps(parse)
    def kept(content: bytes, /, *more: P.args, **named: P.kwargs) -> T:
        key = hashlib.sha256(content).digest(), more, tuple(named.items())
        with _ONE_AT_A_TIME:
            if key not in known:
                try:
                    with processor_seconds(PARSE_S, _too_long):
                        known[key] = parse(content, *more, **named)
                except RuncastError as e:
                    known[key] = e.with_traceback(None)
            known.move_to_end(key)
            while len(known) > KEPT_PARSES:
                known.popitem(last=False)
            found = known[key]
        if isinstance(found, RuncastError):
            raise copy.copy(found)
        return found

    return kept


def _too_long() -> OutsideError:
    return OutsideError(f"takes more than {PARSE_S:g} s to read")

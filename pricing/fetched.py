"""Ask one price source: its offers, or the sentence that says why there are none."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path

from core.machine.offer import Offer
from hardware.outside.interrupt import checked_by
from hardware.outside.json_text import Bounds, json_value
from pricing.fetch.body_cache import BodyCache
from pricing.fetch.network import SourceError
from pricing.fetch.session import NoCredentialError, Part, Refused, Session
from pricing.offers import OFFER_FIELDS, Row, make_offer, make_row
from pricing.sources import Source

MAX_OFFERS = 120_000  # of one source
ANSWER = Bounds(num_bytes=128_000_000, values=4_000_000)  # as JSON


@dataclass(slots=True, kw_only=True)
class Fetched:
    """The rows of one source, or why there are none."""

    source: Source
    offers: list[Offer] = field(default_factory=list)
    status: str = "refreshed"
    sentence: str = ""
    seconds: float = 0.0
    bytes_read: int = 0
    parts: list[Part] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    left_out: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def fetched(
    source: Source,
    environ: Mapping[str, str],
    cache: Path | None,
    last_rows: int,
    now: Callable[[], datetime],
    *,
    stop: threading.Event | None = None,
    began_s: float | None = None,
) -> Fetched:
    """Ask one source; every way in which it can fail is a sentence. Its deadline counts from
    `began_s` of the monotonic clock, or from now."""
    began_s = time.monotonic() if began_s is None else began_s
    found = Fetched(source=source)
    try:
        with Session(
            source=source.name,
            deadline_s=source.deadline_s,
            began_s=began_s,
            cap_bytes=source.cap_bytes,
            cache=BodyCache(cache) if cache else None,
            environ=environ,
            now=now,
            stop=threading.Event() if stop is None else stop,
        ) as session:
            try:
                with checked_by(session.check):
                    for offer in islice(source.fetch(session), MAX_OFFERS + 1):
                        session.check()
                        found.offers.append(offer)
            finally:
                found.parts = session.parts
                found.refused = session.refused
                found.left_out = dict(session.left_out)
                found.warnings = tuple(session.warnings)
                found.bytes_read = session.bytes_read
        if len(found.offers) > MAX_OFFERS:
            found.offers = []
            raise SourceError(f"It lists more than {MAX_OFFERS} prices.")
        if not found.offers:
            why = f"It lists 0 prices where there were {last_rows}."
            found.status = "failed"
            found.sentence = found.parts[0].sentence if found.parts else why
        elif found.parts:
            found.status = "in part"
            more = f" (and {len(found.parts) - 1} more parts)" if len(found.parts) > 1 else ""
            found.sentence = found.parts[0].sentence + more
    except NoCredentialError as e:
        found.status, found.sentence = "no key", str(e)
    except SourceError as e:
        found.status, found.sentence = "failed", str(e)
    except OSError as e:  # of the cache: a full disk, a folder without permission
        found.status, found.sentence = "failed", f"Its cache cannot be written: {e.strerror}."
    found.seconds = time.monotonic() - began_s
    return found


def as_json(found: Fetched, fault: str) -> bytes:
    """An answer for another process, with the trace of a fault of this program."""
    rows = [make_row(o)[: len(OFFER_FIELDS)] for o in found.offers]
    answer = {
        "offers": rows, "status": found.status, "sentence": found.sentence,
        "seconds": found.seconds, "bytes_read": found.bytes_read, "fault": fault,
        "parts": [(p.provider, p.region, p.sentence) for p in found.parts],
        "refused": [astuple(r) for r in found.refused], "left_out": dict(found.left_out),
        "warnings": found.warnings,
    }  # fmt: skip
    return json.dumps(answer, allow_nan=False, separators=(",", ":")).encode()


def from_json(source: Source, text: bytes) -> tuple[Fetched, str]:
    """The answer that another process wrote, and the trace."""
    a = json_value(text, ANSWER)
    rows: list[Row] = a["offers"]
    found = Fetched(
        source=source,
        offers=[make_offer(row) for row in rows],
        parts=[Part(provider=p, region=r, sentence=s) for p, r, s in a["parts"]],
        refused=[Refused(row=row, reason=reason) for row, reason in a["refused"]],
        warnings=tuple(a["warnings"]),
        **{name: a[name] for name in ("status", "sentence", "seconds", "bytes_read", "left_out")},
    )
    return found, a["fault"]

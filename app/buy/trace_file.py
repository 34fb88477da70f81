"""Parses a user's trace of spot capacity, CSV or JSON. The file is untrusted.

CSV, one spell per row, in order: start_s,end_s or start_hours,end_hours or start,end (times in ISO
8601). With a column `state` (up or down) it may list outages as well.

    start,end                                        {"up": [[0, 5400], [7200, 90000]],
    2026-03-01T00:00Z,2026-03-01T01:30Z               "length_s": 100000}

JSON: the spells in seconds, or a series in the format of skypilot-org/spot-traces:

    {"metadata": {"gap_seconds": 300}, "data": [1, 1, 0, ...]}

where each tick is the number of instances available during the next `gap_seconds`.
"data_means": "preempted" inverts it (1: preempted), as in the files of that project's simulator;
"num_instances" says how many instances the job needs if ticks count more than one.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from core.errors import RunsError, nearest, shown
from core.failures.availability import Trace, TraceError
from core.units import HOUR_S
from hardware.foreign_csv import Row, read_file, table_of
from hardware.outside.json_text import Bounds, OutsideError, json_value
from hardware.outside.kept import kept_by_hash

MAX_BYTES = 5_000_000
MAX_SPELLS = 10_000
MAX_INSTANCES = 1_000_000
MAX_LENGTH_S = 1e9  # 30 years: the longest trace that is accepted
BOUNDS = Bounds(num_bytes=MAX_BYTES, values=MAX_BYTES, lists=3 * MAX_SPELLS, is_printable=True)
COLUMNS = {"start_s": "end_s", "start_hours": "end_hours", "start": "end"}
MEANINGS = ("available", "preempted")
FORMS = (
    "CSV with the columns start_s,end_s (or start_hours,end_hours, or start,end as ISO 8601), "
    'or JSON with "up" or "data"'
)

Spell = tuple[str, float, float]  # position in the file, start, end


def read_trace_file(path: Path) -> Trace:
    """The trace in a file; `TraceError` says in a sentence what is wrong with it."""
    try:
        return read_trace(read_file(path), name=path.name)
    except RunsError as e:
        raise TraceError(str(e)) from None


@kept_by_hash
def read_trace(content: bytes, *, name: str) -> Trace:
    """The trace in the content of a file; error messages use `name` for the file.

    >>> read_trace(b"start_s,end_s\\n0,60\\n90,120\\n", name="mine.csv").ends_s.tolist()
    [60.0, 120.0]
    """
    called = shown(name)
    if len(content) > MAX_BYTES:
        raise TraceError(f"{called} is larger than {MAX_BYTES // 10**6} MB.")
    if not content.strip(b"\xef\xbb\xbf \t\r\n"):
        raise TraceError(f"{called} is empty: a trace is {FORMS}.")
    try:
        if content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
            return _of_json(json_value(content, BOUNDS), called)
        return _of_csv(content, name)
    except OutsideError as e:
        raise TraceError(f"{called} is no trace: it {e.clause}.") from None
    except RunsError as e:
        raise TraceError(str(e)) from None


# --- CSV -----------------------------------------------------------------------------------------


def _of_csv(content: bytes, name: str) -> Trace:
    called = shown(name)
    table = table_of(content, name=name, needs=(), max_bytes=MAX_BYTES, max_rows=MAX_SPELLS)
    start = next((c for c in COLUMNS if c in table.header), None)
    if start is None or COLUMNS[start] not in table.header:
        guess = nearest("start_s" if start is None else COLUMNS[start], table.header[:100])
        hint = f" Did you mean its column {shown(guess)}?" if guess and start is None else ""
        raise TraceError(f"{called} is no trace, which is {FORMS}.{hint}")
    spells = [_spell(row, start) for row in table.rows]
    zones = {moment.tzinfo is None for _, _, *both in spells for moment in both if _is_time(moment)}
    if len(zones) > 1:
        raise TraceError(
            f"{called} mixes times with and without a time zone: give all of them one."
        )
    origin = spells[0][2] if _is_time(spells[0][2]) else 0.0
    in_seconds = [
        (state, (where, _since(first, origin), _since(last, origin)))
        for where, state, first, last in spells
    ]
    _check_order([spell for _, spell in in_seconds], called)
    return _trace(
        [spell for state, spell in in_seconds if state == "up"], in_seconds[-1][1][2], called
    )


def _spell(row: Row, start: str) -> tuple[str, str, Any, Any]:
    where = f"Line {row.line}"
    if row.width_reason:
        raise TraceError(f"{where}: {row.width_reason}")
    state = row.cell("state").lower() if "state" in row.cells else "up"
    if state not in ("up", "down"):
        raise TraceError(f"{where} has the state {shown(state)}, which is neither up nor down.")
    cells = (row.cell(start), row.cell(COLUMNS[start]))
    if start == "start":
        first, last = (_time(where, cell) for cell in cells)
        return where, state, first, last
    factor = HOUR_S if start == "start_hours" else 1.0
    low, high = (_number(where, cell) * factor for cell in cells)
    return where, state, low, high


def _time(where: str, text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise TraceError(
            f"{where} has {shown(text)}, which is no time like 2026-03-01T12:30Z; numbers stand in "
            "columns start_s,end_s or start_hours,end_hours."
        ) from None


def _number(where: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise TraceError(f"{where} has {shown(text)}, which is not a number.") from None
    return _finite(where, value)


def _is_time(moment: object) -> bool:
    return isinstance(moment, datetime)


def _since(moment: Any, origin: Any) -> float:
    """Seconds since the first moment of the file; a time without a zone is taken as UTC."""
    if not isinstance(moment, datetime):
        return float(moment)
    first, later = (m if m.tzinfo else m.replace(tzinfo=UTC) for m in (origin, moment))
    return (later - first).total_seconds()


# --- JSON ----------------------------------------------------------------------------------------


def _of_json(document: Any, called: str) -> Trace:
    if not isinstance(document, dict):
        raise TraceError(f"{called} is a JSON list: a trace is {FORMS}.")
    if "up" in document:
        return _of_spells(document, called)
    if "data" in document:
        return _of_series(document, called)
    raise TraceError(f'{called} has neither "up" nor "data": a trace is {FORMS}.')


def _of_spells(document: dict[str, Any], called: str) -> Trace:
    up, length_s = document["up"], document.get("length_s")
    if not isinstance(up, list):
        raise TraceError(f'"up" of {called} is not a list of [start, end] in seconds.')
    if len(up) > MAX_SPELLS:
        raise TraceError(f"{called} has more than {MAX_SPELLS:,} spells.")
    if not _is_number(length_s):
        raise TraceError(f'{called} gives no "length_s", the seconds that the trace lasts.')
    spells: list[Spell] = []
    for i, pair in enumerate(up, start=1):
        where = f"Interval {i}"
        if not (isinstance(pair, list) and len(pair) == 2 and all(map(_is_number, pair))):
            raise TraceError(f"{where} of {called} is not [start, end] in seconds.")
        spells.append((where, _finite(where, pair[0]), _finite(where, pair[1])))
    _check_order(spells, called)
    length = _finite('"length_s"', length_s)
    if spells and length < spells[-1][2]:
        raise TraceError(f'"length_s" of {called} is {length:g}, before its last interval ends.')
    return _trace(spells, length, called)


def _of_series(document: dict[str, Any], called: str) -> Trace:
    meta = document.get("metadata")
    gap = document.get("gap_seconds", meta.get("gap_seconds") if isinstance(meta, dict) else None)
    if not (_is_number(gap) and 0 < gap <= MAX_LENGTH_S):
        raise TraceError(
            f'{called} gives no "gap_seconds", the seconds from tick to tick, above 0.'
        )
    data, means = document["data"], document.get("data_means", "available")
    if means not in MEANINGS:
        raise TraceError(f'"data_means" of {called} is not one of {", ".join(MEANINGS)}.')
    if not isinstance(data, list) or not data:
        raise TraceError(f'"data" of {called} is not a list of ticks.')
    for i, tick in enumerate(data, start=1):
        if not (_is_number(tick) and 0 <= tick <= MAX_INSTANCES and tick == int(tick)):
            raise TraceError(f"Tick {i} of {called} is {shown(tick)}, not a number of instances.")
    needed = _needed(document, max(data), means, called)
    ticks = np.asarray(data)
    up = ticks == 0 if means == "preempted" else ticks >= needed
    edges = np.flatnonzero(np.diff(np.concatenate([[False], up, [False]]).astype(np.int8)))
    if edges.size > 2 * MAX_SPELLS:
        raise TraceError(f"{called} has more than {MAX_SPELLS:,} spells.")
    spells = [
        (f"Tick {first + 1}", first * float(gap), last * float(gap))
        for first, last in edges.reshape(-1, 2)
    ]
    return _trace(spells, len(data) * float(gap), called)


def _needed(document: dict[str, Any], most: int, means: str, called: str) -> int:
    """The number of instances that the job needs to run."""
    given = document.get("num_instances")
    if given is None:
        if most > 1:
            raise TraceError(
                f'{called} counts up to {most} instances: "num_instances" says how many it takes.'
            )
        return 1
    if not (_is_number(given) and 1 <= given <= MAX_INSTANCES and given == int(given)):
        raise TraceError(f'"num_instances" of {called} is {shown(given)}, not a number from 1 up.')
    if means == "preempted":
        raise TraceError(f'"num_instances" of {called} needs counts of instances available.')
    return int(given)


# --- both ----------------------------------------------------------------------------------------


def _trace(spells: list[Spell], length_s: float, called: str) -> Trace:
    if not spells:
        raise TraceError(f"{called} is never up: there is nothing to run on.")
    if length_s > MAX_LENGTH_S:
        raise TraceError(f"{called} is longer than {MAX_LENGTH_S:g} s, 30 years.")
    starts, ends = (np.array([spell[i] for spell in spells], dtype=float) for i in (1, 2))
    return Trace(starts_s=starts, ends_s=ends, length_s=length_s)


def _check_order(spells: list[Spell], called: str) -> None:
    """Raise for the first spell that is negative, ends before it starts or is out of order."""
    before = 0.0
    for where, start, end in spells:
        place = f"{where} of {called}"
        if start < 0:
            raise TraceError(f"{place} starts at {start:g} s, before the trace does.")
        if not end > start:
            raise TraceError(f"{place} ends at {end:g} s, not after its start, {start:g} s.")
        if start < before:
            raise TraceError(
                f"{place} starts at {start:g} s, before the one above it ends, at {before:g} s: "
                "spells are in order and do not overlap."
            )
        before = end


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _finite(where: str, value: float) -> float:
    try:
        finite = math.isfinite(value)
    except OverflowError:  # a whole number of hundreds of digits
        finite = False
    if not finite:
        raise TraceError(f"{where} has {shown(value)[1:-1]}, which is not a finite number.")
    return float(value)

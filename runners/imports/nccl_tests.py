"""Tables of nccl-tests and rccl-tests: one line per message size.

NVIDIA/nccl-tests src/util.cu (read at 0fdb00a3: writeResultHeader, writeBenchmarkLineBody) and
doc/PERFORMANCE.md: time in microseconds, algbw = bytes / time, busbw = algbw x a factor of the
operation, both in GB/s of 1e9; #wrong is N/A where results were not checked. Columns are found by
the names in the header, so that older (`error`, no `root`) and newer versions (`i_min`,
`timestamp`) are read, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from core.errors import shown
from runners.imports.result import ImportResult, Operation, bus_factor, import_result
from runners.imports.text import ImportFileError, number, positive, whose

OPERATIONS = get_args(Operation)
PROGRAMS = {
    "all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all", "broadcast": "broadcast", "reduce": "reduce",
    "sendrecv": "send_recv",
}  # fmt: skip
MAX_POINTS = 5_000
FACTOR_ERROR = 0.05  # of a printed busbw over algbw, both with two decimals

_PROGRAM = re.compile(r"\b([a-z_]{4,20})_perf\b")
_DEVICE = re.compile(
    r"#\s+Rank\s+(\d{1,7})\s+(?:Group\s+(\d{1,7})\s+)?Pid\s+\d{1,9}\s+on\s+(\S{1,255})\s+device\s+"
    r"\d{1,4}\s+\[[^\]]{1,64}\]\s+(\S.{0,100})"
)
_LIBRARY = re.compile(r"\b[NR]CCL version\s+(\S{1,40})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One message size: the time of one call, out of place if measured, else in place."""

    size_bytes: float
    time_s: float
    alg_gb_per_s: float
    bus_gb_per_s: float
    in_place_s: float | None
    wrong: int | None  # None: not checked


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One program of nccl-tests over one group of ranks."""

    op: str
    ranks: int
    nodes: int
    device: str  # as the driver names it; '' if the file has none
    library: str
    dtype: str
    points: tuple[Point, ...]

    @property
    def bus_factor(self) -> float:
        """busbw over algbw of this operation and number of ranks."""
        return bus_factor(self.op, self.ranks)


@dataclass(slots=True)
class _Open:
    """A table while its lines are read."""

    program: str = ""
    columns: tuple[str, ...] = ()
    has_root: bool = False
    dtype: str = ""
    hosts: tuple[str, ...] = ()  # of the ranks of group 0
    device: str = ""
    library: str = ""
    points: list[Point] = field(default_factory=list)


def is_one(lines: Sequence[str]) -> bool:
    """Whether the lines have this format: a header of a table, with bandwidths."""
    return any("busbw" in line and _columns(whose(line)[1]) for line in lines)


def tables(
    lines: Sequence[str],
    *,
    op: str | None = None,
    ranks: int | None = None,
    nodes: int | None = None,
) -> tuple[Table, ...]:
    """Every table of a file, in order. `op`, `ranks` and `nodes` are given by the user; they are
    needed if the file has no header of its run. ImportFileError names what is missing."""
    if op is not None and op not in OPERATIONS:
        raise ImportFileError(f"--op {shown(op)} is none of {', '.join(OPERATIONS)}.")
    found = [_identified(t, op=op, ranks=ranks, nodes=nodes) for t in _opened(lines) if t.points]
    if not found:
        raise ImportFileError(
            "The file has a header of nccl-tests, and no line with a size and times below it: the "
            "run ended before its first result."
        )
    return tuple(found)


def result(tables: Sequence[Table], *, date: str | None, **origin: Any) -> ImportResult:
    """The document of a file; ImportFileError if it is not usable."""
    libraries = sorted({t.library for t in tables if t.library})
    return import_result(
        format="nccl-tests",
        device=next((t.device for t in tables if t.device), ""),
        software={"nccl": libraries[0]} if len(libraries) == 1 else {},
        measured_on=date,
        collectives=[
            {
                "op": t.op, "ranks": t.ranks, "nodes": t.nodes,
                "points": [
                    {"size_bytes": p.size_bytes, "time_s": p.time_s, "wrong": p.wrong}
                    for p in t.points
                ],
            }
            for t in tables
        ],
        **origin,
    )  # fmt: skip


def _opened(lines: Sequence[str]) -> list[_Open]:
    """The tables as printed, each from its header on."""
    current, made = _Open(), []
    devices: dict[tuple[str, int], str] = {}
    for line in (whose(line)[1] for line in lines):
        if match := _PROGRAM.search(line):
            if current.columns:  # the following lines belong to another table
                current = replace(current, columns=(), points=[])
            current.program = PROGRAMS.get(match[1], match[1])
        if match := _LIBRARY.search(line):
            current.library = match[1]
        if (match := _DEVICE.search(line)) and int(match[2] or 0) == 0:
            if int(match[1]) == 0:
                devices = {}
            devices[match[3], int(match[1])] = match[4].strip()
        elif columns := _columns(line):
            names = tuple(devices.values())
            current = replace(
                current,
                columns=columns[0],
                has_root=columns[1],
                hosts=tuple(host for host, _ in devices),
                device=names[0] if len(set(names)) == 1 else "",
                points=[],
            )
            made.append(current)
        elif current.columns and (found := _point(line, current)):
            current.points.append(found)
            if len(current.points) > MAX_POINTS:
                raise ImportFileError(f"A table has more than {MAX_POINTS:,} lines.")
    return made


def _columns(line: str) -> tuple[tuple[str, ...], bool] | None:
    """The names of the figures in a header line, and whether a root column precedes them."""
    if "algbw" not in line or "busbw" not in line:
        return None
    names = line.replace("#wrong", "wrong").replace("#", " ").split()
    first = next((i for i, n in enumerate(names) if n in ("time", "cputime")), None)
    if first is None or names[:2] != ["size", "count"]:
        return None
    if names[first] == "cputime":
        raise ImportFileError(
            "The times are those of the CPU (-C 1), not of the operation: measure without -C."
        )
    return tuple(names[first:]), "root" in names[:first]


def _point(line: str, table: _Open) -> Point | None:
    """One line of a table; None for other lines and for one that is cut off."""
    cells = line.split()
    if len(cells) < 5 or not (cells[0].isascii() and cells[0].isdigit() and cells[1].isdigit()):
        return None
    rest = cells[3:]
    if rest and number(rest[0]) is None and rest[0] != "N/A":  # the reduction
        rest = rest[1:]
    if table.has_root:
        rest = rest[1:]
    width = table.columns[1:].index("time") + 1 if "time" in table.columns[1:] else len(
        table.columns
    )  # fmt: skip
    named = list(zip(table.columns, rest, strict=False))
    first, second = dict(named[:width]), dict(named[width:])
    size = positive(cells[0])
    last = "wrong" if "wrong" in table.columns else "error"
    out, inside = (_time_s(half) if last in half else None for half in (first, second))
    if size is None or (out is None and inside is None):
        return None
    taken = first if out is not None else second
    table.dtype = cells[2][:20]
    wrongs = [number(h.get("wrong", h.get("error", ""))) for h in (first, second)]
    checked = [w for w in wrongs if w is not None]
    return Point(
        size_bytes=size,
        time_s=out if out is not None else inside or 0.0,
        alg_gb_per_s=number(taken["algbw"]) or 0.0,
        bus_gb_per_s=number(taken["busbw"]) or 0.0,
        in_place_s=inside if out is not None else None,
        wrong=int(min(max(checked), 1e15)) if checked else None,
    )


def _time_s(half: dict[str, str]) -> float | None:
    """Seconds of one half of a line; None if it is missing or cut off."""
    if not {"time", "algbw", "busbw"} <= half.keys():
        return None
    if number(half["algbw"]) is None or number(half["busbw"]) is None:
        return None
    micros = positive(half["time"])
    return None if micros is None else micros * 1e-6


def _identified(table: _Open, *, op: str | None, ranks: int | None, nodes: int | None) -> Table:
    """The table with its operation and ranks; the file and the user must agree."""
    printed = table.program if table.program in OPERATIONS else None
    if table.program and printed is None:
        raise ImportFileError(
            f"{shown(table.program)}_perf is an operation that is not read; those are "
            f"{', '.join(PROGRAMS)}."
        )
    name = printed or op
    if name is None:
        raise ImportFileError(
            "The file does not say which operation was measured: give --op, one of "
            f"{', '.join(OPERATIONS)}."
        )
    for option, user, read in (
        ("--op", op, printed),
        ("--ranks", ranks, len(table.hosts) or None),
        ("--nodes", nodes, len(set(table.hosts)) or None),
    ):
        if user is not None and read is not None and user != read:
            raise ImportFileError(f"{option} is {user}, and the file says {read}.")
    count = len(table.hosts) or ranks
    hosts = len(set(table.hosts)) or nodes
    if count is None or hosts is None:
        raise ImportFileError(
            "The file has no list of devices (`# Rank 0 ... on HOST device 0`): give --ranks and "
            "--nodes."
        )
    if count < 2 or count % hosts:
        raise ImportFileError(f"{count} ranks on {hosts} nodes is no group that can be measured.")
    made = Table(
        op=name,
        ranks=count,
        nodes=hosts,
        device=table.device,
        library=table.library,
        dtype=table.dtype,
        points=_once(table.points),
    )
    _check_factor(made)
    return made


def _once(points: Sequence[Point]) -> tuple[Point, ...]:
    """One point per size, with the median time: a size may have been measured several times."""
    by_size: dict[float, list[Point]] = {}
    for point in points:
        by_size.setdefault(point.size_bytes, []).append(point)
    return tuple(
        sorted(same, key=lambda p: p.time_s)[len(same) // 2]
        for _, same in sorted(by_size.items())
        if _ > 0
    )


def _check_factor(table: Table) -> None:
    """Check that the printed bandwidths match the operation and ranks."""
    large = [p for p in table.points if p.alg_gb_per_s >= 1.0]
    if not large:
        return
    last = large[-1]
    printed, expected = last.bus_gb_per_s / last.alg_gb_per_s, table.bus_factor
    if abs(printed / expected - 1) > FACTOR_ERROR:
        raise ImportFileError(
            f"busbw over algbw is {printed:.3g}, and {expected:.3g} for {table.op} over "
            f"{table.ranks} ranks: the operation or the number of ranks is another one."
        )

"""What files that lie with a log say of its run: signs that tell its likely causes apart.

Read are `nvidia-smi dmon` and `dcgmi dmon` (columns by the names in their header), a trace of the
torch profiler and nccl-tests. A sign is seen, or it was looked for and not seen; the bounds are
chosen. What no file shows has no sign.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from core.errors import shown
from runners.imports import nccl_tests, profiler
from runners.imports.text import ImportFileError, number, read_bytes, text_of, unpacked

MOST_FILES = 64
HIDDEN = 0.10  # of a step: less communication or idling than this is usual
SLOW_CLOCK = 0.95  # of the median clock of the other GPUs
THROTTLED = 0.90  # of the highest clock under load
LOADED, LITTLE_POWER = 90.0, 0.5  # percent; of the most that the file has
SLOW_NETWORK = 0.7  # of what the plan has
_NAMES = {
    "gpu": "gpu", "entity": "gpu", "sm": "load", "gputl": "load", "pwr": "watt", "power": "watt",
    "pclk": "clock", "smclk": "clock",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """One thing that a file shows, or does not show."""

    name: str  # as `shown_by` of a cause names it
    is_seen: bool
    text: str  # with the figure and the file


def signs_of(path: Path, *, network_gb_per_s: float | None) -> tuple[Sign, ...]:
    """The signs in a file, or in the files of a folder. `network_gb_per_s`: of one machine, as
    planned."""
    if not path.exists():
        raise ImportFileError(f"{shown(str(path))} is not there.")
    files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
    found: list[Sign] = []
    for file in files[:MOST_FILES]:
        try:
            found += signs_in(read_bytes(file), file.name, network_gb_per_s=network_gb_per_s)
        except ImportFileError:
            if not path.is_dir():
                raise
    if not found and not path.is_dir():
        raise ImportFileError(
            f"{shown(path.name)} is neither `nvidia-smi dmon`, `dcgmi dmon`, a trace of the torch "
            "profiler nor nccl-tests."
        )
    return tuple(found)


def signs_in(content: bytes, name: str, *, network_gb_per_s: float | None) -> Iterator[Sign]:
    """The signs in the content of one file; none if it is of another kind."""
    plain = unpacked(content, name)
    if profiler.is_one(plain):
        yield from _of_trace(plain, name)
        return
    lines = text_of(plain, name).lines
    if rows := _samples(lines):
        yield from _of_gpus(rows, name)
    elif nccl_tests.is_one(lines):
        yield from _of_network(lines, name, network_gb_per_s)


def _of_trace(content: bytes, name: str) -> Iterator[Sign]:
    found = profiler.parse(content, name)
    for sign, share, what in (
        ("exposed_communication", found.exposed, "communication that no kernel hides"),
        ("idle_gpus", found.idle, "no kernel at all"),
    ):
        text = f"{share:.0%} of a step has {what} ({name})"
        yield Sign(name=sign, is_seen=share >= HIDDEN, text=text)


def _samples(lines: Sequence[str]) -> dict[str, list[dict[str, float]]]:
    """Samples of each GPU."""
    columns: list[str] = []
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    for line in lines:
        words = line.replace("#", " ").split()
        named = [_NAMES.get(word.lower(), "") for word in words]
        if line.lstrip().startswith("#") and "gpu" in named:
            columns = named
        elif columns and not line.lstrip().startswith("#"):
            if words and words[0] == "GPU":  # dcgmi: the entity has two words
                words = words[1:]
            row = {c: v for c, w in zip(columns, words, strict=False)
                   if c and (v := number(w)) is not None}  # fmt: skip
            if "gpu" in row and len(row) > 1 and len(found) < 4096:
                found[f"{row['gpu']:g}"].append(row)
    return found


def _of_gpus(rows: dict[str, list[dict[str, float]]], name: str) -> Iterator[Sign]:
    every = [row for of_gpu in rows.values() for row in of_gpu]
    load = _median(every, "load")
    if load is not None:
        text = f"the GPUs are busy {load:.0f}% of the time ({name})"
        yield Sign(name="idle_gpus", is_seen=load < LOADED, text=text)
    busy = [row for row in every if row.get("load", 100.0) >= LOADED]
    watts, clocks = [r["watt"] for r in busy if "watt" in r], [
        r["clock"] for r in busy if "clock" in r
    ]  # fmt: skip
    if watts:
        most, newest = max(r["watt"] for r in every if "watt" in r), median(watts[-len(rows) * 5 :])
        yield Sign(
            name="load_without_power", is_seen=newest < LITTLE_POWER * most,
            text=f"{newest:.0f} W under full load, of {most:.0f} W at the most ({name})",
        )  # fmt: skip
    if clocks:
        share = median(clocks) / max(clocks)
        yield Sign(
            name="throttled", is_seen=share < THROTTLED,
            text=f"clocks under load are at {share:.0%} of the highest ({name})",
        )  # fmt: skip
    own = {gpu: m for gpu, some in rows.items() if (m := _median(some, "clock"))}
    if len(own) > 1:
        slowest = min(own, key=own.__getitem__)
        share = own[slowest] / median(m for gpu, m in own.items() if gpu != slowest)
        yield Sign(
            name="slow_gpu", is_seen=share < SLOW_CLOCK,
            text=f"GPU {slowest} has {share:.0%} of the clock of the others ({name})",
        )  # fmt: skip


def _of_network(lines: Sequence[str], name: str, planned: float | None) -> Iterator[Sign]:
    for table in nccl_tests.tables(lines):
        if table.nodes < 2 or planned is None or not table.points:
            continue
        measured = max(point.bus_gb_per_s for point in table.points)
        yield Sign(
            name="slow_network", is_seen=measured < SLOW_NETWORK * planned,
            text=f"{table.op} reaches {measured:.0f} GB/s between {table.nodes} machines, of "
            f"{planned:.0f} GB/s in the plan ({name})",
        )  # fmt: skip


def _median(rows: Sequence[dict[str, float]], column: str) -> float | None:
    found = [row[column] for row in rows if column in row]
    return median(found) if found else None

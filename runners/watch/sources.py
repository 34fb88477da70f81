"""The files of a job: one file, or those of a folder, each with the rank that its path names.

Of a folder the newest files that may be logs are taken, down to a few folders below it. Files of a
tracker (event files of TensorBoard, .wandb files, metrics of MLflow) are taken where no log of text
is: a program writes the same steps to both. The console that Weights & Biases keeps in
`files/output.log` is a log like any other.
"""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from core.errors import shown
from runners.imports.text import ImportFileError
from runners.watch.trackers import name_of

MOST_FILES = 256  # of one job
MOST_LOOKED_AT = 200_000  # entries of a folder and those below it
DEPTH = 6  # folders below the one given: torchrun writes run/attempt_0/3/stdout.log, MLflow more
_LOG = re.compile(
    r"(?:\.(?:log|txt|out|err|jsonl|csv)|(?:^|[-_.])(?:log|stdout|stderr))(?:\.\d{1,3})?$|"
    r"^trainer_state\.json$",
    re.IGNORECASE,
)
_RANK = re.compile(
    r"(?:^|[/_.-])(?:rank|worker|node|task|proc)[_.-]?(\d{1,6})(?=[/_.-]|$)"
    r"|attempt_\d+/(\d{1,6})/|(?<=[-_.])r(\d{1,6})\.",
    re.IGNORECASE,
)
_NO_LOG = re.compile(r"^(?:debug(?:-\w+)?\.log|requirements\.txt)$")  # of Weights & Biases
_EVENTS = re.compile(r"tfevents|\.wandb$")
_METRICS = re.compile(r"(?:^|/)(?:iteration-time|step_time(?:_s)?|(?:train[/_])?loss|lm loss)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Files to follow, and what was left out."""

    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()


def sources_of(given: Path) -> Sources:
    """The files of a source. A file that is not there yet is followed, too: it may still come."""
    if not given.is_dir():
        if given.exists() and not given.is_file():
            raise ImportFileError(f"{shown(str(given))} is neither a file nor a folder.")
        return Sources(files=(given,))
    newest: list[tuple[float, str]] = []
    tracked: list[tuple[float, str]] = []
    num_logs = 0
    for entry in _entries(given):
        if is_tracked(Path(entry.path)):
            tracked.append((entry.stat().st_mtime, entry.path))
            tracked = heapq.nlargest(1, tracked)
            continue
        if _LOG.search(entry.name) is None or _NO_LOG.search(entry.name):
            continue
        num_logs += 1
        heapq.heappush(newest, (entry.stat().st_mtime, entry.path))
        if len(newest) > MOST_FILES:
            heapq.heappop(newest)
    notes = []
    if tracked and num_logs:
        notes.append(
            "The logs of text are followed, not the files of a tracker beside them: name one of "
            "those to follow it."
        )
    newest = newest or tracked
    if num_logs > MOST_FILES:
        notes.append(f"The folder has {num_logs:,} logs: the newest {MOST_FILES} are followed.")
    return Sources(files=tuple(sorted(Path(p) for _, p in newest)), notes=tuple(notes))


def is_tracked(path: Path) -> bool:
    """Whether a file is one of a tracker: TensorBoard, Weights & Biases or MLflow."""
    return bool(_EVENTS.search(path.name) or _METRICS.search(name_of(path)))


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Files of a folder and of those below it, without links."""
    waiting, looked_at = [(str(folder), 0)], 0
    while waiting:
        path, depth = waiting.pop()
        try:
            found = os.scandir(path)
        except OSError:
            continue
        with found:
            for entry in found:
                looked_at += 1
                if looked_at > MOST_LOOKED_AT:
                    return
                if entry.is_dir(follow_symlinks=False) and depth < DEPTH:
                    waiting.append((entry.path, depth + 1))
                elif entry.is_file(follow_symlinks=False):
                    yield entry


def rank_of(path: Path) -> str:
    """The rank that the path of a log names; '' if it names none.

    >>> rank_of(Path("logs/attempt_0/3/stdout.log")), rank_of(Path("train_rank7.log"))
    ('3', '7')
    """
    match = _RANK.search("/".join(path.parts[-4:]))
    return "" if match is None else next(g for g in match.groups() if g)

"""A log that was uploaded, as states of its run over time: at most some hundred points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.watch.plan import Held
from app.watch.run import State, Watched
from core.cost.uncertain import Uncertain
from core.errors import RuncastError
from hardware.outside import packed
from hardware.outside.json_text import OutsideError
from runners.imports.text import Text, text_of
from runners.watch.beside import Sign, signs_in
from runners.watch.job import JobLogs

MOST_POINTS = 120
MOST_FILES = 16
MAX_BYTES = 16_000_000  # of all files of one upload, unpacked


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What was known of the run at one time. Seconds are from its start."""

    elapsed_s: float
    speed: float  # tokens/s
    end_s: Uncertain
    usd: Uncertain | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverTime:
    """A run so far, and how it came there."""

    state: State
    points: tuple[Point, ...]


def over_time(held: Held, files: Sequence[tuple[str, bytes]]) -> OverTime:
    """Read the files of one job, each a name and a content, and hold them against the plan."""
    texts, signs = _texts(files, held.network_gb_per_s)
    logs = JobLogs.of_texts(texts, held.facts)
    watched = Watched(held, logs, signs)
    points: list[Point] = []
    every = 1
    for count, _ in enumerate(watched.taken(logs.found(is_last=True)), 1):
        if count % every == 0 and (point := _point(watched)) is not None:
            points.append(point)
            if len(points) > MOST_POINTS:
                points, every = points[1::2], 2 * every
    last = _point(watched)
    return OverTime(state=watched.state(), points=(*points, *([last] if last else [])))


def _texts(
    files: Sequence[tuple[str, bytes]], network_gb_per_s: float | None
) -> tuple[list[Text], tuple[Sign, ...]]:
    """The logs among the files, which may be packed, and the signs of those that are no log;
    together no larger than the bound."""
    texts: list[Text] = []
    signs: list[Sign] = []
    left = MAX_BYTES
    try:
        if len(files) > MOST_FILES:
            raise OutsideError("are too many")
        for name, content in files:
            plain = packed.unpacked(content, left)
            left -= len(plain)
            if left < 0:
                raise OutsideError("are too large")
            own = list(signs_in(plain, name, network_gb_per_s=network_gb_per_s))
            signs += own
            if not own:
                texts.append(text_of(plain, name))
    except OutsideError:
        raise RuncastError(
            f"At most {MOST_FILES} files of {MAX_BYTES // 10**6} MB in all, unpacked, are read "
            "here: `runcast watch` follows larger ones."
        ) from None
    return texts, tuple(signs)


def _point(watched: Watched) -> Point | None:
    tracker = watched.tracker
    if tracker.speed is None:
        return None
    ahead = tracker.outlook
    return Point(elapsed_s=tracker.elapsed_s, speed=tracker.speed, end_s=ahead.end_s, usd=ahead.usd)

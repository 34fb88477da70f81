"""All files of one job as findings in order of time."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from core.errors import shown
from core.watch.records import StepRecord
from runners.imports.log_records import dictionaries, is_trainer_state
from runners.imports.steps import Facts
from runners.imports.text import ImportFileError, Text, read_text
from runners.watch.follow import Tail
from runners.watch.lines import HEAD, LOOK_EVERY, LogLines
from runners.watch.signs import LineSign
from runners.watch.sources import is_tracked, rank_of, sources_of
from runners.watch.trackers import EventFile, Metric, name_of


@dataclass(slots=True)
class Whole:
    """Lines that are all there."""

    kept: Sequence[str]

    def lines(self, *, is_last: bool = False) -> Iterator[str]:
        """Each line once."""
        kept, self.kept = self.kept, ()
        yield from kept


@dataclass(slots=True, kw_only=True)
class History:
    """A trainer_state.json, which the Hugging Face Trainer writes anew at each save."""

    path: Path
    _seen: int = 0
    _changed: float = 0.0

    def lines(self, *, is_last: bool = False) -> Iterator[str]:
        """One dictionary a line, of those that were added since the last call."""
        with suppress(OSError, ImportFileError):  # is being written
            changed = self.path.stat().st_mtime
            if changed == self._changed:
                return
            lines = read_text(self.path).lines
            if not is_trainer_state(lines) or lines[-1].strip() != "}":
                return
            found = list(dictionaries(lines))
            first = self._seen if len(found) >= self._seen else 0
            self._changed, self._seen = changed, len(found)
            yield from found[first:]


@dataclass(slots=True)
class _File:
    tail: Tail | History | Whole | EventFile
    log: LogLines


@dataclass(slots=True)
class JobLogs:
    """The files of a source, followed. `found` gives what came since it was last asked."""

    source: Path
    user: Facts
    notes: tuple[str, ...] = ()
    _files: dict[Path, _File] = field(default_factory=dict)

    @classmethod
    def of_texts(cls, texts: Sequence[Text], user: Facts) -> Self:
        """The files of one job that are all there, such as those of an upload."""
        made = cls(Path(), user)
        for n, text in enumerate(texts):
            is_state = is_trainer_state(text.lines)
            lines = tuple(dictionaries(text.lines)) if is_state else text.lines
            made._add(Path(str(n)), Whole(lines), Path(text.name), len(texts))
        return made

    def __enter__(self) -> Self:
        self.look()
        return self

    def __exit__(self, *_raised: object) -> None:
        for file in self._files.values():
            if isinstance(file.tail, Tail):
                file.tail.close()

    def look(self) -> None:
        """Look for files that were not there before."""
        found = sources_of(self.source)
        self.notes = found.notes
        for path in found.files:
            if path not in self._files:
                self._add(path, tail_of(path), path, len(found.files))

    def _add(
        self, key: Path, tail: Tail | History | Whole | EventFile, path: Path, count: int
    ) -> None:
        """Follow one of `count` files."""
        log = LogLines(
            self.user, rank_of(path) if count > 1 else "", max(HEAD // count, LOOK_EVERY)
        )
        self._files[key] = _File(tail, log)

    def found(
        self, *, arrived: float | None = None, is_last: bool = False
    ) -> Iterator[StepRecord | LineSign]:
        """Steps and signs of all files since the last call, in order of their time. `arrived` is
        the time of now, for lines without one; None where a log is read that was there before."""
        each = (self._of(file, arrived, is_last) for file in tuple(self._files.values()))
        return heapq.merge(*each, key=lambda entry: entry.at_s)

    @property
    def logs(self) -> tuple[LogLines, ...]:
        """The files in which a format was found."""
        return tuple(f.log for f in self._files.values() if f.log.reader is not None)

    @property
    def num_lines(self) -> int:
        """Lines that were read of all files."""
        return sum(f.log.num_lines for f in self._files.values())

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was odd about the files."""
        tails = [f.tail for f in self._files.values() if isinstance(f.tail, Tail)]
        logs = self.logs
        back = sum(x.clock.num_back for x in logs)
        leaps = sum(x.clock.num_leaps for x in logs)
        counts = (
            (sum(t.num_rotations for t in tails), "The log was rotated {}."),
            (sum(t.num_cuts for t in tails), "The log was cut {} and goes on from its beginning."),
            (sum(t.num_long for t in tails), "A line was too long to be read to its end {}."),
            (back, "The clock of the log went back {}: time goes on from where it was."),
            (leaps, "The clock of the log leapt by more than a month {}: the leap is left out."),
        )
        odd = [text.format("once" if n == 1 else f"{n:,} times") for n, text in counts if n]
        if logs and not any(x.clock.prints for x in logs):
            odd.append("No line prints a time: stops that the log does not show are not counted.")
        return (*self.notes, *odd, *_two_jobs(logs))

    def _of(
        self, file: _File, arrived: float | None, is_last: bool
    ) -> Iterator[StepRecord | LineSign]:
        for text in file.tail.lines(is_last=is_last):
            yield from file.log.line(text, arrived)
        yield from file.log.settled()


def tail_of(path: Path) -> Tail | History | EventFile:
    """What follows a file, by its name."""
    if path.name == "trainer_state.json":
        return History(path=path)
    if not is_tracked(path):
        return Tail(path=path)
    return Metric(path=path) if name_of(path) else EventFile(path=path)


def _two_jobs(logs: tuple[LogLines, ...]) -> tuple[str, ...]:
    """Facts in which files, or starts in one file, contradict each other: they are not of one
    job."""
    found = [
        f"The file goes on with another job: {name} is {before:,}, then {since:,}."
        for log in logs
        for name, (before, since) in log.contradictions.items()
    ]
    for name in ("num_gpus", "seq_len", "global_batch_size"):
        values = sorted({x.facts[name] for x in logs if name in x.facts})
        if len(values) > 1:
            found.append(
                f"The files disagree on {name} ({', '.join(map(str, values))}): they may be of two "
                "jobs."
            )
    return tuple(found)


def check_starts(source: Path) -> None:
    """Raise ImportFileError for a source that can never become a log."""
    if not source.exists() and not source.parent.is_dir():
        raise ImportFileError(f"The folder of {shown(str(source))} does not exist.")

"""Files of trackers while they grow: TensorBoard, Weights & Biases, MLflow.

TensorBoard, tensorflow/core/lib/io/record_writer.h and core/util/event.proto: a record is 8 bytes
of length, 4 of checksum, an Event and 4 of checksum. Event: wall_time 1, step 2, summary 5; of each
of its values 1: tag 1, simple_value 2, tensor 8 with float_val 5 or tensor_content 4.

Weights & Biases, wandb/sdk/internal/datastore.py and wandb_internal.proto: 7 bytes, then blocks of
32 KiB as in LevelDB's log, whose pieces have 4 bytes of checksum, 2 of length and 1 of kind (whole,
first, middle, last). Record: history 2; of each of its items 1: key 1, nested_key 2, value_json 16.
Checksums are not checked: what is broken has no figure that is read.

MLflow, mlflow/store/tracking/file_store.py (`_log_run_metric`), runs/metrics/NAME: a line
`milliseconds value step`. One metric is followed: the training loss, or the seconds of a step where
the run has them; a name with a slash is a folder.

Figures become lines that the reader of step times knows. A step is given when the next one begins.
Its seconds are what the program tracked, else the time between this tracked step and the one before
it; a step without a training loss or a time of its own is an evaluation, and is left out.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from hardware.outside.json_text import LINE, OutsideError, json_value
from runners.imports.text import ImportFileError
from runners.watch.follow import Tail

CHUNK = 1 << 20
LARGEST = 1 << 22  # bytes of a record: one of figures has some hundred
BLOCK, HEAD, WHOLE, FIRST, LAST = 32_768, 7, 1, 2, 4
FOLDER = "metrics"
MOST_FIELDS = 10_000
_LOSS = re.compile(
    r"(?:^|[/_.])(?:lm[ _]loss|reduced_train_loss|(?:train|training)[/_. ]?loss|loss"
    r"|global_avg_loss)$",
    re.IGNORECASE,
)
_SECONDS = re.compile(
    r"(?:^|/)(?:iteration-time|train_step_timing in s|step_time(?:_s)?"
    r"|time_metrics/end_to_end\(s\))$"
)
_OTHERS = re.compile(r"(?:^|[/_.])(?:val|valid|validation|eval|test)(?:[/_. ]|$)", re.IGNORECASE)
END_OF_TIME = 4e9  # of a clock
LAST_STEP = 10**9


@dataclass(slots=True)
class Scalars:
    """Steps as they come."""

    _step: int | None = None
    _at_s: float = 0.0
    _loss: float | None = None
    _seconds: float | None = None
    _before: tuple[int, float] | None = field(default=None, repr=False)

    def add(self, *, at_s: float, step: int, name: str, value: float) -> Iterator[str]:
        """Take one figure; the line of the step before it, if it begins another."""
        is_loss, is_time = _LOSS.search(name), _SECONDS.search(name)
        if _OTHERS.search(name) or not 0 <= step < LAST_STEP or not 0 <= at_s < END_OF_TIME:
            return
        if not (is_loss or is_time):
            return
        if step != self._step:
            yield from self.ended()
            self._step = step
        self._at_s = at_s
        if is_loss:
            self._loss = value
        elif math.isfinite(value) and value > 0:
            self._seconds = value

    def ended(self) -> Iterator[str]:
        """The line of the step so far."""
        if self._step is None:
            return
        step, at_s, seconds, before = self._step, self._at_s, self._seconds, self._before
        if seconds is None and before is not None and step > before[0] and at_s > before[1]:
            seconds = (at_s - before[1]) / (step - before[0])
        if seconds is not None:
            moment = dt.datetime.fromtimestamp(at_s, dt.UTC)
            loss = "" if self._loss is None else f" loss: {self._loss:.7g}"
            yield (
                f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond:06d} Progress on:train "
                f"{step}it/- rate:{min(seconds, 1e8):.6f}s/it{loss}"
            )
        self._before = step, at_s
        self._step = self._loss = self._seconds = None


@dataclass(slots=True, kw_only=True)
class EventFile:
    """One file; `lines` gives what came since it was last asked."""

    path: Path
    _at: int = 0
    _parts: bytes = b""
    _scalars: Scalars = field(default_factory=Scalars)

    def lines(self, *, is_last: bool = False) -> Iterator[str]:
        """Lines of steps that are whole."""
        is_wandb = self.path.suffix == ".wandb"
        try:
            with self.path.open("rb") as file:
                if self.path.stat().st_size < self._at:
                    self._at = 0
                for record in self._wandb(file) if is_wandb else self._tensorboard(file):
                    for at_s, step, name, value in _history(record) if is_wandb else _event(record):
                        yield from self._scalars.add(at_s=at_s, step=step, name=name, value=value)
        except OSError as e:
            raise ImportFileError(f"{self.path.name} cannot be read: {e.strerror}.") from None
        if is_last:
            yield from self._scalars.ended()

    def _tensorboard(self, file: BinaryIO) -> Iterator[bytes]:
        while True:
            file.seek(self._at)
            head = file.read(12)
            if len(head) < 12:
                return
            (size,) = struct.unpack("<Q", head[:8])
            if size > LARGEST:  # a picture or a graph
                if self._at + size + 16 > self.path.stat().st_size:
                    return
                self._at += size + 16
                continue
            record = file.read(size + 4)
            if len(record) < size + 4:
                return
            self._at += size + 16
            yield record[:size]

    def _wandb(self, file: BinaryIO) -> Iterator[bytes]:
        self._at = max(self._at, HEAD)
        while True:
            left = BLOCK - self._at % BLOCK
            if left < HEAD:
                self._at += left
            file.seek(self._at)
            head = file.read(HEAD)
            if len(head) < HEAD:
                return
            size, kind = struct.unpack("<HB", head[4:])
            if not WHOLE <= kind <= LAST:  # no piece: the rest of the block is skipped
                self._at += BLOCK - self._at % BLOCK
                continue
            piece = file.read(size)
            if len(piece) < size:
                return
            self._at += HEAD + size
            if kind in (WHOLE, FIRST):
                self._parts = b""
            if len(self._parts) < LARGEST:
                self._parts += piece
            if kind in (WHOLE, LAST):
                yield self._parts
                self._parts = b""


Figure = tuple[float, int, str, float]  # time, step, name, value


def _event(record: bytes) -> Iterator[Figure]:
    at_s, step, summaries = 0.0, 0, []
    for number, value in fields(record):
        if number == 1 and isinstance(value, bytes) and len(value) == 8:
            (at_s,) = struct.unpack("<d", value)
        elif number == 2 and isinstance(value, int):
            step = value
        elif number == 5 and isinstance(value, bytes):
            summaries.append(value)
    if not math.isfinite(at_s):
        return
    for summary in summaries:
        for number, value in fields(summary):
            if number == 1 and isinstance(value, bytes):
                name, figure = _tagged(value)
                if figure is not None:
                    yield at_s, step, name, figure


def _tagged(message: bytes) -> tuple[str, float | None]:
    name, figure = "", None
    for number, value in fields(message):
        if number == 1 and isinstance(value, bytes):
            name = value[:200].decode("utf-8", errors="replace")
        elif number == 2 and isinstance(value, bytes) and len(value) == 4:
            (figure,) = struct.unpack("<f", value)
        elif number == 8 and isinstance(value, bytes):
            for inner, content in fields(value):
                if inner in (4, 5) and isinstance(content, bytes) and len(content) == 4:
                    (figure,) = struct.unpack("<f", content)
    return name, figure


def _history(record: bytes) -> Iterator[Figure]:
    found: dict[str, float] = {}
    for number, history in fields(record):
        if number != 2 or not isinstance(history, bytes):
            continue
        for inner, item in fields(history):
            if inner == 1 and isinstance(item, bytes):
                name, value = _item(item)
                if value is not None:
                    found[name] = value
    step = found.get("train/global_step", found.get("_step", math.nan))
    if math.isfinite(step) and math.isfinite(found.get("_timestamp", math.nan)):
        for name, value in found.items():
            yield found["_timestamp"], int(step), name, value


def _item(message: bytes) -> tuple[str, float | None]:
    names: list[str] = []
    value = None
    for number, content in fields(message):
        if number in (1, 2) and isinstance(content, bytes) and content:
            names.append(content[:200].decode("utf-8", errors="replace"))
        elif number == 16 and isinstance(content, bytes) and len(content) < 100:
            with suppress(OutsideError):
                parsed = json_value(content, LINE)
                if isinstance(parsed, (int, float)):
                    value = float(parsed)
    return ".".join(names), value


def name_of(path: Path) -> str:
    """The metric that a file holds; '' if it is in no file store.

    >>> name_of(Path("mlruns/0/1f/metrics/train/loss")), name_of(Path("metrics.csv"))
    ('train/loss', '')
    """
    parts = path.parts[-4:]
    if FOLDER not in parts[:-1] or path.suffix:
        return ""
    at = len(parts) - 1 - parts[::-1].index(FOLDER)
    return "/".join(parts[at + 1 :])


@dataclass(slots=True, kw_only=True)
class Metric(Tail):
    """One metric of MLflow; `lines` gives what came since it was last asked."""

    _scalars: Scalars = field(default_factory=Scalars)

    def lines(self, *, is_last: bool = False) -> Iterator[str]:
        """Lines of steps that are whole."""
        for line in Tail.lines(self, is_last=is_last):
            words = line.split()
            try:
                at_s, value, step = float(words[0]) / 1e3, float(words[1]), int(words[2])
            except (ValueError, IndexError):
                continue
            yield from self._scalars.add(at_s=at_s, step=step, name=name_of(self.path), value=value)
        if is_last:
            yield from self._scalars.ended()


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field of a protobuf message, as far as it is not broken.

    https://protobuf.dev/programming-guides/encoding: a key of number and wire type, then a varint
    (0), 8 bytes (1), a length and bytes (2) or 4 bytes (5).
    """
    at = 0
    for _ in range(MOST_FIELDS):
        key, at = _varint(message, at)
        if key is None:
            return
        kind = key & 7
        if kind == 0:
            value, at = _varint(message, at)
            if value is None:
                return
            yield key >> 3, value
            continue
        size: int | None = {1: 8, 5: 4}.get(kind)
        if kind == 2:
            size, at = _varint(message, at)
        if size is None or at + size > len(message):
            return
        yield key >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int | None, int]:
    value = 0
    for n in range(10):
        if at >= len(message):
            return None, at
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << (7 * n)
        if byte < 0x80:
            return value, at
    return None, at

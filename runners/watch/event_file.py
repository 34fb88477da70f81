"""Event files of TensorBoard and .wandb files of Weights & Biases, while they grow.

TensorBoard, tensorflow/core/lib/io/record_writer.h and core/util/event.proto: a record is 8 bytes
of length, 4 of checksum, an Event and 4 of checksum. Event: wall_time 1, step 2, summary 5; of each
of its values 1: tag 1, simple_value 2, tensor 8 with float_val 5 or tensor_content 4.

Weights & Biases, wandb/sdk/internal/datastore.py and wandb_internal.proto: 7 bytes, then blocks of
32 KiB as in LevelDB's log, whose pieces have 4 bytes of checksum, 2 of length and 1 of kind (whole,
first, middle, last). Record: history 2; of each of its items 1: key 1, nested_key 2, value_json 16.
Checksums are not checked: what is broken has no figure that is read.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from hardware.outside.json_text import LINE, OutsideError, json_value
from runners.imports.text import ImportFileError
from runners.watch.protobuf import fields
from runners.watch.scalars import Scalars

CHUNK = 1 << 20
LARGEST = 1 << 22  # bytes of a record: one of figures has some hundred
BLOCK, HEAD, WHOLE, FIRST, LAST = 32_768, 7, 1, 2, 4


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

    def close(self) -> None:
        """Nothing stays open."""

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

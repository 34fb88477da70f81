"""The program that asks price sources, a copy of it for each, for `pricing.source_process`.

It reads questions in the first line of its input and writes each answer into the file number that
its question names. The kernel ends a copy that goes on after its deadline and refuses it more
memory than its own; all of them are ended when the input is closed, which a killed refresh does.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

from hardware.outside.json_text import json_value
from pricing.fetched import ANSWER, Fetched, as_json, fetched
from pricing.process_limit import limit
from pricing.providers.boundary import use_machines
from pricing.sources import Source

LATE_S = 0.5  # after its deadline a source has ended by itself, or its process is ended
CAN_COPY = hasattr(os, "fork")


def main() -> None:
    """Answer the questions in the first line of the input, and end all copies at its end."""
    if CAN_COPY:
        os.write(1, b".")  # ready
    question = json_value(sys.stdin.buffer.readline(), ANSWER)
    use_machines({(p, t): (gpu, count) for p, t, gpu, count in question["machines"]})
    asked = question["asked"]
    if not CAN_COPY:
        _limit(asked[0])
        _answer(asked[0])
        return
    copies = []
    for one in asked:
        copy = os.fork()
        if not copy:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            try:
                _limit(one)
                for other in asked:
                    if other is not one:
                        os.close(other["to"])
                _answer(one)
            finally:
                os._exit(0)
        copies.append(copy)
    for one in asked:
        os.close(one["to"])
    sys.stdin.buffer.read()
    for copy in copies:
        os.kill(copy, signal.SIGKILL)  # not waited for until now, so the number is still its own
        os.waitpid(copy, 0)


def _limit(one: Mapping[str, Any]) -> None:
    limit(one["began_s"] + one["deadline_s"] + LATE_S - time.monotonic(), one["memory_bytes"])


def _answer(one: Mapping[str, Any]) -> None:
    """Ask one source and write what it answers. A bug in one must not affect the others."""
    module, _, name = one["fetch"].partition(":")
    source = Source(
        name=one["name"], says="", fetch=getattr(import_module(module), name),
        deadline_s=one["deadline_s"], cap_bytes=one["cap_bytes"],
    )  # fmt: skip
    off = timedelta(seconds=one["clock_s"])
    try:
        found = fetched(
            source, one["environ"], Path(one["cache"]) if one["cache"] else None,
            one["last_rows"], lambda: datetime.now(UTC) + off, began_s=one["began_s"],
        )  # fmt: skip
        text = as_json(found, "")
    except MemoryError:
        most = one["memory_bytes"] >> 20
        text = _failed(source, f"Reading it takes more than {most} MiB of memory.", "")
    except BaseException as e:  # noqa: BLE001 - whatever it was, there is an answer
        sentence = f"A fault of this program, not of the source: {type(e).__name__}."
        text = _failed(source, sentence, traceback.format_exc())
    with os.fdopen(one["to"], "wb") as answer:
        answer.write(text)


def _failed(source: Source, sentence: str, fault: str) -> bytes:
    return as_json(Fetched(source=source, status="failed", sentence=sentence), fault)

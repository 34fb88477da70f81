"""Each price source in a process of its own, whose seconds and memory the kernel limits.

A decoder that hangs in one call, needs gigabytes or crashes ends its own process and nothing else.
One program is started for all of them and makes a copy of itself (a fork) for each source, so that
the tables which all of them read are loaded once; where processes cannot be copied (Windows), one
program for each source, with a limit of time alone. Question and answer are JSON over pipes. The
program ends its copies when its input is closed, also where the refresh itself was killed.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from hardware.outside.json_text import OutsideError
from pricing.fetched import ANSWER, Fetched, from_json
from pricing.providers.boundary import bundled_machines
from pricing.source_program import CAN_COPY
from pricing.sources import Source

MEMORY_BYTES = 512 * 2**20  # of one source, beyond what the program itself has
START_S = 20.0  # until the program has loaded what it needs
END_S = 10.0  # until the program has ended its copies
# -P and the same folders: a module of ours is never looked for in the folder of the caller.
_START = "import sys; sys.path[:] = {}; from pricing.source_program import main; main()"

Answered = Callable[[Fetched, str], None]  # a source, and the trace of a fault of this program


def importable(source: Source) -> str:
    """Where another process finds the function of a source: 'module:name', '' if nowhere."""
    module = getattr(source.fetch, "__module__", "__main__")
    name = getattr(source.fetch, "__qualname__", "")
    is_found = getattr(sys.modules.get(module), name, None) is source.fetch
    return f"{module}:{name}" if is_found and module != "__main__" else ""


@contextmanager
def answering(
    sources: Sequence[Source],
    *,
    environ: Mapping[str, str],
    caches: Path | None,
    last_rows: Mapping[str, int],
    now: Callable[[], datetime],
    answered: Answered,
) -> Iterator[None]:
    """In the block these sources are asked, and `answered` is called for each in a thread; at its
    end their processes are."""
    programs: list[subprocess.Popen[bytes]] = []
    pipes = [os.pipe() for _ in sources] if CAN_COPY else []
    answers: list[IO[bytes]] = [os.fdopen(read, "rb") for read, _ in pipes]
    to = [write for _, write in pipes] or [1 for _ in sources]
    try:
        try:
            programs += map(_started, [to] if pipes else [()] * len(sources))
        finally:
            for _, write in pipes:
                os.close(write)
        answers = answers or [p.stdout for p in programs if p.stdout is not None]
        machines = [(*what, *of) for what, of in bundled_machines().items()]
        for program in programs if CAN_COPY else ():
            if program.stdout is not None:
                select.select([program.stdout], [], [], START_S)  # it is no time of a source
        began_s = time.monotonic()
        asked = [
            {
                "fetch": importable(s), "name": s.name, "deadline_s": s.deadline_s,
                "cap_bytes": s.cap_bytes, "environ": dict(environ), "to": to[n],
                "cache": str(caches / s.name) if caches else "", "last_rows": last_rows[s.name],
                "clock_s": (now() - datetime.now(UTC)).total_seconds(), "began_s": began_s,
                "memory_bytes": MEMORY_BYTES,
            }
            for n, s in enumerate(sources)
        ]  # fmt: skip
        for program, part in zip(programs, [asked] if pipes else [[a] for a in asked], strict=True):
            _put(program, {"machines": machines, "asked": part})
        for source, answer in zip(sources, answers, strict=True):
            threading.Thread(
                target=_listen, args=(source, answer, began_s, answered),
                name=f"source {source.name}", daemon=True,
            ).start()  # fmt: skip
        yield
    finally:
        for program in programs:
            _end(program)


def _started(pass_fds: Sequence[int]) -> subprocess.Popen[bytes]:
    """The program. It has a session of its own, so that Ctrl-C reaches the refresh alone."""
    paths = [os.path.abspath(p) for p in sys.path]
    return subprocess.Popen(
        [sys.executable, "-P", "-W", "ignore", "-c", _START.format(paths)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True, pass_fds=pass_fds,
    )  # fmt: skip


def _put(program: subprocess.Popen[bytes], question: Mapping[str, Any]) -> None:
    if program.stdin is not None:
        with suppress(OSError):  # it has ended already: its pipes say so
            program.stdin.write(json.dumps(question).encode() + b"\n")
            program.stdin.flush()


def _end(program: subprocess.Popen[bytes]) -> None:
    """End it with its copies: it ends them when its input is closed."""
    with suppress(OSError):
        if program.stdin is not None:
            program.stdin.close()
    try:
        program.wait(timeout=END_S if CAN_COPY else 0.0)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()
    if CAN_COPY and program.stdout is not None:
        program.stdout.close()


def _listen(source: Source, answer: IO[bytes], began_s: float, answered: Answered) -> None:
    """Read what the process of a source writes until it ends."""
    with answer:
        text = answer.read(ANSWER.num_bytes + 1)
    try:
        found, fault = from_json(source, text)
    except (OutsideError, KeyError, TypeError, ValueError):
        found, fault = Fetched(source=source, status="failed"), ""
        took_s = time.monotonic() - began_s
        found.seconds = took_s
        found.sentence = (
            f"It took longer than its {source.deadline_s:g} s."
            if took_s >= source.deadline_s
            else "The process that reads it ended without an answer: its memory or a fault of this "
            "program."
        )
    answered(found, fault)

"""Interface of launchers, and calls of external programs."""

from __future__ import annotations

import os
import selectors
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, cast

from runners.launchers.job import Job
from runners.launchers.on_node import STOPPED
from runners.launchers.quoting import LaunchError, UnreachableError

State = Literal["queued", "running", "done", "failed"]
Command = tuple[str, ...]
OUTPUT_BYTES = 64 * 2**20  # of one command
CHUNK_BYTES = 65_536  # read at a time
LOOK_S = 0.1  # between looks whether a program has ended whose output is still open
SAID = 200  # characters of a program's output that a sentence repeats


@dataclass(frozen=True, slots=True)
class Launch:
    """What a launch runs: files by their path, and commands in order."""

    files: Mapping[str, bytes]
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """State of a run, and its output since the last poll."""

    state: State
    sentence: str = ""  # why it is queued, or why it failed
    log: str = ""


class Launcher(ABC):
    """A place where jobs run. `submit` finds an existing job with the id instead of starting a
    second one; its handle is what `poll` and the other methods need, even in a later process."""

    poll_s: float  # between two polls

    @property
    @abstractmethod
    def where(self) -> str:
        """Name of the place, in a few words."""

    @abstractmethod
    def plan(self, job: Job) -> Launch:
        """What `submit` would write and run, without doing it."""

    @abstractmethod
    def submit(self, job: Job) -> str:
        """Start the job, or find it if it exists."""

    @abstractmethod
    def find(self, job: Job) -> str:
        """The handle of a job that may have been submitted; '' if there certainly is none."""

    @abstractmethod
    def poll(self, job: Job, handle: str) -> Progress:
        """Poll the state of the job."""

    @abstractmethod
    def cancel(self, job: Job, handle: str) -> None:
        """End the job and everything that it started."""

    @abstractmethod
    def collect(self, job: Job, handle: str) -> str:
        """The text with the result of a finished job."""

    def close(self, job: Job, handle: str) -> None:  # noqa: B027 - most leave nothing behind
        """Clean up, after the result is stored or the job cancelled."""

    def hang_up(self) -> None:  # noqa: B027 - most keep no connection
        """Close connections; the job continues."""


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def last_line(self) -> str:
        """The last line of its output, for a sentence."""
        lines = [line.strip() for line in (self.err or self.out).splitlines() if line.strip()]
        if not lines:
            return f"exit status {self.status}"
        return "".join(c if c.isprintable() else "?" for c in lines[-1][:SAID]).rstrip(".")


def called(command: Sequence[str], *, timeout_s: float, stdin: bytes = b"") -> Done:
    """Run a program to its end, which comes at once when it prints more than the bound."""
    try:
        with tempfile.TemporaryFile() as given:
            given.write(stdin)
            given.seek(0)
            process = subprocess.Popen(
                list(command), stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
    except FileNotFoundError:
        raise LaunchError(f"The program {command[0]} is not installed here.") from None
    with process:
        try:
            texts = _printed(command[0], process, time.monotonic() + timeout_s)
            if texts is None:
                raise UnreachableError(f"{command[0]} did not answer within {timeout_s:.0f} s.")
            status = process.wait(LOOK_S)
        except BaseException:
            process.kill()
            raise
        finally:
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
    return Done(status, *texts)


def _printed(program: str, process: subprocess.Popen[bytes], over: float) -> tuple[str, str] | None:
    """What a program prints until it ends; None if it is not over in time. Its end is looked for,
    too, because a connection that ssh keeps open holds the pipes open."""
    found = {pipe: bytearray() for pipe in (process.stdout, process.stderr) if pipe}
    with selectors.DefaultSelector() as open_pipes:
        for pipe in found:
            os.set_blocking(pipe.fileno(), False)
            open_pipes.register(pipe, selectors.EVENT_READ)
        while True:
            has_ended = process.poll() is not None
            wait_s = 0.0 if has_ended else LOOK_S
            ready = open_pipes.select(wait_s) if open_pipes.get_map() else []
            for key, _ in ready:
                pipe = cast(IO[bytes], key.fileobj)
                piece = os.read(pipe.fileno(), CHUNK_BYTES)
                found[pipe] += piece
                if not piece:
                    open_pipes.unregister(pipe)
                if sum(map(len, found.values())) > OUTPUT_BYTES:
                    raise LaunchError(
                        f"{program} printed more than {OUTPUT_BYTES // 2**20} MiB and was ended."
                    )
            if not open_pipes.get_map() and not has_ended:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(min(LOOK_S, max(0.0, over - time.monotonic())))
            elif has_ended and not ready:
                out, err = (text.decode("utf-8", "replace") for text in found.values())
                return out, err
            if time.monotonic() > over:
                return None


def why_ended(log: str) -> str:
    """What the last node said of why it ended. That it was stopped is no reason where another gives
    one: where a node fails, the place stops the others, and they speak last."""
    mark = "runcast: node"
    said = [mark + line.partition(mark)[2].rstrip() for line in log.splitlines() if mark in line]
    return ([one for one in said if not one.endswith(STOPPED)] or said or [""])[-1]


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files of a launch to a private folder of this machine."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, content in files.items():
        (folder / name).write_bytes(content)

"""What every launcher does, and how a program of somebody else is called."""

from __future__ import annotations

import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from runners.launchers.job import Job
from runners.launchers.on_node import STOPPED
from runners.launchers.quoting import LaunchError, UnreachableError

State = Literal["queued", "running", "done", "failed"]
Command = tuple[str, ...]
OUTPUT_BYTES = 64 * 2**20  # of one command
SAID = 200  # characters of what a program said that a sentence repeats


@dataclass(frozen=True, slots=True)
class Launch:
    """What would run: files by the place where they are written, commands in their order."""

    files: Mapping[str, bytes]
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """How a run is, and what it has printed since it was asked the last time."""

    state: State
    sentence: str = ""  # why it is queued, or why it failed
    log: str = ""


class Launcher(ABC):
    """A place where a job runs. `submit` finds a job of the same id instead of a second one; its
    handle is what `poll` and the others need in a later process."""

    poll_s: float  # between two polls

    @property
    @abstractmethod
    def where(self) -> str:
        """The place, in a few words."""

    @abstractmethod
    def plan(self, job: Job) -> Launch:
        """Exactly what `submit` would write and run; nothing is touched."""

    @abstractmethod
    def submit(self, job: Job) -> str:
        """Start the job, or find it."""

    @abstractmethod
    def find(self, job: Job) -> str:
        """The handle of a job that may have been submitted; '' where there surely is none."""

    @abstractmethod
    def poll(self, job: Job, handle: str) -> Progress:
        """Ask how it is."""

    @abstractmethod
    def cancel(self, job: Job, handle: str) -> None:
        """End it and all that it started."""

    @abstractmethod
    def collect(self, job: Job, handle: str) -> str:
        """The text that holds the result of a job that is done."""

    def close(self, job: Job, handle: str) -> None:  # noqa: B027 - most leave nothing behind
        """After the result is safe, or after a cancel: leave nothing behind."""

    def hang_up(self) -> None:  # noqa: B027 - most keep no connection
        """Let go of connections; the job goes on."""


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def last_line(self) -> str:
        """What it complained of, as a part of a sentence."""
        lines = [line.strip() for line in (self.err or self.out).splitlines() if line.strip()]
        if not lines:
            return f"exit status {self.status}"
        return "".join(c if c.isprintable() else "?" for c in lines[-1][:SAID]).rstrip(".")


def called(command: Sequence[str], *, timeout_s: float, stdin: bytes = b"") -> Done:
    """Run a program to its end. Its output goes to files: a connection that ssh keeps open would
    hold a pipe open, too."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            with tempfile.TemporaryFile() as given:
                given.write(stdin)
                given.seek(0)
                process = subprocess.Popen(list(command), stdin=given, stdout=out, stderr=err)
        except FileNotFoundError:
            raise LaunchError(f"The program {command[0]} is not installed here.") from None
        try:
            status = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise UnreachableError(
                f"{command[0]} did not answer within {timeout_s:.0f} s."
            ) from None
        except BaseException:
            process.kill()
            process.wait()
            raise
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read(OUTPUT_BYTES).decode("utf-8", "replace"))
    return Done(status, *texts)


def why_ended(log: str) -> str:
    """What the last node said of why it ended. That it was stopped is no reason where another gives
    one: where a node fails, the place stops the others, and they speak last."""
    mark = "runcast: node"
    said = [mark + line.partition(mark)[2].rstrip() for line in log.splitlines() if mark in line]
    return ([one for one in said if not one.endswith(STOPPED)] or said or [""])[-1]


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """The files of a launch, in a folder of this machine that nobody else reads."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, content in files.items():
        (folder / name).write_bytes(content)

"""Local launcher: the probe in a session of its own, which outlives this process."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

from runners.launchers.job import SUPERVISOR, Job
from runners.launchers.launcher import Command, Launch, Launcher, Progress, called, write_files
from runners.launchers.nodes import Nodes
from runners.launchers.quoting import LaunchError


@dataclass
class Local(Launcher):
    """This machine, which needs only Python with torch."""

    poll_s: float = 0.3
    _nodes: dict[str, Nodes] = field(default_factory=dict)

    @property
    def where(self) -> str:
        return "this machine"

    def plan(self, job: Job) -> Launch:
        files = {str(job.folder / n): c for n, c in self._files(job).items()}
        return Launch(files, (_verb(job, "start", str(job.folder), "0"),))

    def submit(self, job: Job) -> str:
        write_files(job.folder, self._files(job))
        hello = self._of(job).ask(0, "hello")
        check_torch("this machine", hello, job)
        self._of(job).ask(0, "start", str(job.folder), "0")
        return str(job.folder)

    def find(self, job: Job) -> str:
        return str(job.folder) if (job.folder / SUPERVISOR).exists() else ""

    def poll(self, job: Job, handle: str) -> Progress:
        return self._of(job).poll(handle)

    def cancel(self, job: Job, handle: str) -> None:
        self._of(job).stop(handle)

    def collect(self, job: Job, handle: str) -> str:
        done = called(_verb(job, "result", handle), timeout_s=30)
        if done.status:
            raise LaunchError(f"There is no result: {done.last_line}.")
        return done.out

    def _files(self, job: Job) -> dict[str, bytes]:
        return job.files(master_addr="127.0.0.1", detached=True)

    def _of(self, job: Job) -> Nodes:
        if job.run_id not in self._nodes:

            def call(_: int, verb: Command, timeout_s: float) -> str:
                done = called(_verb(job, *verb), timeout_s=timeout_s)
                if done.status:
                    raise LaunchError(f"The run cannot be started here: {done.last_line}.")
                return done.out

            self._nodes[job.run_id] = Nodes(["this machine"], call)
        return self._nodes[job.run_id]


def _verb(job: Job, *verb: str) -> Command:
    python = sys.executable if job.python == "python3" else job.python
    return (python, str(job.folder / SUPERVISOR), *verb)


def check_torch(name: str, hello: dict[str, Any], job: Job) -> None:
    """LaunchError if the Python of the node has no torch."""
    if not hello.get("torch"):
        raise LaunchError(
            f"Python {hello.get('python')} of {name} ({job.python}) has no torch: name one that "
            "has with --python."
        )

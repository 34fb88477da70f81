"""Launcher for any cloud, through SkyPilot's `sky` with its own environment and credentials.

The cluster is made for the run and taken down after it; it also takes itself down minutes after the
probe has ended.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import Any

import yaml  # type: ignore[import-untyped, unused-ignore]

from core.errors import RuncastError
from hardware import names
from runners.launchers.job import SUPERVISOR, Job
from runners.launchers.launcher import (
    Command,
    Launch,
    Launcher,
    Progress,
    called,
    why_ended,
    write_files,
)
from runners.launchers.quoting import LaunchError, UnreachableError

LAUNCH_S = 2400.0  # a cloud needs minutes to start machines
CALL_S = 180.0
IDLE_MINUTES = 5
TASK = "task.yaml"
_SUCCEEDED, _FAILED, _NOT_FINISHED, _NOT_FOUND, _CANCELLED = 0, 100, 101, 102, 103
_PREFIX = re.compile(
    r"^(?:\x1b\[[\d;]*m)*\([^()]*pid=\d+[^()]*\)(?:\x1b\[[\d;]*m)* ?", re.MULTILINE
)
_ACCELERATORS = re.compile(r"([A-Za-z0-9-]{1,40}):(\d{1,2})")
_INFRA = re.compile(r"[a-z0-9]{1,30}(?:/[A-Za-z0-9-]{1,60}){0,2}")

_RUN = """\
set -e
cd {folder}
MASTER_ADDR=$(printf '%s\\n' "$SKYPILOT_NODE_IPS" | head -n 1)
export MASTER_ADDR
exec {program} "$SKYPILOT_NODE_RANK"
"""


@dataclass
class SkyPilot(Launcher):
    """A cluster of its own for the run, named after it."""

    accelerators: str  # in SkyPilot's notation, H100:8
    infra: str = ""  # aws, gcp/us-central1; '': the cheapest that SkyPilot finds
    use_spot: bool = False
    poll_s: float = 10.0
    _read: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found = _ACCELERATORS.fullmatch(self.accelerators)
        if found is None or not int(found[2]):
            raise LaunchError(
                f"--gpu {self.accelerators!r} is not what SkyPilot calls its machines: give a name "
                "and how many a node has, like H100:8."
            )
        try:
            names.canonical(found[1])  # SkyPilot accepts any name and any region without an error
        except RuncastError as e:
            raise LaunchError(str(e)) from None
        if self.infra and not _INFRA.fullmatch(self.infra):
            raise LaunchError(f"--infra {self.infra!r} is not like aws, gcp/us-central1.")

    @property
    def where(self) -> str:
        return f"SkyPilot, {self.accelerators}" + (f", {self.infra}" if self.infra else "")

    def task(self, job: Job) -> dict[str, Any]:
        """The task in the form of SkyPilot's YAML."""
        folder = f"~/{job.name}"
        program = shlex.join([job.python, SUPERVISOR, "run", "."])
        resources: dict[str, Any] = {"accelerators": self.accelerators}
        if self.infra:
            resources["infra"] = self.infra
        if self.use_spot:
            resources["use_spot"] = True
        check = shlex.join([job.python, "-c", "import torch"])
        install = shlex.join([job.python, "-m", "pip", "install", "torch"])
        return {
            "name": job.name,
            "num_nodes": job.num_nodes,
            "resources": resources,
            "file_mounts": {f"{folder}/{name}": str(job.folder / name) for name in job.files()},
            "setup": f"{check} || {install}\n",
            "run": _RUN.format(folder=folder, program=program),
        }

    def plan(self, job: Job) -> Launch:
        files = {str(job.folder / n): c for n, c in self._files(job).items()}
        return Launch(files, (self._launch(job),))

    def submit(self, job: Job) -> str:
        state = called(self._status(job), timeout_s=CALL_S).status
        if state in (_FAILED, _CANCELLED):
            self._down(job)  # the next job of the same cluster would have another number
        if state not in (_SUCCEEDED, _NOT_FINISHED):
            self._read.pop(job.run_id, None)
            write_files(job.folder, self._files(job))
            done = called(self._launch(job), timeout_s=LAUNCH_S)
            if done.status:
                self._down(job)
                raise LaunchError(f"sky launch failed: {done.last_line}.")
        return job.name

    def find(self, job: Job) -> str:
        return job.name

    def poll(self, job: Job, handle: str) -> Progress:
        status = called(self._status(job), timeout_s=CALL_S)
        log = self._new_log(job)
        if status.status in (_SUCCEEDED, _NOT_FINISHED):
            return Progress("done" if status.status == _SUCCEEDED else "running", "", log)
        words = {_FAILED: "failed", _CANCELLED: "was cancelled", _NOT_FOUND: "is not there"}
        if status.status not in words:
            raise UnreachableError(f"sky does not know how {handle} is: {status.last_line}.")
        self._down(job)  # what it said is here, and the machines cost money
        said = why_ended(log)
        why = f": {said}" if said else ""
        return Progress("failed", f"the job on cluster {handle} {words[status.status]}{why}", log)

    def cancel(self, job: Job, handle: str) -> None:
        self._down(job)

    def collect(self, job: Job, handle: str) -> str:
        return self._log(job)

    def close(self, job: Job, handle: str) -> None:
        """Take the machines down, which cost money until then."""
        self._down(job)

    def _files(self, job: Job) -> dict[str, bytes]:
        text = yaml.safe_dump(self.task(job), sort_keys=False, width=100)
        return {**job.files(), TASK: text.encode()}

    def _launch(self, job: Job) -> Command:
        return (
            "sky", "launch", "--yes", "--detach-run", "--down", "--idle-minutes-to-autostop",
            str(IDLE_MINUTES), "--cluster", job.name, str(job.folder / TASK),
        )  # fmt: skip

    def _status(self, job: Job) -> Command:
        return ("sky", "logs", "--status", job.name, "1")

    def _log(self, job: Job) -> str:
        """The output, without the node name that SkyPilot prefixes to each line."""
        done = called(
            ("sky", "logs", "--no-follow", "--tail", "0", job.name, "1"), timeout_s=CALL_S
        )
        return _PREFIX.sub("", done.out)

    def _new_log(self, job: Job) -> str:
        text = self._log(job)
        at = self._read.get(job.run_id, 0)
        self._read[job.run_id] = len(text)
        return text[at:]

    def _down(self, job: Job) -> None:
        done = called(("sky", "down", "--yes", job.name), timeout_s=LAUNCH_S)
        if done.status and "not found" not in (done.out + done.err).lower():
            raise LaunchError(
                f"The cluster {job.name} may still run and cost money: sky down said "
                f"{done.last_line}."
            )

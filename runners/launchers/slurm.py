"""Launcher for SLURM, with `sbatch`, `scontrol` and `scancel` of this machine.

`scontrol show job` answers while a job is known (MinJobAge after its end) and needs no accounting;
after that `sacct` is used, if there is one. The folder of the run must be shared with the nodes.
"""

from __future__ import annotations

import getpass
import math
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from runners.launchers.job import SUPERVISOR, Job
from runners.launchers.launcher import (
    Done,
    Launch,
    Launcher,
    Progress,
    State,
    called,
    why_ended,
    write_files,
)
from runners.launchers.quoting import LaunchError, UnreachableError
from runners.launchers.slurm_software import Software

CALL_S = 30.0
SCRIPT = "job.sbatch"
OUTPUT = "slurm.out"
LOG_BYTES = 64 * 2**20
_ENDED_BADLY = {
    "BOOT_FAIL", "CANCELLED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
    "TIMEOUT",
}  # fmt: skip
_QUEUED = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "SUSPENDED"}

# The address of the first node is from SLURM, because node names may not resolve.
_BODY = """\
set -eu
export PYTHONUNBUFFERED=1
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_ADDR=$(scontrol show node -o "$first" | sed -n 's/.* NodeAddr=\\([^ ]*\\).*/\\1/p')
export MASTER_ADDR
exec srun --nodes={nodes} --ntasks={nodes} --ntasks-per-node=1 --kill-on-bad-exit=1 \\
  --cpus-per-task="$SLURM_CPUS_ON_NODE" --cpu-bind=none \\
  --export=ALL {more}sh -c {line}
"""
_VENDORS = {"cuda": "nvidia", "rocm": "amd"}


@dataclass
class Slurm(Launcher):
    """One job of `num_nodes` nodes, one task on each; torchrun starts the processes."""

    partition: str = ""
    account: str = ""
    qos: str = ""
    gpus_per_node: int | None = None  # None: no GPU is requested
    software: Software = field(default_factory=Software)
    poll_s: float = 2.0
    _read: dict[str, int] = field(default_factory=dict)

    @property
    def where(self) -> str:
        return f"SLURM, partition {self.partition}" if self.partition else "SLURM"

    def script(self, job: Job) -> str:
        """The batch script. Nodes are taken whole, because whoever shares one is measured, too, and
        srun takes all their CPUs, because by itself it gives a task one."""
        options = {
            "job-name": job.name,
            "nodes": job.num_nodes,
            "ntasks-per-node": 1,
            "gpus-per-node": self.gpus_per_node,
            "exclusive": True,
            "mem": "0",
            "time": time_limit(job.limit_s),
            "partition": self.partition,
            "account": self.account,
            "qos": self.qos,
            "chdir": job.folder,
            "output": job.folder / OUTPUT,
            "open-mode": "append",
            "no-requeue": True,
        }
        lines = ["#!/bin/bash"]
        for key, value in options.items():
            if value is True:
                lines.append(f"#SBATCH --{key}")
            elif value not in (None, ""):
                lines.append(f"#SBATCH --{key}={value}")
        program = shlex.join([job.python, str(job.folder / SUPERVISOR), "run", str(job.folder)])
        loaded = self.software
        more = [*loaded.of_srun(), *loaded.around(_VENDORS.get(job.device, ""))]
        body = _BODY.format(
            nodes=job.num_nodes, line=shlex.quote(f'exec {program} "$SLURM_NODEID"'),
            more="".join(f"{word} " for word in more),
        )  # fmt: skip
        return "\n".join(lines) + "\n" + loaded.lines() + body

    def plan(self, job: Job) -> Launch:
        _check_folder(job.folder)
        files = {str(job.folder / n): c for n, c in self._files(job).items()}
        return Launch(files, (("sbatch", "--parsable", str(job.folder / SCRIPT)),))

    def submit(self, job: Job) -> str:
        _check_folder(job.folder)
        if known := self.find(job):
            return known
        self._read.pop(job.run_id, None)
        write_files(job.folder, self._files(job))
        (job.folder / OUTPUT).unlink(missing_ok=True)  # of an earlier attempt
        done = called(("sbatch", "--parsable", str(job.folder / SCRIPT)), timeout_s=CALL_S)
        if done.status:
            raise LaunchError(f"sbatch refused the job: {done.last_line}.")
        number = done.out.strip().split(";")[0]
        if not number.isdigit():
            raise LaunchError(f"sbatch printed no job number: {done.last_line}.")
        return number

    def poll(self, job: Job, handle: str) -> Progress:
        found = self._state(handle)
        log = self._new_log(job)
        state, reason = found
        if state == "COMPLETED":
            return Progress("done", "", log)
        if state in _ENDED_BADLY:
            # All of it: an earlier poll may have read the line while the job still ended.
            said = why_ended(self._output(job))
            why = f" ({said.partition('runcast: ')[2]})" if said else ""
            return Progress("failed", f"SLURM job {handle} ended as {state}, {reason}{why}", log)
        queued: State = "queued" if state in _QUEUED else "running"
        return Progress(queued, f"SLURM: {state}, {reason}" if queued == "queued" else "", log)

    def cancel(self, job: Job, handle: str) -> None:
        done = called(("scancel", "--", handle), timeout_s=CALL_S)
        if done.status:
            raise _refused("scancel", done)

    def collect(self, job: Job, handle: str) -> str:
        """The output of the job, from the shared folder."""
        text = self._output(job)
        if not text:
            raise LaunchError(
                f"There is no {OUTPUT} in {job.folder}: that folder must be one that the nodes "
                "share with this machine; --folder names another."
            )
        return text

    def _files(self, job: Job) -> dict[str, bytes]:
        return {**job.files(), SCRIPT: self.script(job).encode()}

    def find(self, job: Job) -> str:
        """The number of a waiting or running job of this run."""
        done = called(
            ("squeue", "--noheader", f"--name={job.name}", f"--user={getpass.getuser()}",
             "--format=%A"),
            timeout_s=CALL_S,
        )  # fmt: skip
        if done.status:
            raise _refused("squeue", done)
        numbers = done.out.split()
        return numbers[0] if numbers else ""

    def _state(self, handle: str) -> tuple[str, str]:
        done = called(("scontrol", "show", "job", "-o", "--", handle), timeout_s=CALL_S)
        if not done.status:
            found = dict(re.findall(r"(\w+)=(\S*)", done.out))
            return found.get("JobState", "UNKNOWN"), found.get("Reason", "None")
        if "Invalid job id" not in done.err:
            raise _refused("scontrol", done)
        try:
            old = called(
                ("sacct", "--noheader", "--parsable2", "--allocations", "--format=State",
                 f"--jobs={handle}"),
                timeout_s=CALL_S,
            )  # fmt: skip
        except LaunchError:
            old = Done(1, "", "")
        words = old.out.split()
        if old.status or not words:
            raise LaunchError(f"SLURM does not know job {handle} any more, and sacct neither.")
        return words[0], "from sacct"

    def _output(self, job: Job) -> str:
        try:
            with (job.folder / OUTPUT).open("rb") as file:
                return file.read(LOG_BYTES).decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def _new_log(self, job: Job) -> str:
        text = self._output(job)
        at = self._read.get(job.run_id, 0)
        self._read[job.run_id] = len(text)
        return text[at:]


def time_limit(limit_s: float) -> str:
    """Whole minutes, as SLURM counts them.

    >>> time_limit(61), time_limit(7200)
    ('00:02:00', '02:00:00')
    """
    minutes = max(1, math.ceil(limit_s / 60))
    return f"{minutes // 60:02d}:{minutes % 60:02d}:00"


def _check_folder(folder: Path) -> None:
    """Check the folder: SLURM reads % in a path as a pattern, and #SBATCH lines have no quotes."""
    if not re.fullmatch(r"/[A-Za-z0-9_./+@=-]+", str(folder)):
        raise LaunchError(
            f"The folder of the run is {str(folder)!r}: in a batch script it may have letters, "
            "digits and '_ . / + @ = -'; --folder names another."
        )


def _refused(program: str, done: Done) -> LaunchError:
    """The error of a failed command; the controller may become reachable again."""
    lost = ("Unable to contact", "Socket timed out", "Connection refused")
    kind = UnreachableError if any(words in done.err for words in lost) else LaunchError
    return kind(f"{program}: {done.last_line}.")

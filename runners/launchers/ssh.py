"""Launcher for hosts behind the user's own `ssh` and its configuration.

Agent, certificates and jump hosts work as configured. Host keys are checked as configured, and the
check is never turned off. One connection per host stays open (ControlMaster) while a run is
followed.
"""

from __future__ import annotations

import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from runners.launchers.job import SUPERVISOR, Job
from runners.launchers.launcher import (
    Command,
    Done,
    Launch,
    Launcher,
    Progress,
    called,
    write_files,
)
from runners.launchers.local import check_torch
from runners.launchers.nodes import COMMAND_S, Nodes
from runners.launchers.quoting import LaunchError, UnreachableError, shell_line

CONNECT_S = 15
COPY_S = 60.0
SOCKETS = "/tmp/runcast-ssh"  # shown by a dry run; a real run makes its own folder for them
SSH_FAILED = 255  # exit status of ssh itself; others are from the remote command


@dataclass
class Ssh(Launcher):
    """One host per node, ranked by order; the processes meet at the first one."""

    hosts: tuple[str, ...]
    config: str = ""  # a file for `ssh -F`; '': the user's
    master_addr: str = ""  # '': the address under which the first host was reached
    base: str = ".cache/runcast"  # on the hosts, from the home folder
    interactive: bool = False  # whether a user is present to answer ssh
    poll_s: float = 1.0
    _control: str = ""
    _nodes: dict[str, Nodes] = field(default_factory=dict)

    @property
    def where(self) -> str:
        return ", ".join(self.hosts)

    def plan(self, job: Job) -> Launch:
        files = job.files(master_addr=self.master_addr, detached=True)
        commands: list[Command] = []
        for rank, host in enumerate(self.hosts):
            commands += [
                self._ssh(host, ("mkdir", "-p", "-m", "700", self._folder(job))),
                self._scp(job, host, sorted(files)),
                self._ssh(host, self._verb(job, "hello")),
                self._ssh(host, self._verb(job, "start", self._folder(job), str(rank))),
            ]
        return Launch({str(job.folder / n): c for n, c in files.items()}, tuple(commands))

    def submit(self, job: Job) -> str:
        """Copy the files, find the address of the first host, and start. A node that already runs
        is left alone."""
        nodes, folder = self._of(job), self._folder(job)
        names = sorted(job.files())
        write_files(job.folder, job.files(master_addr=self.master_addr, detached=True))
        with ThreadPoolExecutor(min(16, len(self.hosts))) as pool:
            list(pool.map(lambda host: self._copy(job, host, names), self.hosts))
        hellos = nodes.ask_all("hello")
        for host, hello in zip(self.hosts, hellos, strict=True):
            check_torch(host, hello, job)
        if not self.master_addr:
            write_files(job.folder, job.files(master_addr=str(hellos[0]["address"]), detached=True))
            for host in self.hosts:
                self._must(host, self._scp(job, host, ["job.json"]), COPY_S)
        try:
            nodes.ask_all("start", folder, "RANK")
        except LaunchError:
            nodes.stop(folder)  # some have started, and would wait for the others
            raise
        return folder

    def find(self, job: Job) -> str:
        return self._folder(job)

    def poll(self, job: Job, handle: str) -> Progress:
        return self._of(job).poll(handle)

    def cancel(self, job: Job, handle: str) -> None:
        self._of(job).stop(handle)

    def collect(self, job: Job, handle: str) -> str:
        host = self.hosts[0]
        return self._must(host, self._ssh(host, self._verb(job, "result", handle)), COPY_S).out

    def close(self, job: Job, handle: str) -> None:
        """Remove the folders of the run where possible, and hang up."""
        for host in self.hosts:
            with suppress(LaunchError):
                self._must(host, self._ssh(host, ("rm", "-rf", "--", handle)), COMMAND_S)
        self.hang_up()

    def hang_up(self) -> None:
        """Close the shared connections."""
        if self._control:
            for host in self.hosts:
                called(("ssh", *self._options(host), "-O", "exit", "--", _bare(host)), timeout_s=10)
            shutil.rmtree(self._control, ignore_errors=True)
            self._control = ""

    # --- commands --------------------------------------------------------------------------------

    def _folder(self, job: Job) -> str:
        return f"{self.base}/{job.name}"

    def _verb(self, job: Job, *verb: str) -> Command:
        return (job.python, f"{self._folder(job)}/{SUPERVISOR}", *verb)

    def _options(self, host: str) -> Command:
        options = [
            f"ConnectTimeout={CONNECT_S}", "ServerAliveInterval=5", "ServerAliveCountMax=3",
            f"ControlPath={self._control or SOCKETS}/%C", "ControlMaster=auto",
            "ControlPersist=60", "ForwardX11=no", "ForwardAgent=no",
        ]  # fmt: skip
        if not self.interactive:
            options.append("BatchMode=yes")
        if ":" in host:
            options.append(f"Port={host.rpartition(':')[2]}")
        config = ("-F", self.config) if self.config else ()
        return (*config, *(word for o in options for word in ("-o", o)))

    def _ssh(self, host: str, remote: Command) -> Command:
        return ("ssh", *self._options(host), "--", _bare(host), shell_line(remote))

    def _scp(self, job: Job, host: str, names: list[str]) -> Command:
        files = [str(job.folder / name) for name in names]
        return (
            "scp",
            "-q",
            *self._options(host),
            "--",
            *files,
            f"{_bare(host)}:{self._folder(job)}/",
        )

    def _copy(self, job: Job, host: str, names: list[str]) -> None:
        self._must(
            host, self._ssh(host, ("mkdir", "-p", "-m", "700", self._folder(job))), COMMAND_S
        )
        self._must(host, self._scp(job, host, names), COPY_S)

    def _must(self, host: str, command: Command, timeout_s: float) -> Done:
        if not self._control:
            self._control = tempfile.mkdtemp(prefix="runcast-", dir="/tmp")  # short: it is bounded
        done = called(self._placed(command), timeout_s=timeout_s)
        if done.status == SSH_FAILED or (command[0] == "scp" and done.status):
            raise _connection_error(host, done)
        if done.status:
            raise LaunchError(f"{host} refused a command: {done.last_line}.")
        return done

    def _placed(self, command: Command) -> Command:
        """The command, with the socket folder of this process."""
        return tuple(w.replace(f"{SOCKETS}/%C", f"{self._control}/%C") for w in command)

    def _of(self, job: Job) -> Nodes:
        if job.run_id not in self._nodes:

            def call(rank: int, verb: Command, timeout_s: float) -> str:
                host = self.hosts[rank]
                return self._must(host, self._ssh(host, self._verb(job, *verb)), timeout_s).out

            self._nodes[job.run_id] = Nodes(self.hosts, call)
        return self._nodes[job.run_id]


def _bare(host: str) -> str:
    return host.rpartition(":")[0] if ":" in host else host


def _connection_error(host: str, done: Done) -> LaunchError:
    """Sentence for an error of ssh, some of which only a person can fix."""
    text = done.err
    if "REMOTE HOST IDENTIFICATION HAS CHANGED" in text:
        return LaunchError(
            f"The host key of {host} is not the one that ssh knows: the connection may be "
            "intercepted. Nothing was run; ask who runs the host, then `ssh-keygen -R`."
        )
    if "Host key verification failed" in text:
        return LaunchError(
            f"ssh does not know the host key of {host}: connect once by hand, compare the "
            "fingerprint and accept it."
        )
    if "Permission denied" in text:
        return LaunchError(
            f"{host} refused the login: {done.last_line}. `ssh {_bare(host)}` must work."
        )
    if "Could not resolve hostname" in text:
        return LaunchError(f"No host has the name {host}: {done.last_line}.")
    return UnreachableError(f"{host} cannot be reached: {done.last_line}.")

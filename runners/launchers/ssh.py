"""Hosts behind the user's own `ssh`: its configuration, agent, certificates and jump hosts count.

Host keys are checked as that configuration says, and nothing here turns the check off. One
connection a host is kept open (ControlMaster) while a run is followed.
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
SOCKETS = "/tmp/runcast-ssh"  # shown by a dry run; a real one makes a folder of its own for them
SSH_FAILED = 255  # of ssh itself; other statuses are the remote command's


@dataclass
class Ssh(Launcher):
    """One host a node, rank by order; the first one is where the processes meet."""

    hosts: tuple[str, ...]
    config: str = ""  # a file for `ssh -F`; '': the user's
    master_addr: str = ""  # '': the address at which the first host was reached
    base: str = ".cache/runcast"  # on the hosts, from the home folder
    interactive: bool = False  # somebody is there to answer ssh
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
        """Copy, look where the first host was reached, start. What runs already is left to run."""
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
        """Remove the folders of the run, where that can be done, and hang up."""
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
        """The command with the folder of sockets that this process made."""
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
    """What ssh said, as a sentence: some of it only a person can mend."""
    text = done.err
    if "REMOTE HOST IDENTIFICATION HAS CHANGED" in text:
        return LaunchError(
            f"The host key of {host} is another one than ssh knows: somebody may be in between. "
            "Nothing was run; ask who runs the host, then `ssh-keygen -R`."
        )
    if "Host key verification failed" in text:
        return LaunchError(
            f"ssh does not know the host key of {host}: connect once by hand, compare the "
            "fingerprint and accept it."
        )
    if "Permission denied" in text:
        return LaunchError(
            f"{host} let nobody in: {done.last_line}. `ssh {_bare(host)}` must work."
        )
    if "Could not resolve hostname" in text:
        return LaunchError(f"No host has the name {host}: {done.last_line}.")
    return UnreachableError(f"{host} cannot be reached: {done.last_line}.")

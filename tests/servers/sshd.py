"""A real OpenSSH server on a port of this machine, with keys of its own and key logins only."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes import free_port

START_S = 10
SERVER = """\
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
LogLevel ERROR
PidFile none
"""
CLIENT = """\
Host {name}
  HostName {address}
  Port {port}
  User {user}
  IdentityFile {folder}/client_key
  IdentitiesOnly yes
  UserKnownHostsFile {known}
  GlobalKnownHostsFile /dev/null
"""


def program() -> str | None:
    """sshd must be called by its whole path."""
    return shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")


@dataclass
class Keys:
    """A folder with a host key, a client key and what both sides read."""

    folder: Path

    def make(self) -> None:
        for name in ("host_key", "client_key"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)],
                check=True,
            )
        shutil.copy(self.folder / "client_key.pub", self.folder / "authorized_keys")
        (self.folder / "sshd_config").write_text(SERVER.format(folder=self.folder))
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)

    def known(self, address: str, port: int) -> str:
        """The line of a known_hosts file."""
        key = " ".join((self.folder / "host_key.pub").read_text().split()[:2])
        return f"[{address}]:{port} {key}\n" if port != 22 else f"{address} {key}\n"

    def client(self, name: str, address: str, port: int, known: Path) -> str:
        """One Host of an ssh_config."""
        return CLIENT.format(
            name=name, address=address, port=port, user=getpass.getuser(), folder=self.folder,
            known=known,
        )  # fmt: skip


@contextmanager
def serving(keys: Keys, address: str, port: int, *inside: str) -> Iterator[subprocess.Popen[bytes]]:
    """One server in the foreground; `inside` comes before its command, as `ip netns exec`."""
    log = keys.folder / f"sshd-{address}-{port}.log"
    with log.open("w") as out:
        server = subprocess.Popen(
            [
                *inside, str(program()), "-D", "-e", "-f", str(keys.folder / "sshd_config"),
                "-o", f"Port={port}", "-o", f"ListenAddress={address}",
            ],
            stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip
    try:
        wait_for_port(address, port)
        yield server
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(10)


def wait_for_port(address: str, port: int) -> None:
    end = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection((address, port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < end, f"nothing listens at {address}:{port}"
            time.sleep(0.05)


@dataclass
class SshHosts:
    """Names that lead to one server, and the file for `ssh -F`."""

    keys: Keys
    port: int
    config: Path
    known: Path
    server: subprocess.Popen[bytes]


@contextmanager
def ssh_hosts(folder: Path) -> Iterator[SshHosts]:
    """A server that `one` and `two` lead to, and `inner` by way of `one`; `stranger` does, too, but
    nobody knows its key."""
    keys, port = Keys(folder), free_port()
    keys.make()
    known = folder / "known_hosts"
    known.write_text(keys.known("127.0.0.1", port))
    nobody = folder / "empty"
    nobody.touch()
    config = folder / "ssh_config"
    entries = [keys.client(n, "127.0.0.1", port, known) for n in ("one", "two", "inner")]
    entries.append("  ProxyJump one\n")  # of the last one
    config.write_text("".join(entries) + keys.client("stranger", "127.0.0.1", port, nobody))
    with serving(keys, "127.0.0.1", port) as server:
        yield SshHosts(keys, port, config, known, server)

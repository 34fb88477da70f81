"""A systemd of its own, in namespaces: no unit but the given ones, and nothing of this machine's
services, disks or sysctls is touched. Needs root, and a cgroup2 hierarchy that can be written.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

SYSTEMD = Path("/lib/systemd/systemd")
START_S = 30
# Folders that systemd writes to, or reads units from, are empty ones of its own.
EMPTY = ("/run", "/tmp", "/var/tmp", "/var/lib", "/etc/systemd/system", "/lib/systemd/system")
INSIDE = """
mount -t proc proc /proc
for folder in {empty}; do mount -t tmpfs tmpfs $folder; done
umount -l /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir -p /run/systemd/system /run/rc
cp {folder}/passwd /run/rc/passwd && mount --bind /run/rc/passwd /etc/passwd
cp {folder}/group /run/rc/group && mount --bind /run/rc/group /etc/group
cp -r {folder}/units/. /run/systemd/system
mount --make-rshared /
export container=tests
exec {systemd} --system --unit=tests.target --log-target=console --show-status=no
"""


@dataclass
class Machine:
    """A running systemd."""

    pid: int  # of the systemd, as this machine counts

    def systemctl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        enter = ["nsenter", "--target", str(self.pid), "--mount", "--pid", "--cgroup"]
        return subprocess.run(
            [*enter, "systemctl", "--no-pager", *arguments],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    def shown(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self.systemctl("show", "--property", name, "--value", unit).stdout.strip()

    def inside(self, path: str) -> Path:
        """A file as the machine sees it."""
        return Path(f"/proc/{self.pid}/root{path}")


def _cgroups(name: str) -> list[Path]:
    """Where a group of one's own can be made, in each hierarchy that systemd uses."""
    root = Path("/sys/fs/cgroup")
    roots = [p for p in (root / "unified", root / "systemd") if (p / "cgroup.procs").exists()]
    return [p / name for p in roots or [root]]


@contextmanager
def booted(folder: Path, units: Mapping[str, str], user: str) -> Iterator[Machine]:
    """A systemd with those units, of which none is started, and with one more user."""
    if os.geteuid() or not SYSTEMD.exists() or shutil.which("nsenter") is None:
        pytest.skip("A systemd of its own needs root, systemd and nsenter.")
    for name, text in {**units, "tests.target": "[Unit]\nDefaultDependencies=no\n"}.items():
        path = folder / "units" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name, line in (("passwd", f"{user}:x:10001:10001::/:/usr/sbin/nologin\n"),
                       ("group", f"{user}:x:10001:\n")):  # fmt: skip
        (folder / name).write_text(Path("/etc", name).read_text() + line)
    script = folder / "inside.sh"
    script.write_text(INSIDE.format(empty=" ".join(EMPTY), folder=folder, systemd=SYSTEMD))
    groups = _cgroups(f"runcast-tests-{os.getpid()}")
    unshare = ["unshare", "--mount", "--pid", "--fork", "--uts", "--ipc", "--cgroup",
               "--propagation", "private", "--kill-child", "sh", "-eu", str(script)]  # fmt: skip
    join = "".join(f'echo $$ > "{group}/cgroup.procs"\n' for group in groups)
    log = folder / "systemd.log"
    try:
        for group in groups:
            group.mkdir()
    except OSError as e:
        pytest.skip(f"No cgroup can be made here: {e}")
    with log.open("w") as out:
        outer = subprocess.Popen(
            ["sh", "-euc", join + 'exec "$@"', "sh", *unshare],
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield Machine(_child(outer, log))
    finally:
        outer.kill()
        outer.wait(20)
        for group in groups:
            _removed(group)


def _child(outer: subprocess.Popen[bytes], log: Path) -> int:
    """The process of the systemd, once it answers."""
    until = time.monotonic() + START_S
    children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
    while time.monotonic() < until and outer.poll() is None:
        with suppress(OSError, ValueError, IndexError):
            machine = Machine(int(children.read_text().split()[0]))
            if machine.systemctl("is-system-running").stdout.strip() in ("running", "degraded"):
                return machine.pid
        time.sleep(0.1)
    pytest.skip(f"systemd does not start in namespaces here: {log.read_text()[-300:]}")


def _removed(group: Path) -> None:
    """Without the group: its processes are gone in a moment."""
    until = time.monotonic() + 10
    while group.exists() and time.monotonic() < until:
        for path in sorted((p for p in group.rglob("*") if p.is_dir()), reverse=True):
            with suppress(OSError):
                path.rmdir()
        with suppress(OSError):
            group.rmdir()
        time.sleep(0.05)

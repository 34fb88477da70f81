"""A real SLURM on this machine: munged, slurmctld and two slurmd, each with eight made-up GPUs."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.processes import free_port

START_S = 30
PROGRAMS = ("sbatch", "scontrol", "scancel", "squeue", "srun", "slurmctld", "slurmd", "munged")
CONF = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CryptoType=crypto/munge
SlurmctldPort={port}
SlurmdPort={slurmd_port}
StateSaveLocation={folder}/ctld
SlurmdSpoolDir={folder}/d/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=10
KillWait=3
MinJobAge=600
GresTypes=gpu
SlurmdParameters=config_overrides
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
"""
NODE = (
    "NodeName=node{i} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=16 Sockets=2 "
    "CoresPerSocket=8 ThreadsPerCore=1 RealMemory={memory} Gres=gpu:h200:8 State=UNKNOWN\n"
)


def missing() -> str:
    """Why there can be no SLURM here; '' if there can."""
    path = f"{os.environ['PATH']}:/usr/sbin"
    if lacks := [p for p in PROGRAMS if not shutil.which(p, path=path)]:
        return f"There is no {', '.join(lacks)}: apt-get install slurm-wlm munge."
    return "" if os.geteuid() == 0 else "SLURM's daemons are started as root here."


class Cluster:
    """The daemons, started in the foreground, so that each ends by its own process id."""

    def __init__(self, folder: Path, num_nodes: int) -> None:
        self.folder, self.num_nodes = folder, num_nodes
        self.conf = folder / "slurm.conf"
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        self.environ = {**os.environ, "SLURM_CONF": str(self.conf)}

    def configure(self) -> None:
        host = socket.gethostname().partition(".")[0]
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        ports = [free_port() for _ in range(self.num_nodes + 2)]
        text = CONF.format(host=host, folder=self.folder, port=ports[0], slurmd_port=ports[1])
        gres = ""
        devices = self.folder / "dev"
        for name in ("ctld", "d", "munge"):
            (self.folder / name).mkdir()
        devices.mkdir()
        for gpu in range(8):  # a device file each, as /dev/null
            os.mknod(devices / f"nvidia{gpu}", 0o020666, os.makedev(1, 3))
        for i in range(1, self.num_nodes + 1):
            text += NODE.format(i=i, host=host, port=ports[i + 1], memory=pages // 2**20 - 1024)
            gres += f"NodeName=node{i} Name=gpu Type=h200 File={devices}/nvidia[0-7]\n"
        self.conf.write_text(text)
        (self.folder / "gres.conf").write_text(gres)

    def start(self) -> None:
        munge = self.folder / "munge"
        key = munge / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        for path in (munge, key):
            shutil.chown(path, "munge", "munge")
        munge.chmod(0o755)
        self._daemon(
            "munged", "--foreground", f"--key-file={key}", f"--socket={munge}/socket",
            f"--log-file={munge}/log", f"--pid-file={munge}/pid", f"--seed-file={munge}/seed",
            user="munge",
        )  # fmt: skip
        _until(lambda: (munge / "socket").exists())
        self._daemon("slurmctld", "-D", "-f", str(self.conf))
        for i in range(1, self.num_nodes + 1):
            self.start_node(i)
        idle = f"{self.num_nodes}\n"
        _until(lambda: self.asked("sinfo", "-h", "-t", "idle", "-o", "%D") == idle)

    def start_node(self, i: int) -> None:
        self._daemon(f"slurmd{i}", "-D", "-f", str(self.conf), "-N", f"node{i}", program="slurmd")

    def asked(self, *command: str) -> str:
        done = subprocess.run(
            command, env=self.environ, capture_output=True, text=True, check=False, timeout=30
        )
        return done.stdout

    def stop(self) -> None:
        for daemon in reversed(self.daemons.values()):
            daemon.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                daemon.wait(10)
            if daemon.poll() is None:
                daemon.kill()
                daemon.wait(10)

    def _daemon(self, name: str, *arguments: str, program: str = "", user: str = "") -> None:
        found = shutil.which(program or name, path=f"{os.environ['PATH']}:/usr/sbin")
        with (self.folder / f"{name}.out").open("a") as out:
            self.daemons[name] = subprocess.Popen(
                [str(found), *arguments],
                env=self.environ, user=user or None, group=user or None,
                extra_groups=[] if user else None,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip


@contextmanager
def slurm_cluster(num_nodes: int = 2) -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="runcast-slurm-"))
    folder.chmod(0o755)
    cluster = Cluster(folder, num_nodes)
    cluster.configure()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _until(true: object) -> None:
    end = time.monotonic() + START_S
    while not true():  # type: ignore[operator]
        assert time.monotonic() < end, "SLURM did not start in time"
        time.sleep(0.1)

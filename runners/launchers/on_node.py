"""Supervisor on a node: starts, watches and ends the probe, with the standard library only.

It is copied with the probe and imports no other module of Runcast. Every remote command of a
launcher is one of its verbs, so that only a path and a number pass through a shell, and the rest is
in job.json:

    hello                    this node as JSON: address, free port, torch
    start FOLDER RANK        run in a session of its own and return
    run FOLDER RANK          run in the foreground: what a scheduler calls
    poll FOLDER RANK FROM    state, exit status and log from byte FROM, as JSON
    stop FOLDER RANK         end the run and everything that it started
    result FOLDER            the result between the probe's markers

The run is identified by its folder, a file with process id and start time, and a variable in the
environment of all its processes: torchrun gives every worker a session of its own, so ending a
process group does not end them.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MARK = "RUNCAST_RUN"  # of everything that a run starts: RUN_ID/RANK
STOPPED = "it was stopped"  # from outside: because of another node, or by a person
TERM_S = 1.5  # from the request to end to the kill: Ray waits 3 s, then kills us first
CHUNK_BYTES = 65_536  # of the log in one answer
RESULT_BYTES = 32 * 2**20
SIOCGIFADDR = 0x8915
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
ANYWHERE = ("192.0.2.1", 9)  # reserved for documents: nothing is sent, a route is looked up


class Stopped(Exception):  # noqa: N818 - it is a request
    """This run was asked to end."""


def read_job(folder: Path) -> dict[str, Any]:
    """The content of job.json, which `Job.files` in job.py writes."""
    found: dict[str, Any] = json.loads((folder / "job.json").read_text())
    return found


def route_address(peer: tuple[str, int]) -> str:
    """Our own address on the route to a peer; if the peer is this machine, the peer's address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(peer)
        return str(probe.getsockname()[0])


def interface_of(address: str) -> str | None:
    """The network interface that has an IPv4 address."""
    import fcntl  # of Linux, as the nodes are; the launcher may be elsewhere

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name[:15].encode())
            with contextlib.suppress(OSError):
                found = fcntl.ioctl(probe.fileno(), SIOCGIFADDR, request)
                if socket.inet_ntoa(found[20:24]) == address:
                    return name
    return None if not address.startswith("127.") else "lo"


def interface_to(master: str, num_nodes: int) -> str:
    """The interface that reaches the first node. Without one, gloo uses the address of the host
    name, often 127.0.1.1, and waits forever."""
    address = socket.gethostbyname(master)
    if num_nodes > 1 and address.startswith("127.") and master not in (address, "localhost"):
        address = ANYWHERE[0]  # our own name in /etc/hosts: no other node has that address
    ours = route_address((address, 9))
    name = interface_of(ours)
    if name is None:
        raise OSError(f"no network interface has the address {ours}, which reaches {master}")
    return name


def environment(job: dict[str, Any], rank: int) -> dict[str, str]:
    """The environment of the probe: that of the node, and the variables for torch.distributed."""
    env = {**os.environ, **job["env"], MARK: f"{job['run_id']}/{rank}"}
    master = job["master_addr"] or env.get("MASTER_ADDR") or "127.0.0.1"
    env["MASTER_ADDR"] = master
    env["MASTER_PORT"] = str(job["master_port"] or env.get("MASTER_PORT") or 29_511)
    interface = job["interface"] or interface_to(master, job["num_nodes"])
    env["GLOO_SOCKET_IFNAME"] = interface
    env["NCCL_SOCKET_IFNAME"] = "=" + interface  # =: not every name that begins so
    env.setdefault("OMP_NUM_THREADS", "1")  # as torchrun sets it, without its warning
    return env


def num_processes(job: dict[str, Any]) -> int:
    """Number of processes of this node: as given, else one per GPU."""
    if job["processes"]:
        return int(job["processes"])
    if job["device"] == "cpu":
        return 1
    count = "import torch; print(torch.cuda.device_count() if torch.cuda.is_available() else 0)"
    done = subprocess.run(
        [sys.executable, "-c", count], capture_output=True, text=True, timeout=120, check=True
    )
    return max(1, int(done.stdout.split()[-1]))


def command(job: dict[str, Any], rank: int, env: dict[str, str], processes: int) -> list[str]:
    """The probe, under torchrun where there is more than one process."""
    probe = [job["probe"], *job["arguments"]]
    if job["num_nodes"] * processes == 1:
        return [sys.executable, *probe]
    return [
        sys.executable, "-m", "torch.distributed.run", f"--nnodes={job['num_nodes']}",
        f"--node-rank={rank}", f"--nproc-per-node={processes}", "--max-restarts=0",
        f"--master-addr={env['MASTER_ADDR']}", f"--master-port={env['MASTER_PORT']}", *probe,
    ]  # fmt: skip


def started_at(pid: int) -> str | None:
    """Start time of a process in ticks: its id alone may belong to another process by now."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def marked(job_id: str, rank: int) -> list[int]:
    """Processes of this run on this node, by the mark in their environment."""
    mark = f"{MARK}={job_id}/{rank}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0") and started_at(
                int(entry.name)
            ):
                found.append(int(entry.name))
    return found


def sweep(job_id: str, rank: int, *, patience_s: float = 2.0) -> int:
    """Kill the remaining processes of the run; returns how many are left."""
    end = time.monotonic() + patience_s
    while (left := marked(job_id, rank)) and time.monotonic() < end:
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    return len(left)


def guard(job_id: str, rank: int) -> int:
    """Start a process that outlives this one and then kills the rest of the run, in case a
    scheduler kills this process outright. Writing to the returned pipe releases it."""
    read, write = os.pipe()
    if os.fork():
        os.close(read)
        return write
    os.close(write)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)  # readers of our output must not wait for this process
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if not os.read(read, 1):
        time.sleep(TERM_S)
        sweep(job_id, rank)
    os._exit(0)


def running(folder: Path, rank: int) -> int | None:
    """Process id of the supervisor, if that process still runs."""
    try:
        pid, began = (folder / f"node-{rank}.pid").read_text().split()
    except (OSError, ValueError):
        return None
    return int(pid) if started_at(int(pid)) == began else None


def write_whole(file: Path, text: str) -> None:
    new = file.with_name(f".{file.name}.{os.getpid()}")
    new.write_text(text)
    new.replace(file)


def end_file(folder: Path, rank: int) -> Path:
    return folder / f"node-{rank}.end"


def run(folder: Path, rank: int) -> int:
    """Run the probe in the foreground until it ends, is stopped or is over its limit."""
    job = read_job(folder)
    write_whole(folder / f"node-{rank}.pid", f"{os.getpid()} {started_at(os.getpid())}\n")
    end_file(folder, rank).unlink(missing_ok=True)
    guarded = guard(job["run_id"], rank)
    libc = ctypes.CDLL(None)
    with contextlib.suppress(AttributeError):  # not Linux
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def stop(*_: object) -> None:
        raise Stopped

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    begun = time.monotonic()
    status, reason = 1, ""
    child: subprocess.Popen[bytes] | None = None
    try:
        env = environment(job, rank)
        argv = command(job, rank, env, num_processes(job))
        say(f"starting node {rank}: {env['GLOO_SOCKET_IFNAME']} to {env['MASTER_ADDR']}: {argv}")
        child = subprocess.Popen(
            argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0),
        )  # fmt: skip
        status = child.wait(timeout=max(1.0, job["limit_s"] - (time.monotonic() - begun)))
        reason = f"the probe ended with status {status}" if status else ""
    except subprocess.TimeoutExpired:
        reason = f"it was over its limit of {job['limit_s']:.0f} s"
    except Stopped:
        status, reason = 128 + signal.SIGTERM, STOPPED
    except (OSError, subprocess.SubprocessError, ValueError) as e:
        reason = str(e)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    if child is not None and child.poll() is None:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=TERM_S)
    sweep(job["run_id"], rank)
    os.write(guarded, b".")
    if reason:
        say(f"node {rank}: {reason}")
    if rank == 0 and not job["detached"] and not status:
        result(folder)  # a scheduler brings back what is printed
    ended = {"status": status, "reason": reason, "seconds": round(time.monotonic() - begun, 3)}
    write_whole(end_file(folder, rank), json.dumps(ended))
    return status


def say(text: str) -> None:
    print(f"runcast: {text}", file=sys.stderr, flush=True)


def start(folder: Path, rank: int) -> None:
    """Run in a session of its own, which outlives the connection. A second call finds the first
    one."""
    import fcntl

    with (folder / f"node-{rank}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        pid, already = running(folder, rank), True
        if pid is None:
            already = False
            end_file(folder, rank).unlink(missing_ok=True)
            with (folder / f"node-{rank}.log").open("ab") as log:
                child = subprocess.Popen(
                    [sys.executable, str(Path(__file__).resolve()), "run", str(folder), str(rank)],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                )  # fmt: skip
            pid = child.pid
            write_whole(folder / f"node-{rank}.pid", f"{pid} {started_at(pid)}\n")
            child.returncode = 0  # no process waits for it
    print(json.dumps({"pid": pid, "already": already}))


def poll(folder: Path, rank: int, begin: int) -> None:
    """State of the run. A supervisor that disappeared was killed, and its processes are killed,
    too."""
    state: dict[str, Any] = {"state": "absent", "log": "", "at": begin}
    job_id = read_job(folder)["run_id"] if (folder / "job.json").exists() else ""
    pid = running(folder, rank)
    if pid is not None:
        state["state"] = "running"
    elif end_file(folder, rank).exists():
        state = {**state, "state": "ended", **json.loads(end_file(folder, rank).read_text())}
    elif (folder / f"node-{rank}.pid").exists():
        state["state"] = "lost"
        state["left"] = sweep(job_id, rank)
    with contextlib.suppress(OSError), (folder / f"node-{rank}.log").open("rb") as log:
        log.seek(begin)
        chunk = log.read(CHUNK_BYTES)
        state["log"], state["at"] = chunk.decode("utf-8", "replace"), begin + len(chunk)
    print(json.dumps(state))


def stop(folder: Path, rank: int) -> None:
    """Ask the supervisor to end, kill it if it does not, and kill what it started."""
    job_id = read_job(folder)["run_id"] if (folder / "job.json").exists() else ""
    supervisor = running(folder, rank)
    end = time.monotonic() + TERM_S + 4
    if supervisor is not None:
        os.kill(supervisor, signal.SIGTERM)
    while running(folder, rank) is not None and time.monotonic() < end:
        time.sleep(0.05)
    if (pid := running(folder, rank)) is not None:
        os.kill(pid, signal.SIGKILL)
    left = sweep(job_id, rank) if job_id else 0
    print(json.dumps({"stopped": supervisor is not None, "left": left}))


def result(folder: Path) -> None:
    """The whole result, between the markers of the probe."""
    job_id = read_job(folder)["run_id"]
    file = folder / "result.json"
    if not file.exists() or file.stat().st_size > RESULT_BYTES:
        say("there is no result" if not file.exists() else "the result is too large")
        raise SystemExit(4)
    text = file.read_text().rstrip("\n")
    print(f"-----BEGIN RUNCAST RESULT {job_id}-----\n{text}\n-----END RUNCAST RESULT {job_id}-----")
    sys.stdout.flush()


def hello() -> None:
    """This node: the address at which others reach it, a free port, and whether it has torch."""
    seen = os.environ.get("SSH_CONNECTION", "").split()
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    answer = {
        "address": seen[2] if len(seen) == 4 else "127.0.0.1",
        "port": port,
        "python": ".".join(map(str, sys.version_info[:3])),
        "torch": importlib.util.find_spec("torch") is not None,
    }
    print(json.dumps(answer))


def main(arguments: list[str]) -> int:
    """Run one verb."""
    verb, rest = arguments[0], arguments[1:]
    if verb == "hello":
        hello()
        return 0
    folder = Path(rest[0]).expanduser().resolve()
    if verb == "result":
        result(folder)
        return 0
    rank = int(rest[1])
    if verb == "run":
        return run(folder, rank)
    if verb == "poll":
        poll(folder, rank, int(rest[2]))
    else:
        {"start": start, "stop": stop}[verb](folder, rank)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A real Ray cluster of this machine with its job server: a head, and further nodes if asked."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.processes import free_port

START_S = 120
ENVIRONMENT = Path(sys.prefix, "ray/bin/python")


def ray_python() -> str | None:
    """An interpreter with ray[default]: the one that is named, of `make clusters`, or this one."""
    if named := os.environ.get("RUNCAST_RAY_PYTHON"):
        return named
    if ENVIRONMENT.exists():
        return str(ENVIRONMENT)
    here = importlib.util.find_spec("ray") and importlib.util.find_spec("aiohttp_cors")
    return sys.executable if here else None


@contextmanager
def _started(arguments: list[str], log: Path, environ: dict[str, str]) -> Iterator[None]:
    """One `ray start --block`, ended with what it started."""
    with log.open("w") as out:
        process = subprocess.Popen(
            [str(ray_python()), "-m", "ray.scripts.scripts", "start", "--block", *arguments],
            stdout=out, stderr=subprocess.STDOUT, start_new_session=True, env=environ,
        )  # fmt: skip
    try:
        end = time.monotonic() + START_S
        while "block forever" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.2)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)


@contextmanager
def ray_cluster(num_nodes: int = 1) -> Iterator[str]:
    """The address of the dashboard."""
    port, dashboard = free_port(), free_port()
    folder = tempfile.mkdtemp(prefix="ray")  # short: names of sockets have 107 characters
    beside = Path(str(ray_python())).parent  # as an environment that is active
    environ = {**os.environ, "PATH": f"{beside}:{os.environ['PATH']}"}
    environ.pop("RAY_ADDRESS", None)
    environ["RAY_AUTH_MODE"] = "disabled"  # a token of another cluster of this user is none of ours
    shared = ["--node-ip-address=127.0.0.1", "--disable-usage-stats", "--num-cpus=2"]
    shared += ["--object-store-memory=80000000"]
    head = [
        "--head", f"--port={port}", "--dashboard-host=127.0.0.1", f"--temp-dir={folder}",
        f"--dashboard-port={dashboard}", f"--ray-client-server-port={free_port()}",
        f"--dashboard-agent-listen-port={free_port()}",
    ]  # fmt: skip
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        stack.enter_context(_started([*shared, *head], Path(folder, "head.log"), environ))
        for i in range(1, num_nodes):
            joined = [
                *shared, f"--address=127.0.0.1:{port}",
                f"--dashboard-agent-listen-port={free_port()}",
            ]  # fmt: skip
            stack.enter_context(_started(joined, Path(folder, f"node{i}.log"), environ))
        yield f"http://127.0.0.1:{dashboard}"

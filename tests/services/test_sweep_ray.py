"""A sweep on a real Ray cluster of this machine: the same bytes as without Ray."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.processes import free_port

ROOT = Path(__file__).parent.parent.parent
START_S = 90
FILE = """
model: [llama3.1-8b, llama3.1-405b]
seq_len: [2k, 4k]
num_gpus: [[8], [16]]
gpu: h100
cloud: aws
"""
NAMES = ("results.parquet", "results.csv", "manifest.json")

pytestmark = [
    pytest.mark.services,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None,
        reason="The package ray is not installed: pip install ray.",
    ),
]


@contextmanager
def cluster(num_cpus: int) -> Iterator[str]:
    """A Ray cluster of one node, `ray start --head`: its address. Ended with what it started."""
    port = free_port()
    folder = tempfile.mkdtemp(prefix="ray")  # short: names of sockets have 107 characters
    log = Path(folder, "head.log")
    with log.open("w") as out:
        head = subprocess.Popen(
            [
                sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block",
                f"--port={port}", f"--num-cpus={num_cpus}", "--include-dashboard=false",
                f"--ray-client-server-port={free_port()}", "--disable-usage-stats",
                f"--temp-dir={folder}",
            ],
            cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        end = time.monotonic() + START_S
        while "block forever" not in log.read_text():
            assert head.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.2)
        yield f"127.0.0.1:{port}"
    finally:
        head.send_signal(signal.SIGTERM)  # it ends what it started
        try:
            head.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(head.pid, signal.SIGKILL)
            head.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def sweep(file: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app.cli", "sweep", str(file), "--out", str(out), *more],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("sweep") / "small.yaml"
    path.write_text(FILE)
    return path


@pytest.fixture(scope="module")
def pooled(file) -> dict[str, bytes]:
    """The results of the same sweep without Ray."""
    done = sweep(file, file.with_name("pooled"))
    assert done.returncode == 0, done.stderr
    return {n: (file.with_name("pooled") / n).read_bytes() for n in NAMES}


@pytest.mark.parametrize("workers", [1, 2])
def test_ray_gives_the_same_bytes_as_processes_of_this_machine(workers, file, pooled, tmp_path):
    with cluster(workers) as address:
        done = sweep(file, tmp_path / "out", "--ray", address)
        assert done.returncode == 0, done.stderr
        assert "8 cells, 0 finished before" in done.stdout
        assert {n: (tmp_path / "out" / n).read_bytes() for n in NAMES} == pooled


def test_a_sweep_killed_on_ray_is_resumed_on_ray(file, pooled, tmp_path):
    out = tmp_path / "out"
    with cluster(1) as address:
        command = [sys.executable, "-m", "app.cli", "sweep", str(file), "--out", str(out)]
        with subprocess.Popen(
            [*command, "--ray", address], cwd=ROOT, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            part = out / "cells-0001.jsonl"
            while not (part.exists() and part.read_bytes().count(b"\n") >= 2):
                assert process.poll() is None
                time.sleep(0.01)
            process.kill()
        kept = part.read_bytes().count(b"\n")
        done = sweep(file, out, "--ray", address)
        assert done.returncode == 0, done.stderr
        assert f"8 cells, {kept} finished before" in done.stdout
        lines = [p.read_bytes().count(b"\n") for p in out.glob("cells-*.jsonl")]
        assert sum(lines) == 8  # none twice
        assert {n: (out / n).read_bytes() for n in NAMES} == pooled


def test_what_is_no_ray_cluster_is_a_sentence_within_seconds(file, tmp_path):
    """Ray itself would try for minutes."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begin = time.monotonic()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        done = sweep(file, tmp_path / "out", "--ray", address)
        assert time.monotonic() - begin < 30
    assert done.returncode == 2
    assert f"No Ray cluster answers at '{address}'" in done.stderr
    assert "Traceback" not in done.stderr

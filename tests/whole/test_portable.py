"""Without fcntl and resource, as on Windows: the locks, and what runs there all the same."""

import os
import subprocess
import sys

import pytest

from tests.feeds import shapes
from tests.feeds.server import Feed, serving
from tests.support.browsing import ROOT

ABSENT = "import sys; sys.modules['fcntl'] = sys.modules['resource'] = None\n"
JOB = (
    "--model",
    "llama3.1-8b",
    "--tokens",
    "1e11",
    "--seq-len",
    "8k",
    "--global-batch-size",
    "512",
)


def run(program, *words, env):
    return subprocess.run(
        [sys.executable, "-c", ABSENT + program, *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "words",
    [
        ("plan", *JOB, "--gpu", "h100", "--num-gpus", "64"),
        ("offers", "--gpu", "h100"),
        ("refresh", "--source", "oci"),
        ("calibrate", "--launcher", "local", "--device", "cpu", "--dry-run"),
    ],
    ids=lambda words: words[0],
)
def test_a_command_runs_there(tmp_path, words):
    with serving(Feed(shapes.replica())) as base:
        env = {**shapes.mirrors(base), "RUNCAST_DATA_DIR": str(tmp_path)}
        done = run("from app.cli import main; main()", *words, env=env)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_one_refresh_at_a_time_there_too(tmp_path):
    program = """
from pathlib import Path
from pricing.lease import lease
folder = Path(sys.argv[1])
with lease(folder):
    try:
        with lease(folder):
            print("two")
    except Exception as e:
        print(e)
with lease(folder) as after:
    print(after.token)
"""
    done = run(program, str(tmp_path), env={})
    assert done.stdout.startswith("Another refresh works (process ")
    assert done.stdout.endswith("\n2\n")

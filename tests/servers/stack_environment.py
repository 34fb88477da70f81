"""Environments of their own for training stacks, made once beside that of the tests.

`RUNCAST_STACK_<NAME>` names an interpreter that has one already. The large ones (up to 3 GB) are
made only where `RUNCAST_LARGE_STACKS` is set; without one its tests are skipped, with the reason.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

STACKS = {
    "light": ("accelerate==1.15.0", "deepspeed==0.19.8", "megatron-core==0.16.1"),
    "torchtitan": ("torchtitan==0.3.0", "triton==3.9.0"),
    "llama_factory": ("llamafactory==0.9.5", "torch==2.13.0"),
    "torchtune": ("torchtune==0.6.1", "torchao==0.11.0", "torch==2.13.0"),
}
LARGE = {"torchtitan", "llama_factory", "torchtune"}
OWN_TORCH = {"llama_factory", "torchtune"}  # they bring their own versions of much else
# No compiler, no GPU, no question to a model hub.
QUIET = {"DS_ACCELERATOR": "cpu", "DS_BUILD_OPS": "0", "OMP_NUM_THREADS": "1",
         "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}  # fmt: skip


def interpreter(name: str) -> str:
    """The interpreter of one stack; skips where there is none and none can be made."""
    if named := os.environ.get(f"RUNCAST_STACK_{name.upper()}"):
        return named
    folder = Path(sys.prefix, f"stack-{name}")
    python = folder / "bin/python"
    if (folder / ".made").exists():
        return str(python)
    if name in LARGE and not os.environ.get("RUNCAST_LARGE_STACKS"):
        pytest.skip(f"{name} needs an environment of its own: set RUNCAST_LARGE_STACKS=1.")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    if name not in OWN_TORCH:  # torch is 1 GB, and the tests have it
        site = next(folder.glob("lib/python*/site-packages"))
        (site / "tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, *STACKS[name]], env={**os.environ, **QUIET}, capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"{name} cannot be installed here: {done.stderr[-300:]}")
    if name == "llama_factory":  # its torchvision is of another torch; text needs none
        subprocess.run([*pip[:3], "uninstall", "--quiet", "--yes", "torchvision"], check=True)
    (folder / ".made").touch()
    return str(python)


def asked(name: str, program: str, given: Any, folder: Path) -> dict[str, Any]:
    """Run a program under a stack's interpreter: JSON in as its first argument's file, JSON out on
    its last line."""
    question = folder / "question.json"
    question.write_text(json.dumps(given))
    done = subprocess.run(
        [interpreter(name), "-c", program, str(question)],
        env={**os.environ, **QUIET, "PYTHONPATH": ""},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])

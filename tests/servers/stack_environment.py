"""Environments of their own for training stacks, made once beside that of the tests, whose torch
they share. `RUNCAST_STACK_<NAME>` names an interpreter that has one already.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

# Wheels of pure Python for a newer one, which run on ours: no dependencies, into a folder.
NEWER = (
    "--no-deps", "--ignore-requires-python", "--python-version", "3.12", "--only-binary", ":all:",
    "--target", "{site}",
)  # fmt: skip
# What pip is called with, call by call. A stack comes without its dependencies where they are for
# its web pages or its kernels.
STACKS = {
    "light": (("accelerate==1.15.0", "deepspeed==0.19.8"),),
    "torchtitan": (  # and Megatron-LM, which asks for triton too
        ("torchtitan==0.3.0", "triton==3.9.0"),
        (*NEWER, "megatron-core==0.19.2"),
    ),
    "llama_factory": (
        ("transformers==5.6.0", "accelerate==1.11.0", "peft==0.18.1", "trl==0.24.0",
         "datasets==4.0.0", "omegaconf"),
        ("--no-deps", "llamafactory==0.9.5"),
    ),
    "torchtune": (
        ("datasets==4.0.0", "torchdata==0.11.0", "huggingface_hub", "safetensors", "kagglehub",
         "sentencepiece", "tiktoken", "blobfile", "tokenizers", "omegaconf", "psutil"),
        ("--no-deps", "torchtune==0.6.1", "torchao==0.11.0"),
    ),
    "axolotl": (
        ("transformers==5.16.1", "accelerate==1.13.0", "datasets==4.8.4", "trl==1.9.0",
         "peft==0.20.0", "addict"),
        ("--no-deps", "axolotl==0.19.0"),
    ),
    "maxtext": (
        ("jax==0.10.2", "flax==0.12.8", "omegaconf", "pathwaysutils"),
        ("--no-deps", "fastapi", "opentelemetry-api"),
        (*NEWER, "maxtext==0.2.5"),
    ),
}  # fmt: skip
# No compiler, no GPU, no question to a model hub.
QUIET = {"DS_ACCELERATOR": "cpu", "DS_BUILD_OPS": "0", "OMP_NUM_THREADS": "1",
         "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}  # fmt: skip


def interpreter(name: str) -> str:
    """The interpreter of one stack; skips where it cannot be installed."""
    if named := os.environ.get(f"RUNCAST_STACK_{name.upper()}"):
        return named
    folder = Path(sys.prefix, f"stack-{name}")
    with Path(sys.prefix, f"stack-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two processes of the tests may ask at once
        if not (folder / ".made").exists():
            _make(name, folder)
    return str(folder / "bin/python")


def _make(name: str, folder: Path) -> None:
    # Without a pip of its own, whose installation takes longer than that of some stacks.
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", folder], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "--quiet",
           "--disable-pip-version-check", "--no-compile"]  # fmt: skip
    for words in STACKS[name]:
        done = subprocess.run(
            [*pip, *(word.format(site=site) for word in words)],
            env={**os.environ, **QUIET}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            pytest.skip(f"{name} cannot be installed here: {done.stderr[-300:]}")
    (folder / ".made").touch()


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

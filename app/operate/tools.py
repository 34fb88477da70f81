"""Optional tools: which are installed, in which version, and their purpose."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

from app.operate.finding import Finding

WAIT_S = 6.0
AT_ONCE = 4
_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")


@dataclass(frozen=True, slots=True)
class Tool:
    """A program, how to get its version, and the part of Runcast that needs it."""

    names: tuple[str, ...]
    arguments: tuple[str, ...]
    used_for: str


TOOLS = (
    Tool(("ssh",), ("-V",), "calibrating hosts over SSH"),
    Tool(("sbatch",), ("--version",), "calibrating through SLURM"),
    Tool(("ray",), ("--version",), "calibrating and sweeping on Ray"),
    Tool(("sky",), ("--version",), "calibrating through SkyPilot"),
    Tool(("kubectl",), ("version", "--client"), "calibrating on Kubernetes"),
    Tool(("docker", "podman"), ("--version",), "running the container"),
    Tool(("nvidia-smi",), ("--version",), "calibrating an NVIDIA GPU here"),
    Tool(("rocm-smi",), ("--version",), "calibrating an AMD GPU here"),
    Tool(("chromium", "chromium-browser", "google-chrome"), ("--version",), "browser tests"),
    Tool(("nginx",), ("-v",), "a proxy in front of the page"),
    Tool(("pg_dump",), ("--version",), "backing up a PostgreSQL store"),
    Tool(("pg_restore",), ("--version",), "restoring a PostgreSQL store"),
)


def look(now: datetime) -> Iterator[Finding]:
    """A finding for every tool; planning needs none of them."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(_tool, TOOLS)
    yield _package("typst", "reports as PDF")


def _package(name: str, used_for: str) -> Finding:
    try:
        version = installed(name)
    except PackageNotFoundError:
        version = ""
    return Finding(
        area="tools",
        name=name,
        state="ok" if version else "note",
        value=f"{version}, a Python package" if version else f"not here: {used_for}",
        numbers={"found": bool(version), "version": version or None, "used_for": used_for},
    )


def _tool(tool: Tool) -> Finding:
    found = next(((n, path) for n in tool.names if (path := shutil.which(n))), None)
    version = "" if found is None else version_of(found[1], tool.arguments)
    value = f"not here: {tool.used_for}" if found is None else version or "here, version not said"
    return Finding(
        area="tools",
        name="/".join(tool.names[:2]) if found is None else found[0],
        state="note" if found is None else "ok",
        value=value,
        numbers={
            "found": found is not None,
            "version": version or None,
            "used_for": tool.used_for,
        },
    )


def version_of(program: str, arguments: tuple[str, ...]) -> str:
    """The version in the first lines that a program prints; '' if there is none."""
    try:
        done = subprocess.run(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=WAIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = _VERSION.search(done.stdout[:2000].decode(errors="replace"))
    return found[0][:40] if found else ""

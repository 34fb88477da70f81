"""Optional tools: which are installed, in which version, and their purpose."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from app.operate.finding import Finding
from app.operate.installed import version_of_package

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
    version = version_of_package("typst")
    value = f"{version}, a Python package" if version else ""
    yield _finding("typst", "reports as PDF", version, value)


def _tool(tool: Tool) -> Finding:
    for name in tool.names:
        if path := shutil.which(name):
            version = version_of(path, tool.arguments)
            return _finding(name, tool.used_for, version, version or "here, version unknown")
    return _finding("/".join(tool.names[:2]), tool.used_for, "", "")


def _finding(name: str, used_for: str, version: str, value: str) -> Finding:
    """The finding of a tool, whose value is '' if it is not installed."""
    return Finding(
        area="tools",
        name=name,
        state="ok" if value else "note",
        value=value or f"not here: {used_for}",
        numbers={"found": bool(value), "version": version or None, "used_for": used_for},
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

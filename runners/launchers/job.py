"""Job: one run of the probe, with its files, limits and id."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runners.launchers import on_node
from runners.probe_file import probe_file

PROBE = "node.py"
SUPERVISOR = "on_node.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A run. Its id names it everywhere: folders, jobs of a scheduler, clusters, processes."""

    run_id: str  # letters, digits and '-'
    folder: Path  # on this machine: the files to copy, and the result
    plan: Mapping[str, Any]  # calib-plan/1
    num_nodes: int
    processes: int | None  # per node; None: one per GPU, counted on the node
    device: str  # cuda, rocm or cpu
    budget_s: float  # of measuring
    limit_s: float  # of everything on the node, which is ended then
    arguments: tuple[str, ...]  # of the probe, without its files
    python: str = "python3"  # on the node, with torch
    env: Mapping[str, str]
    interface: str = ""  # network interface; '': the one that routes to the first node
    probe: Path = field(default_factory=probe_file)

    @property
    def name(self) -> str:
        """Name of the job for schedulers and clouds."""
        return f"runcast-{self.run_id}"

    @property
    def port(self) -> int:
        """Port at which the processes of several nodes meet, below the ephemeral ports."""
        return 20_000 + int(hashlib.sha256(self.run_id.encode()).hexdigest()[:6], 16) % 10_000

    def files(self, *, master_addr: str = "", detached: bool = False) -> dict[str, bytes]:
        """All files that are copied to a node: two programs, the plan and job.json. Without a
        master_addr the node uses MASTER_ADDR of its environment."""
        job = {
            "run_id": self.run_id,
            "num_nodes": self.num_nodes,
            "processes": self.processes,
            "device": self.device,
            "limit_s": self.limit_s,
            "interface": self.interface,
            "master_addr": master_addr,
            "master_port": self.port,
            "detached": detached,
            "env": dict(self.env),
            "probe": PROBE,
            "arguments": ["--plan", "plan.json", "--out", "result.json", *self.arguments],
        }
        return {
            PROBE: self.probe.read_bytes(),
            SUPERVISOR: Path(on_node.__file__).read_bytes(),
            "plan.json": _json(self.plan),
            "job.json": _json(job),
        }

    def probe_sha256(self) -> str:
        """Hash of the probe, so that a resumed run uses an unchanged probe."""
        return hashlib.sha256(self.probe.read_bytes()).hexdigest()


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1).encode() + b"\n"

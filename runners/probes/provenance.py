"""Provenance of a result: place, time, device and software."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import socket
import time
from pathlib import Path
from typing import Any

import torch

from runners.probes.anonymous import kept_environment
from runners.probes.device import FAILURES, Device
from runners.probes.plan import plan_digest
from runners.probes.probe import Probe
from runners.probes.rows import Row
from runners.probes.state import output_of

_SMI_IDENTITY = ("pcie.link.gen.current", "pcie.link.width.current", "mig.mode.current",
                "ecc.mode.current", "uuid", "driver_version")  # fmt: skip


def device_record(device: Device, sku_key: str | None) -> Row:
    """The device, as it describes itself."""
    record: Row = {"kind": device.kind, "sku_key": sku_key}
    if not device.gpu:
        name = platform.processor() or platform.machine()
        with contextlib.suppress(OSError, StopIteration):
            lines = Path("/proc/cpuinfo").read_text().splitlines()
            name = next(x for x in lines if x.startswith("model name")).partition(":")[2].strip()
        memory = 0
        with contextlib.suppress(OSError, ValueError):
            memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return {**record, "name": name, "memory_bytes": float(memory), "num_local": 1}
    props = torch.cuda.get_device_properties(device.index)
    record |= {
        "name": props.name, "memory_bytes": float(props.total_memory),
        "num_local": torch.cuda.device_count(),
        "multiprocessor_count": props.multi_processor_count,
        "compute_capability": f"{props.major}.{props.minor}",
        "l2_bytes": float(getattr(props, "L2_cache_size", 0)),
        "uuid": str(getattr(props, "uuid", "")) or None,
    }  # fmt: skip
    fields = ",".join(_SMI_IDENTITY)
    text = output_of("nvidia-smi", f"--id={device.visible_id()}", f"--query-gpu={fields}",
                     "--format=csv,noheader,nounits")  # fmt: skip
    if device.kind == "cuda" and text:
        cells = [c.strip() for c in text.splitlines()[0].split(",")]
        names = ("pcie_gen", "pcie_width", "mig", "ecc", "uuid", "driver")
        record |= {name: cell[:64] for name, cell in zip(names, cells)}  # noqa: B905
    return record


def provenance(p: Probe, device: Row, argv: list[str]) -> Row:
    """The provenance of this measurement."""
    plan = p.plan
    nccl, triton = None, None
    nccl_version: Any = torch.cuda.nccl.version
    cudnn_version: Any = torch.backends.cudnn.version
    if p.device.gpu:
        with contextlib.suppress(*FAILURES):
            nccl = ".".join(map(str, nccl_version()))
    with contextlib.suppress(ImportError):
        from importlib.metadata import version

        triton = version("triton")
    topology = output_of("nvidia-smi", "topo", "-m") if p.device.kind == "cuda" else None
    cudnn = cudnn_version() if p.device.kind == "cuda" else None
    return {
        "utc_start": utc(p.begin), "utc_end": utc(time.time()), "sessions": 1,
        "planner_version": plan.get("planner_version"),
        "planner_commit": plan.get("planner_commit"),
        "probe_sha256": hashlib.sha256(Path(__file__).read_bytes()).hexdigest(),
        "plan_sha256": plan_digest(plan), "reduced": p.reduced, "argv": argv,
        "launcher": plan.get("launcher"), "job_id": plan.get("job_id"),
        "told": plan.get("told") or {}, "host": socket.gethostname(), "anonymised": False,
        "python": platform.python_version(), "torch": torch.__version__,
        "cuda": torch.version.cuda, "hip": torch.version.hip,
        "cudnn": str(cudnn) if cudnn else None, "nccl": nccl, "triton": triton,
        "driver": device.pop("driver", None), "os": platform.platform()[:200],
        "env": kept_environment(dict(os.environ)),
        "num_threads": torch.get_num_threads(), "num_cpus": os.cpu_count(),
        "fp32_matmul_precision": torch.get_float32_matmul_precision(),
        "world_size": p.ranks.world, "device": device,
        "topology": topology[:20000] if topology else None,
    }  # fmt: skip


def utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))

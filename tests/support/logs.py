"""Files of other tools for tests: shapes as the tools print them, numbers of our own."""

from __future__ import annotations

import json
from pathlib import Path

LOGS = Path(__file__).parent.parent / "golden/logs"


def lines(name: str) -> tuple[str, ...]:
    """The lines of a golden file, as the readers get them."""
    from runners.imports.text import read_text

    return read_text(LOGS / name).lines


def trace(*, steps: int = 4, step_us: float = 1000.0) -> bytes:
    """A trace: each step has 500 us of matmuls, 200 of attention after them, and 400 us of NCCL of
    which 300 run beside the matmuls."""
    events: list[dict[str, object]] = [{"ph": "M", "name": "process_name", "args": {}}]
    for n in range(steps):
        at = 1e9 + n * step_us
        events += [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{n}", "ts": at,
             "dur": step_us},
            {"ph": "X", "cat": "gpu_user_annotation", "name": f"ProfilerStep#{n}", "ts": at + 50,
             "dur": step_us},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": at, "dur": 900},
            {"ph": "X", "cat": "kernel", "name": "nvjet_tst_128x256", "ts": at, "dur": 500},
            {"ph": "X", "cat": "kernel", "name": "flash_fwd_kernel", "ts": at + 500, "dur": 200},
            {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllGather_RING_LL",
             "ts": at + 200, "dur": 300},
            {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL",
             "ts": at + 800, "dur": 100},
        ]  # fmt: skip
    return json.dumps(
        {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
            "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
            "traceEvents": events,
        }
    ).encode()

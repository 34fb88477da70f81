"""Rate of writing a checkpoint to the disk of the result."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path

from runners.probes.device import GIB, MIB
from runners.probes.probe import Probe
from runners.probes.rows import BYTE_CONVENTIONS
from runners.probes.timing import summary


def _file_system_of(path: Path) -> str:
    """Type of the file system that holds a path, by the longest mount point above it."""
    best, kind = "", "unknown"
    with contextlib.suppress(OSError):
        for line in Path("/proc/mounts").read_text().splitlines():
            _, mount, fs, *_ = line.split()
            inside = str(path) == mount or str(path).startswith(mount.rstrip("/") + "/")
            if inside and len(mount) >= len(best):
                best, kind = mount, fs
    return kind


def measure_checkpoint(p: Probe) -> None:
    """Write random bytes to a file next to the result, with fsync; all ranks write at once."""
    folder = p.out.resolve().parent
    size = 32 * MIB if p.reduced else 4 * GIB
    path = folder / f".runcast-{p.plan['run_id']}-{p.ranks.rank}.checkpoint"
    piece = os.urandom(min(size, 64 * MIB))
    ranks_here = p.ranks.node_of.count(p.ranks.node_of[p.ranks.rank])
    times: list[float] = []
    with p.attempt("checkpoint"):
        if shutil.disk_usage(folder).free < 2 * size * ranks_here:
            raise OSError(f"{size // MIB} MiB for each rank are not free where the result goes")
        begin = time.perf_counter()
        try:
            while len(times) < 3 or (len(times) < 8 and time.perf_counter() - begin < 2 * p.row_s):
                start = time.perf_counter()
                with path.open("wb") as file:
                    for _ in range(size // len(piece)):
                        file.write(piece)
                    file.flush()
                    os.fsync(file.fileno())
                times.append(time.perf_counter() - start)
                if p.left_s() <= 0:
                    break
        finally:
            path.unlink(missing_ok=True)
        p.rows.append({
            "probe": p.group, "label": "write", "mode": "fwd", "bytes": float(size),
            "byte_convention": BYTE_CONVENTIONS["transfer"], **summary(times),
            "params": {"size_bytes": size, "fsync": True, "file_system": _file_system_of(folder),
                       "writers": ranks_here},
        })  # fmt: skip

"""The measured device: where tensors are, and how its caches are emptied."""

from __future__ import annotations

import contextlib
import os

import torch
from torch import Tensor

MIB, GIB = 2**20, 2**30

# Errors of operations that a machine does not support; any other error is a bug and ends the run.
FAILURES = (RuntimeError, NotImplementedError, ValueError, TypeError, AttributeError, OSError)


class Device:
    """A device, cuda, rocm or cpu: where tensors are, how calls are timed, what it reports."""

    def __init__(self, local_rank: int, *, allow_gpu: bool = True) -> None:
        gpu = allow_gpu and torch.cuda.is_available()
        self.kind = ("rocm" if torch.version.hip else "cuda") if gpu else "cpu"
        self.gpu = gpu
        self.index = local_rank % torch.cuda.device_count() if gpu else 0
        self.torch = torch.device("cuda", self.index) if gpu else torch.device("cpu")
        self.smi: list[str] = []
        self._cache: Tensor | None = None

    def visible_id(self) -> str:
        """The id of this device for nvidia-smi: an index, or an entry of CUDA_VISIBLE_DEVICES."""
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
        named = [v.strip() for v in visible if v.strip()]
        return named[self.index] if self.index < len(named) else str(self.index)

    def start(self) -> None:
        """Claim the device, after it was found idle."""
        if self.gpu:
            torch.cuda.set_device(self.index)
        torch.manual_seed(0)

    def sync(self) -> None:
        if self.gpu:
            torch.cuda.synchronize()

    def flush(self) -> None:
        """Write a buffer of at least twice the last-level cache, so that a sample starts cold."""
        if self._cache is None:
            # ROCm reports the L2 of one die; the cache behind it has 256 MiB on MI300X.
            cache = int(getattr(torch.cuda.get_device_properties(self.index), "L2_cache_size", 0))
            least = 512 * MIB if self.kind == "rocm" else 256 * MIB
            self._cache = torch.empty(max(2 * cache, least), dtype=torch.int8, device=self.torch)
        self._cache.zero_()

    def free_bytes(self) -> int:
        if self.gpu:
            return int(torch.cuda.mem_get_info(self.index)[0])
        with contextlib.suppress(OSError, ValueError, AttributeError):
            return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return 4 * GIB

    def release(self) -> None:
        if self.gpu:
            torch.cuda.empty_cache()

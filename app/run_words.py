"""Words of published runs in ours: precisions, strategies, networks, what is offloaded."""

from __future__ import annotations

import re

from core.units import to_si
from core.workload import OFFLOAD

PRECISION_NAMES = {
    "": "bf16",
    "tf32": "bf16",
    "fp8-current": "fp8",
    "fp8-delayed": "fp8",
    "fp8-tensorwise": "fp8",
    "int8": "fp8",
}
SHARDING_NAMES = {
    "none": "ddp",
    "ddp": "ddp",
    "zero1": "zero1",
    "zero2": "zero2",
    "zero3": "zero3",
    "zero3/fsdp": "fsdp2",
    "fsdp": "fsdp2",
    "fsdp2": "fsdp2",
    "hsdp": "hsdp",
}
FABRIC_WORDS = {"roce": "roce", "efa": "efa", "ethernet": "ethernet", "tcp": "ethernet"}
GBIT_PER_GPU = re.compile(r"(\d+)\s*gb/gpu", re.IGNORECASE)
GBIT_PER_NODE = re.compile(r"(?:(\d+)\s*x\s*)?(\d+)\s*gb(?:/s)?(?:/node|.*node)", re.IGNORECASE)
GBYTE_PER_NODE = re.compile(r"(\d+)\s*x\s*(\d+)\s*gb/s per node")


def network_bytes_per_s(text: str, gpus_per_node: float) -> float | None:
    """Bytes/s per device of a network as rows spell it; None where no rate is printed."""
    if match := GBIT_PER_GPU.search(text):
        return to_si(float(match[1]), "Gbit/s")
    if match := GBYTE_PER_NODE.search(text.lower()):
        return to_si(float(match[1]) * float(match[2]), "GB/s") / gpus_per_node
    if match := GBIT_PER_NODE.search(text):
        return to_si(float(match[1] or 1) * float(match[2]), "Gbit/s") / gpus_per_node
    return None


def network_fabric(text: str) -> str:
    """The row of hardware/fabrics.csv of a network as rows spell it; InfiniBand where unsaid."""
    words = text.lower()
    return next((kind for word, kind in FABRIC_WORDS.items() if word in words), "infiniband")


def offloaded_to(offload: str, what: str) -> float:
    """Where a row says that something lives; 'nvme' alone is of optimizer and weights."""
    if what in offload:
        return OFFLOAD["nvme" if "nvme" in offload else "cpu"]
    return OFFLOAD["nvme" if offload == "nvme" else "none"]

"""Translate the words of published runs to ours: precisions, strategies, networks, offloading."""

from __future__ import annotations

import re

from core.layout.workload import OFFLOAD
from core.units import to_si

PRECISION_NAMES = {
    "": "bf16",
    **dict.fromkeys(("fp8-current", "fp8-delayed", "fp8-tensorwise", "int8"), "fp8"),
}
SHARDING_NAMES = {
    **{name: name for name in ("ddp", "zero1", "zero2", "zero3", "fsdp2", "hsdp")},
    "none": "ddp",
    **dict.fromkeys(("zero3/fsdp", "fsdp"), "fsdp2"),
}
FABRIC_WORDS = {
    "roce": "roce",
    "efa": "efa",
    **dict.fromkeys(("ethernet", "tcp"), "ethernet"),
    "dcn": "ethernet",  # between slices of TPUs, as in hardware/instances.csv
}
RATE = r"(?:(\d+)\s*x\s*)?(\d+)\s*{unit}(?:/s|ps|it/s)?"  # 8x400Gb/s, 3200 Gbps
PER_GPU, PER_NODE = r"\s*(?:/|per )\s*(?:gpu|device|chip)", r"(?:/|.*)(?:node|instance|machine)"
# A capital B is bytes: 8x50GB/s is 8x400Gb/s.
NETWORK_RATES = tuple(
    (re.compile(RATE.format(unit=letters) + f"(?i:{whose})"), unit, per_gpu)
    for whose, per_gpu in ((PER_GPU, True), (PER_NODE, False))
    for letters, unit in (("[Gg]b", "Gbit/s"), ("GB", "GB/s"))
)


def network_bytes_per_s(text: str, gpus_per_node: float) -> float | None:
    """Bytes/s per device from a network as a row spells it; None if it names no rate."""
    for pattern, unit, per_gpu in NETWORK_RATES:
        if match := pattern.search(text):
            rate = to_si(float(match[1] or 1) * float(match[2]), unit)
            return rate if per_gpu else rate / gpus_per_node
    return None


def network_fabric(text: str) -> str:
    """The row of hardware/fabrics.csv for a network as a row spells it, InfiniBand by default."""
    words = text.lower()
    return next((kind for word, kind in FABRIC_WORDS.items() if word in words), "infiniband")


def offloaded_to(offload: str, what: str) -> float:
    """Where a row offloads `what` to. 'nvme' alone applies to both optimizer and weights."""
    if what in offload:
        return OFFLOAD["nvme" if "nvme" in offload else "cpu"]
    return OFFLOAD["nvme" if offload == "nvme" else "none"]

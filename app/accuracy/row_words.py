"""Translate the words of published runs to those of a scenario."""

from __future__ import annotations

import re
from collections.abc import Mapping

from core.units import to_si
from hardware.habits.adapters import EAGER, FUSED
from hardware.habits.remat import repeated
from hardware.measured_cells import PACKED, PADDED

PRECISION_NAMES = {
    "": "bf16",
    **dict.fromkeys(("fp8-current", "fp8-delayed", "fp8-tensorwise"), "fp8"),
}
SHARDING_NAMES = {
    **{name: name for name in ("ddp", "zero1", "zero2", "zero3", "fsdp2", "hsdp")},
    "none": "ddp",
    **dict.fromkeys(("zero3/fsdp", "fsdp"), "fsdp2"),
}
# Attention kernels: the score matrix is written out, or which generation of fused kernels. A word
# of OLD_KERNELS has no newer kernel at any date; `sdpa` has since 2026.
UNFUSED = ("eager",)
FLASH2 = ("sdpa", "fa1", "fa2", "xformers", "pallas_flash", "jax_flash")
OLD_KERNELS = ("fa1", "fa2", "xformers", "pallas_flash")
BEST = ("fa3", "fa4", "cudnn", "splash", "nki", "gaudi_fused")
LOSSES = ("standard", "standard_16", "parallel", "compiled", "chunked", "fused_linear")
GRAPHS = {"none": 0.0, "partial": 0.5, "full": 1.0}
# Dispatchers: a token is sent to each node once, or to each expert.
ONCE_PER_NODE = ("deepep", "hybridep")
DISPATCHERS = {
    **dict.fromkeys(ONCE_PER_NODE, "per_node"),
    **dict.fromkeys(("alltoall", "allgather", "dropless_grouped"), "grouped"),
    "einsum": "masks",
    "loop": "loop",
}
OPTIMIZER_NAMES = {
    **{name: name for name in ("adamw", "adamw_bf16", "adamw_8bit", "adafactor", "muon", "sgd")},
    "distributed_adamw": "adamw",
    "paged_8bit": "adamw_8bit",
}
DTYPES = ("bf16", "fp32")
ALIKE = "alike"  # all tokens of a batch are a word or its padding
BALANCES = ("forced", "natural", ALIKE)
PACKINGS = (PACKED, PADDED)
ELEMENTWISE = (EAGER, FUSED)
MEASURES = ("allocated", "reserved", "device")

# Words of `recompute_detail`.
LIGHT_MODULES = re.compile(r"layernorm|moe_act|norm\+act|mla[_ ]up")
MLP_MODULES = re.compile(r"\bmoe\b|\bmlp\b")
CORE_MODULES = re.compile("core[_ ]att")
SOME_LAYERS = re.compile(r"\b(\d+) of (\d+) layers")
EVERY = re.compile(r"\bevery (second|other|third|fourth|\d+)(?:st|nd|rd|th)? layer")
NUMERALS = {"second": 2.0, "other": 2.0, "third": 3.0, "fourth": 4.0}
ALL_LAYERS = re.compile(r"\b(?:all|every) (?:layers?|blocks?)\b|offload|by operator")
POLICY = "remat_policy="  # of MaxText (hardware/habits/remat.py), beside the column `recompute`
WHOLE_POLICIES = ("full", "custom", "none", "block")  # not described by the products of a layer

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


def offload_target(offload: str, what: str) -> str:
    """The place that a row offloads `what` to. 'nvme' alone: both optimizer and weights."""
    if what in offload:
        return "nvme" if "nvme" in offload else "cpu"
    return "nvme" if offload == "nvme" else "none"


def recompute_mode(stated: str, detail: str, *, experts: bool) -> str:
    """The recompute mode of a run: as its row says, by the modules that it names. The `mlp` of a
    model with experts is that of its few dense layers."""
    modules = detail.lower()
    if stated in ("none", "full", "offload") or modules.startswith(POLICY):
        return stated
    named = set(MLP_MODULES.findall(modules))
    if "moe" in named or (named and not experts):
        return "mlp"
    if named or LIGHT_MODULES.search(modules):
        return "norm_act"
    if CORE_MODULES.search(modules):
        return "selective"
    return "full" if SOME_LAYERS.search(modules) or EVERY.search(modules) else stated


def recompute_share(detail: str) -> float:
    """Share of the layers that are computed again, where a row prints how many of how many, or
    each how manieth; else 1."""
    words = detail.lower()
    if some := SOME_LAYERS.search(words):
        again, layers = (float(n) for n in some.groups())
        return min(again / max(layers, 1.0), 1.0)
    if each := EVERY.search(words):
        return 1 / max(NUMERALS.get(each[1]) or float(each[1]), 1.0)
    return 1.0


def is_understood(detail: str) -> bool:
    """Whether a row's `recompute_detail` says something that a forecast reads, or nothing."""
    words = detail.lower()
    patterns = (LIGHT_MODULES, MLP_MODULES, CORE_MODULES, SOME_LAYERS, EVERY, ALL_LAYERS)
    if words.startswith(POLICY):
        policy = words.removeprefix(POLICY).strip()
        if policy in WHOLE_POLICIES or repeated(policy) is not None:
            return True
    return not words or any(p.search(words) for p in patterns)


def month_of(date: str) -> str:
    """YYYY-MM of YYYY-MM, of YYYY (its middle) or of a range (its beginning); '' for other text.

    >>> month_of("2021-05..07"), month_of("2024"), month_of("soon")
    ('2021-05', '2024-07', '')
    """
    year, month = date[:4], date[5:7]
    if not (year.isdigit() and year.startswith("20")):
        return ""
    return f"{year}-{month}" if month.isdigit() and 1 <= int(month) <= 12 else f"{year}-07"


def word(cell: str, known: Mapping[str, str] | tuple[str, ...], habit: str) -> str:
    """The word of a cell if it is known, else the habit of the run's stack."""
    return cell if cell in known else habit

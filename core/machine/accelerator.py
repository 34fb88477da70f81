"""Records of accelerators: every number that the estimate needs, with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a number was read: `ref` prints it, on `date`, as `printed`."""

    ref: str
    date: str
    printed: str
    assumed: bool = False  # derived or assumed here, not printed by a source


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """What the parts of one architecture share."""

    name: str
    generation: str  # parts of one generation are held against each other's published runs
    scale_up_fabric: str  # what joins the devices of a machine: a fabric of hardware/fabrics.csv
    newer_than_flash2: float  # generations of matrix units that FlashAttention 2 lacks
    fast_exponentials: float  # 1: twice the exponentials of its generation


# Of a device that is in no table: nothing is known of it but the figures that are typed in.
CUSTOM_ARCHITECTURE = Architecture(
    name="custom",
    generation="custom",
    scale_up_fabric="ici",
    newer_than_flash2=0.0,
    fast_exponentials=0.0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One device as frameworks see it (a GCD of an MI250X, a chip of a TPU). Units in the names.

    Peaks are dense. Bandwidths are one direction. `memory_bytes` is what a framework can allocate,
    as the device reports it. None: no source prints it (the precision is then not offered).
    """

    name: str
    vendor: str  # nvidia, amd, intel, google, aws, custom
    architecture: Architecture
    bf16_flops_per_s: float  # 16-bit matmul peak (fp16 on V100)
    memory_bytes: float
    memory_bytes_per_s: float
    scale_up_bytes_per_s: float  # NVLink, xGMI, ICI, or PCIe where there is nothing faster
    scale_up_domain: int  # devices that share the link (1: no link beyond PCIe)
    gpus_per_node: int  # of the usual machine
    scale_out_bytes_per_s: float | None = None  # per device, of the usual machine
    fp8_flops_per_s: float | None = None
    fp4_flops_per_s: float | None = None
    int8_flops_per_s: float | None = None  # of integer matrix units, where training uses them
    matmul_flops_per_s: float | None = None  # best measured 16-bit matmul
    host_link_bytes_per_s: float | None = None  # PCIe or C2C, one direction
    tdp_watts: float | None = None
    multiprocessor_count: float | None = None  # SMs or compute units that tiles are dealt to
    torus_axes: int | None = None  # of the links between devices; None: a switch or all-to-all
    linked_peers: int | None = None  # devices that each has links of its own to; None: a switch
    switch_reduces: int | None = None  # 1: its scale-up switches add up an all-reduce
    fp16_only: float | None = None  # 1: the 16-bit matrix units do not take bf16 (V100)
    rack: str | None = None  # what joins the nodes of a rack, as hardware/nccl_env.csv calls it
    device_name: str | None = None  # is in the name that nvidia-smi prints
    sources: Mapping[str, Source] = field(default_factory=dict)
    note: str = ""


def offers_precision(accelerator: Accelerator, *, name: str, matmul_bits: int) -> bool:
    """Whether the matrix units support the number format of this recipe, as far as a source prints
    it."""
    if name == "int8":
        return accelerator.int8_flops_per_s is not None
    if matmul_bits == 8:
        return accelerator.fp8_flops_per_s is not None
    if matmul_bits == 4:
        return accelerator.fp4_flops_per_s is not None
    return name != "bf16" or not accelerator.fp16_only

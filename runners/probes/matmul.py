"""Matmuls in every dtype, each checked against float64."""

from __future__ import annotations

import torch
from torch import Tensor

from runners.probes.budget import USED_UP
from runners.probes.device import Device
from runners.probes.numerics import DTYPES, entropy_bits, relative_error
from runners.probes.plan import SHAPE_KEYS
from runners.probes.probe import Probe
from runners.probes.rows import BYTE_CONVENTIONS, FLOP_CONVENTIONS, Row


def measure_matmul(p: Probe) -> None:
    """(m, k) x (k, n) in every dtype, the second factor stored as a weight, (n, k)."""
    for shape in p.plan["shapes"]:
        for dtype in p.plan["dtypes"]:
            label = str(shape["label"])
            if p.left_s() <= 0:
                p.skip(f"{label} {dtype}", USED_UP)
                continue
            with p.attempt(f"{label} {dtype}"):
                _one_matmul(p, shape, dtype)


def _one_matmul(p: Probe, shape: Row, dtype: str) -> None:
    m, n, k = (int(shape[key]) for key in SHAPE_KEYS)
    transposed = bool(shape.get("transpose_a")) and dtype != "fp8"
    source = "bf16" if dtype == "fp8" else dtype
    a = p.tensor(k, m, dtype=source).t() if transposed else p.tensor(m, k, dtype=source)
    b = p.tensor(n, k, dtype=source).t()
    entropy = min(entropy_bits(a), entropy_bits(b))
    if dtype == "fp8":
        if k % 16 or n % 16:
            raise ValueError("fp8 needs n and k to be multiples of 16")
        kind = _fp8_dtype(p.device)
        a8, b8 = a.to(kind), b.t().to(kind).t()
        one = torch.ones((), dtype=torch.float32, device=p.device.torch)

        def call() -> Tensor:
            return torch._scaled_mm(a8, b8, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    else:
        out = torch.empty(m, n, dtype=DTYPES[dtype], device=p.device.torch)

        def call() -> Tensor:
            return torch.matmul(a, b, out=out)

    rows, columns = min(m, 64), min(n, 64)
    wanted = a[-rows:].double() @ b[:, -columns:].double()
    error = relative_error(call()[-rows:, -columns:], wanted)
    width = 1 if dtype == "fp8" else DTYPES[dtype].itemsize
    p.row(
        str(shape["label"]), call, params={"m": m, "n": n, "k": k, "transpose_a": transposed},
        dtype=dtype, mode="fwd", flops=2.0 * m * n * k, flop_convention=FLOP_CONVENTIONS["matmul"],
        bytes=float(width * (m * k + k * n) + max(width, 2) * m * n),
        byte_convention=BYTE_CONVENTIONS["memory_bound"], rel_err=error, data_entropy_bits=entropy,
    )  # fmt: skip


def _fp8_dtype(device: Device) -> torch.dtype:
    """e4m3, in the encoding of the device: MI300X has one of its own."""
    if device.kind == "rocm":
        name = getattr(torch.cuda.get_device_properties(device.index), "gcnArchName", "")
        if str(name).startswith("gfx94"):
            return torch.float8_e4m3fnuz
    return torch.float8_e4m3fn

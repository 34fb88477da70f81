"""Memory-bound operations: elementwise operators, buffers, copies to the host."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it

from runners.probes.device import GIB, MIB
from runners.probes.numerics import DTYPES
from runners.probes.probe import Probe
from runners.probes.rows import BYTE_CONVENTIONS, Row
from runners.probes.timing import Call


def measure_memory_bound(p: Probe) -> None:
    """Memory-bound operators, at the sizes of the block."""
    c = p.plan["block"]
    tokens = int(c["seq_len"]) * int(c["micro_batch_size"])
    hidden, ffn, vocab = (int(c[key]) for key in ("hidden_size", "ffn_hidden_size", "vocab_size"))
    width = DTYPES[p.main].itemsize

    def run(label: str, call: Call, *, columns: int, moved: float, mode: str = "fwd") -> None:
        p.row(label, call, params={"tokens": tokens, "columns": columns}, dtype=p.main, mode=mode,
              bytes=moved, byte_convention=BYTE_CONVENTIONS["memory_bound"])  # fmt: skip

    with p.attempt("rms_norm, add"):
        x, y = p.tensor(tokens, hidden), p.tensor(tokens, hidden)
        weight = torch.ones(hidden, dtype=x.dtype, device=x.device)
        size = float(width * tokens * hidden)
        run("rms_norm", lambda: F.rms_norm(x, (hidden,), weight), columns=hidden, moved=2 * size)
        run("add", lambda: x + y, columns=hidden, moved=3 * size)
        leaf = x.clone().requires_grad_()
        run("rms_norm", lambda: torch.autograd.grad(F.rms_norm(leaf, (hidden,), weight), leaf, y),
            columns=hidden, moved=5 * size, mode="fwdbwd")  # fmt: skip
    with p.attempt("silu_mul"):
        gate, up, grad = (p.tensor(tokens, ffn) for _ in range(3))
        size = float(width * tokens * ffn)
        run("silu_mul", lambda: F.silu(gate) * up, columns=ffn, moved=3 * size)
        leaves = [gate.clone().requires_grad_(), up.clone().requires_grad_()]
        run("silu_mul", lambda: torch.autograd.grad(F.silu(leaves[0]) * leaves[1], leaves, grad),
            columns=ffn, moved=8 * size, mode="fwdbwd")  # fmt: skip
    with p.attempt("softmax, cross_entropy"):
        logits = p.tensor(tokens, vocab)
        target = torch.randint(vocab, (tokens,), device=p.device.torch)
        size = float(width * tokens * vocab)
        run("softmax", lambda: logits.softmax(-1), columns=vocab, moved=2 * size)
        leaf_logits = logits.clone().requires_grad_()
        run("cross_entropy",
            lambda: torch.autograd.grad(F.cross_entropy(leaf_logits.float(), target), leaf_logits),
            columns=vocab, moved=2 * size, mode="fwdbwd")  # fmt: skip
    p.device.release()


def measure_memory_bandwidth(p: Probe) -> None:
    """Copy, write and read of a buffer that no cache holds."""
    size = 128 * MIB if p.reduced else (GIB if p.device.gpu else 512 * MIB)
    with p.attempt("copy"):
        x = torch.randn(size // 4, device=p.device.torch)
        y = torch.empty_like(x)
        params = {"size_bytes": size}
        known: Row = {"dtype": "fp32", "mode": "fwd"}
        p.row("copy", lambda: y.copy_(x), params=params, bytes=2.0 * size,
              byte_convention=BYTE_CONVENTIONS["copy"], **known)  # fmt: skip
        for label, call in (("write", lambda: y.fill_(1.0)), ("read", x.sum)):
            p.row(label, call, params=params, bytes=float(size),
                  byte_convention=BYTE_CONVENTIONS["memory_bound"], **known)  # fmt: skip
    p.device.release()


def measure_host_device(p: Probe) -> None:
    """Pinned copies to the device and back; on a CPU, a copy within its memory."""
    size = (64 if p.reduced else 256) * MIB
    with p.attempt("host_device"):
        host = torch.randn(size // 4)
        known: Row = {"params": {"size_bytes": size, "pinned": p.device.gpu}, "dtype": "fp32",
                 "mode": "fwd", "bytes": float(size),
                 "byte_convention": BYTE_CONVENTIONS["transfer"]}  # fmt: skip
        if not p.device.gpu:
            other = torch.empty_like(host)
            p.row("memcpy", lambda: other.copy_(host), **known)
            return
        pinned = host.pin_memory()
        there = torch.empty_like(host, device=p.device.torch)
        p.row("host_to_device", lambda: there.copy_(pinned, non_blocking=True), **known)
        p.row("device_to_host", lambda: pinned.copy_(there, non_blocking=True), **known)

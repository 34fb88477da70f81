"""Scaled-dot-product attention, checked against its definition in float64."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from torch import Tensor

from runners.probes.numerics import entropy_bits, relative_error
from runners.probes.plan import ATTENTION_KEYS
from runners.probes.probe import Probe
from runners.probes.rows import FLOP_CONVENTIONS, Row


def measure_attention(p: Probe) -> None:
    """Scaled-dot-product attention, forward and forward + backward."""
    for shape in p.plan["attention"]:
        label = str(shape["label"])
        with p.attempt(label):
            _one_attention(p, shape)
        p.device.release()


def _one_attention(p: Probe, shape: Row) -> None:
    b, h, kv, s, d = (int(shape[key]) for key in ATTENTION_KEYS)
    causal = bool(shape.get("causal", True))
    if h % kv:
        raise ValueError(f"{h} heads cannot share {kv} key heads")
    q = p.tensor(b, h, s, d)
    # Keys are repeated for their query heads beforehand: torch 2.4 does not support grouped
    # queries.
    k, v = (p.tensor(b, kv, s, d).repeat_interleave(h // kv, dim=1) for _ in range(2))
    params = {"batch": b, "num_heads": h, "num_kv_heads": kv, "seq_len": s, "head_dim": d,
              "causal": causal}  # fmt: skip
    flops = 4.0 * b * h * s * s * d * (0.5 if causal else 1.0)
    known: Row = {"dtype": p.main, "flop_convention": FLOP_CONVENTIONS["attention"],
             "data_entropy_bits": entropy_bits(q)}  # fmt: skip

    def forward() -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    label = str(shape["label"])
    with torch.no_grad():
        error = relative_error(forward()[0, 0, -64:], _exact_attention(q, k, v, causal))
        p.row(label, forward, params=params, mode="fwd", flops=flops, rel_err=error, **known)
    inputs = [x.requires_grad_() for x in (q, k, v)]
    gradient = p.tensor(b, h, s, d)

    def both() -> Any:
        return torch.autograd.grad(forward(), inputs, gradient)

    p.row(label, both, params=params, mode="fwdbwd", flops=3.5 * flops, **known)


def _exact_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    """The last 64 queries of the first head in float64, by the definition."""
    rows, s = min(64, q.shape[2]), q.shape[2]
    scores = q[0, 0, -rows:].double() @ k[0, 0].double().t() / math.sqrt(q.shape[3])
    if causal:
        at = torch.arange(s, device=q.device)
        scores = scores.masked_fill(at[None, :] > at[s - rows :, None], -math.inf)
    return scores.softmax(-1) @ v[0, 0].double()

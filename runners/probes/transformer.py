"""Transformer: layers, weights and FLOPs; time of one block, as written and compiled."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from torch import Tensor, nn

from runners.probes.numerics import DTYPES
from runners.probes.plan import BLOCK_KEYS
from runners.probes.probe import Probe
from runners.probes.rows import FLOP_CONVENTIONS, Row


class Block(nn.Module):
    """RMSNorm, attention with rotary embeddings and grouped keys, RMSNorm, gated MLP."""

    def __init__(self, c: Row) -> None:
        super().__init__()
        self.heads, self.kv, self.d = (
            int(c[k]) for k in ("num_attention_heads", "num_kv_heads", "head_dim")
        )
        hidden, ffn = int(c["hidden_size"]), int(c["ffn_hidden_size"])
        self.hidden = hidden
        self.norm1 = nn.Parameter(torch.ones(hidden))
        self.norm2 = nn.Parameter(torch.ones(hidden))
        self.qkv = nn.Linear(hidden, (self.heads + 2 * self.kv) * self.d, bias=False)
        self.out = nn.Linear(self.heads * self.d, hidden, bias=False)
        self.up = nn.Linear(hidden, 2 * ffn, bias=False)
        self.down = nn.Linear(ffn, hidden, bias=False)
        turn = torch.arange(int(c["seq_len"]))[:, None] / 10000 ** (
            torch.arange(0, self.d, 2)[None] / self.d
        )
        self.cos: Tensor
        self.sin: Tensor
        self.register_buffer("cos", turn.cos(), persistent=False)
        self.register_buffer("sin", turn.sin(), persistent=False)

    def rotated(self, x: Tensor) -> Tensor:
        left, right = x.chunk(2, dim=-1)
        cos, sin = self.cos[: x.shape[2]], self.sin[: x.shape[2]]
        return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        batch, s, _ = x.shape
        y = self.qkv(F.rms_norm(x, (self.hidden,), self.norm1))
        y = y.view(batch, s, self.heads + 2 * self.kv, self.d).transpose(1, 2)
        q, k, v = y.split((self.heads, self.kv, self.kv), dim=1)
        q, k = self.rotated(q), self.rotated(k)
        k, v = (t.repeat_interleave(self.heads // self.kv, dim=1) for t in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, s, self.heads * self.d))
        gate, up = self.up(F.rms_norm(x, (self.hidden,), self.norm2)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Model(nn.Module):
    """Embedding, blocks, norm and head; forward returns the loss of a batch."""

    def __init__(self, c: Row, num_layers: int) -> None:
        super().__init__()
        hidden, vocab = int(c["hidden_size"]), int(c["vocab_size"])
        self.hidden = hidden
        self.embedding = nn.Embedding(vocab, hidden)
        self.blocks = nn.ModuleList(Block(c) for _ in range(num_layers))
        self.norm = nn.Parameter(torch.ones(hidden))
        self.head = nn.Linear(hidden, vocab, bias=False)

    def forward(self, tokens: Tensor, target: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        logits = self.head(F.rms_norm(x, (self.hidden,), self.norm))
        return F.cross_entropy(logits.float().flatten(0, 1), target.flatten())


def block_weights(c: Row) -> int:
    """Weights of one block's matrices."""
    hidden, ffn, d = int(c["hidden_size"]), int(c["ffn_hidden_size"]), int(c["head_dim"])
    heads, kv = int(c["num_attention_heads"]), int(c["num_kv_heads"])
    return hidden * d * (2 * heads + 2 * kv) + 3 * hidden * ffn


def block_flops(c: Row) -> float:
    """Forward FLOPs of one block over the micro-batch."""
    s, b = int(c["seq_len"]), int(c["micro_batch_size"])
    scores = 2.0 * b * int(c["num_attention_heads"]) * s * s * int(c["head_dim"])
    return 2.0 * block_weights(c) * s * b + scores


def model_flops(c: Row, num_layers: int) -> float:
    head = 2.0 * int(c["hidden_size"]) * int(c["vocab_size"])
    return num_layers * block_flops(c) + head * int(c["seq_len"]) * int(c["micro_batch_size"])


def block_params(c: Row, **more: Any) -> Row:
    return {**{key: int(c[key]) for key in BLOCK_KEYS}, **more}


def measure_block(p: Probe) -> None:
    """Measure one block as written."""
    with p.attempt("block"):
        _run_block(p, p.plan["block"], compiled=False)
    p.device.release()


def measure_compiled_block(p: Probe) -> None:
    """Measure one block through torch.compile, in its own group because compiling takes long."""
    with p.attempt("compiled block"):
        _run_block(p, p.plan["block"], compiled=True)
    p.device.release()


def _run_block(p: Probe, c: Row, *, compiled: bool) -> None:
    block: Any = Block(c).to(device=p.device.torch, dtype=DTYPES[p.main])
    if compiled:
        block = torch.compile(block)
    x = p.tensor(int(c["micro_batch_size"]), int(c["seq_len"]), int(c["hidden_size"]))
    gradient = torch.randn_like(x)
    leaves = [x.clone().requires_grad_(), *block.parameters()]
    known: Row = {"params": block_params(c), "dtype": p.main, "compiled": compiled,
             "flop_convention": FLOP_CONVENTIONS["block"]}  # fmt: skip

    def forward() -> None:
        with torch.no_grad():
            block(x)

    known["weight"] = 2.0
    p.row("block", forward, mode="fwd", flops=block_flops(c), **known)
    p.row("block", lambda: torch.autograd.grad(block(leaves[0]), leaves, gradient),
          mode="fwdbwd", flops=3 * block_flops(c), **known)  # fmt: skip

"""Training steps: models of several depths, the held-out step, the optimizer alone."""

from __future__ import annotations

import torch
from torch import Tensor

from runners.probes.numerics import DTYPES, finite
from runners.probes.probe import Probe
from runners.probes.rows import BYTE_CONVENTIONS, FLOP_CONVENTIONS, Row
from runners.probes.transformer import Model, block_params, block_weights, model_flops


class _Training:
    """A model on one batch: 16-bit weights, AdamW on a master copy in fp32."""

    def __init__(self, p: Probe, c: Row, num_layers: int) -> None:
        dtype, device = DTYPES[p.main], p.device.torch
        self.model = Model(c, num_layers).to(device=device, dtype=dtype)
        self.weights: list[Tensor] = list(self.model.parameters())
        self.master = [w.detach().float().clone() for w in self.weights]
        self.optimizer = torch.optim.AdamW(self.master, lr=1e-3, fused=p.device.gpu or None)
        shape = (int(c["micro_batch_size"]), int(c["seq_len"]))
        vocab = int(c["vocab_size"])
        self.batch = [torch.randint(vocab, shape, device=device) for _ in range(2)]
        self.loss = torch.zeros((), device=device)

    def forward_backward(self) -> None:
        for w in self.weights:
            w.grad = None
        self.loss = self.model(*self.batch)
        torch.autograd.backward(self.loss)

    def step(self) -> None:
        self.forward_backward()
        for master, w in zip(self.master, self.weights):  # noqa: B905 - Python 3.9
            master.grad = None if w.grad is None else w.grad.float()
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(self.weights, self.master)

    def measured(self, p: Probe, label: str, *, params: Row, flops: float) -> None:
        """Time steps on one batch; the loss must fall, or they do not train."""
        self.step()
        first = finite(float(self.loss.detach()))
        row = p.row(label, self.step, params=params, dtype=p.main, mode="step", flops=flops,
                    flop_convention=FLOP_CONVENTIONS["block"], loss_first=first,
                    weight=6.0)  # fmt: skip
        if row is not None:
            row["loss_last"] = finite(float(self.loss.detach()))


def fitting_layers(c: Row, wanted: int, free_bytes: int) -> int:
    """How many layers of a model fit: 18 bytes per weight, plus activations."""
    tokens = int(c["seq_len"]) * int(c["micro_batch_size"])
    hidden, vocab = int(c["hidden_size"]), int(c["vocab_size"])
    outside = 36.0 * hidden * vocab + 12.0 * tokens * vocab
    layer = 18.0 * block_weights(c) + tokens * (40.0 * hidden + 16.0 * int(c["ffn_hidden_size"]))
    return max(0, min(wanted, int((0.8 * free_bytes - outside) / layer)))


def measure_layers(p: Probe) -> None:
    """Models that differ in their number of layers: the slope is a layer, the rest the ends."""
    c = p.plan["block"]
    wanted = [int(n) for n in c.get("layer_counts") or (1, 3)]
    most = fitting_layers(c, max(wanted), p.device.free_bytes())
    counts = wanted if most >= max(wanted) else [1, most]
    if most < 2:
        p.skip("layers", "two layers of this block do not fit in the device's memory")
        return
    for num_layers in counts:
        with p.attempt(f"{num_layers} layers"):
            training = _Training(p, c, num_layers)
            params = block_params(c, num_layers=num_layers)
            flops = 3 * model_flops(c, num_layers)
            p.row("layers", training.forward_backward, params=params, dtype=p.main, mode="fwdbwd",
                  flops=flops, flop_convention=FLOP_CONVENTIONS["block"],
                  weight=6.0)  # fmt: skip
            training.measured(p, "layers", params=params, flops=flops)
        p.device.release()


def measure_holdout(p: Probe) -> None:
    """A whole training step that is never used in a fit: predicted over measured is the error."""
    c = p.plan["block"]
    wanted = int(c.get("holdout_layers") or 4)
    num_layers = fitting_layers(c, wanted, p.device.free_bytes())
    if not num_layers:
        p.skip("holdout", "one layer of this block does not fit in the device's memory")
        return
    with p.attempt("holdout"):
        _Training(p, c, num_layers).measured(
            p, "training_step", params=block_params(c, num_layers=num_layers),
            flops=3 * model_flops(c, num_layers),
        )  # fmt: skip
    p.device.release()


def measure_optimizer(p: Probe) -> None:
    """AdamW on fp32 weights, gradients and moments."""
    params = 2**21 if p.reduced else (2**28 if p.device.gpu else 2**24)
    with p.attempt("adamw"):
        weights = [torch.randn(params // 8, device=p.device.torch) for _ in range(8)]
        for w in weights:
            w.grad = torch.randn_like(w)
        optimizer = torch.optim.AdamW(weights, lr=1e-4, fused=p.device.gpu or None)
        p.row("adamw", optimizer.step, params={"parameters": params, "fused": p.device.gpu},
              dtype="fp32", mode="step", bytes=28.0 * params,
              byte_convention=BYTE_CONVENTIONS["optimizer"])  # fmt: skip
    p.device.release()

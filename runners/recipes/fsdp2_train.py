"""Train a decoder with PyTorch's FSDP2. This file needs nothing but torch.

    torchrun --nproc-per-node 8 fsdp2_train.py --checkpoint-dir ckpt
    torchrun --nproc-per-node 2 fsdp2_train.py --device cpu --tiny --steps 3     # to try it

Only rank 0 prints, one line a step; `tps` is tokens a second and GPU.
"""

from __future__ import annotations

import argparse
import os
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import fsdp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, parallel
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils import checkpoint as recompute

# --- the plan: begin
MODEL: dict[str, Any] = {
    "num_layers": 2, "hidden_size": 64, "ffn_hidden_size": 128, "num_attention_heads": 4,
    "num_kv_heads": 2, "head_dim": 16, "vocab_size": 256, "tied_embeddings": False,
    "gated_mlp": True, "qkv_bias": False, "linear_bias": False, "norm_bias": False,
    "qk_norm": False, "num_positions": 0,
}  # fmt: skip
PLAN: dict[str, Any] = {
    "world_size": 2, "tp": 1, "dp_replicate": 1, "dp_shard": 2, "sharding": "fsdp2",
    "micro_batch_size": 1, "num_microbatches": 2, "global_batch_size": 4, "seq_len": 64,
    "num_steps": 100, "recompute": "none", "reshard_after_forward": True,
    "offload_params": "none", "precision": "bf16", "optimizer": "adamw", "compiled": False,
}  # fmt: skip
# --- the plan: end

# Not decided by the plan: put in what your model and your recipe say.
ROPE_THETA, NORM_EPS, INIT_STD = 10_000.0, 1e-5, 0.02
TRIAL_LEARNING_RATE = 1e-3  # for the synthetic data below

TINY = {"num_layers": 2, "hidden_size": 64, "ffn_hidden_size": 128, "num_attention_heads": 4,
        "num_kv_heads": 2, "head_dim": 16, "vocab_size": 256}  # fmt: skip


def batch(step: int, number: int, dp_rank: int, sequences: int, seq_len: int) -> Tensor:
    """Token numbers (sequences, seq_len + 1) of one micro-batch.

    REPLACE_ME with your data: every (step, number, dp_rank) must name other sequences, and the
    same ones after a resume. These are synthetic: each token is its predecessor plus one.
    """
    seed = (step * 10_007 + number) * 100_003 + dp_rank
    draw = torch.Generator().manual_seed(seed)
    starts = torch.randint(0, MODEL["vocab_size"], (sequences, 1), generator=draw)
    return (starts + torch.arange(seq_len + 1)) % min(MODEL["vocab_size"], 4096)


def norm(size: int) -> nn.Module:
    return (nn.LayerNorm if MODEL["norm_bias"] else nn.RMSNorm)(size, eps=NORM_EPS)


class Attention(nn.Module):
    """Grouped-query attention. Under tensor parallelism it sees its own heads only."""

    def __init__(self) -> None:
        super().__init__()
        h, d = MODEL["hidden_size"], MODEL["head_dim"]
        a, k = MODEL["num_attention_heads"], MODEL["num_kv_heads"]
        self.wq = nn.Linear(h, a * d, bias=MODEL["qkv_bias"])
        self.wk = nn.Linear(h, k * d, bias=MODEL["qkv_bias"])
        self.wv = nn.Linear(h, k * d, bias=MODEL["qkv_bias"])
        self.wo = nn.Linear(a * d, h, bias=MODEL["linear_bias"])
        self.q_norm = nn.RMSNorm(d, eps=NORM_EPS) if MODEL["qk_norm"] else nn.Identity()
        self.k_norm = nn.RMSNorm(d, eps=NORM_EPS) if MODEL["qk_norm"] else nn.Identity()

    def forward(self, x: Tensor, angles: Tensor | None) -> Tensor:
        cut = (*x.shape[:2], -1, MODEL["head_dim"])
        q = self.q_norm(self.wq(x).view(cut)).transpose(1, 2)
        k = self.k_norm(self.wk(x).view(cut)).transpose(1, 2)
        v = self.wv(x).view(cut).transpose(1, 2)
        if angles is not None:
            q, k = rotated(q, angles), rotated(k, angles)
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.wo(out.transpose(1, 2).flatten(2))


def rotated(x: Tensor, angles: Tensor) -> Tensor:
    """Rotary position embedding (Su et al. 2021) of (batch, heads, tokens, head_dim)."""
    first, second = x.float().chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1).to(x.dtype)


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        h, f, bias = MODEL["hidden_size"], MODEL["ffn_hidden_size"], MODEL["linear_bias"]
        self.up = nn.Linear(h, f, bias=bias)
        self.gate = nn.Linear(h, f, bias=bias) if MODEL["gated_mlp"] else None
        self.down = nn.Linear(f, h, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        if self.gate is None:
            return self.down(functional.gelu(self.up(x)))
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.attention = norm(MODEL["hidden_size"]), Attention()
        self.mlp_norm, self.mlp = norm(MODEL["hidden_size"]), Mlp()

    def forward(self, x: Tensor, angles: Tensor | None) -> Tensor:
        if PLAN["recompute"] == "none" or not self.training:
            return self._layer(x, angles)
        more: dict[str, Any] = {}
        if PLAN["recompute"] == "selective":
            more["context_fn"] = partial(recompute.create_selective_checkpoint_contexts, kept)
        return recompute.checkpoint(self._layer, x, angles, use_reentrant=False, **more)

    def _layer(self, x: Tensor, angles: Tensor | None) -> Tensor:
        x = x + self.attention(self.attention_norm(x), angles)
        return x + self.mlp(self.mlp_norm(x))


EXPENSIVE = ("aten.mm", "aten.addmm", "scaled_dot_product", "reduce_scatter")


def kept(_context: Any, operator: Any, *_args: Any, **_kwargs: Any) -> recompute.CheckpointPolicy:
    """Selective recompute: matmuls and attention are kept, what is cheap is computed again."""
    wanted = any(name in str(operator) for name in EXPENSIVE)
    policies = recompute.CheckpointPolicy
    return policies.MUST_SAVE if wanted else policies.PREFER_RECOMPUTE


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        h, vocabulary = MODEL["hidden_size"], MODEL["vocab_size"]
        self.tokens = nn.Embedding(vocabulary, h)
        rows = MODEL["num_positions"]
        self.positions = nn.Embedding(rows, h) if rows else None
        self.blocks = nn.ModuleList(Block() for _ in range(MODEL["num_layers"]))
        self.norm = norm(h)
        self.head = nn.Linear(h, vocabulary, bias=False)
        self.tie()

    def tie(self) -> None:
        """Again after every step that made new weights: sharding, leaving the meta device."""
        if MODEL["tied_embeddings"]:
            self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens)
        angles = None
        place = torch.arange(tokens.shape[1], device=tokens.device)
        if self.positions is not None:
            x = x + self.positions(place)
        else:
            half = torch.arange(0, MODEL["head_dim"], 2, device=tokens.device).float()
            angles = torch.outer(place.float(), ROPE_THETA ** (-half / MODEL["head_dim"]))
        for block in self.blocks:
            x = block(x, angles)
        return self.head(self.norm(x))


def cut_by_tp(model: Decoder, mesh: DeviceMesh) -> None:
    """Tensor parallelism with sequence parallelism: between its matmuls an activation is cut
    along the tokens. (Korthikanti et al. 2023, section 4.2.2)"""
    along = Shard(1)
    ends: dict[str, Any] = {
        "tokens": parallel.RowwiseParallel(input_layouts=Replicate(), output_layouts=along),
        "norm": parallel.SequenceParallel(),
        "head": parallel.ColwiseParallel(
            input_layouts=along, output_layouts=Shard(-1), use_local_output=False
        ),
    }
    parallel.parallelize_module(model, mesh, ends)
    for block in model.blocks:
        steps: dict[str, Any] = {
            "attention_norm": parallel.SequenceParallel(),
            "attention": parallel.PrepareModuleInput(
                input_layouts=(along, None), desired_input_layouts=(Replicate(), None)
            ),
            **{f"attention.{name}": parallel.ColwiseParallel() for name in ("wq", "wk", "wv")},
            "attention.wo": parallel.RowwiseParallel(output_layouts=along),
            "mlp_norm": parallel.SequenceParallel(),
            "mlp": parallel.PrepareModuleInput(
                input_layouts=along, desired_input_layouts=Replicate()
            ),
            "mlp.up": parallel.ColwiseParallel(),
            "mlp.down": parallel.RowwiseParallel(output_layouts=along),
        }
        if MODEL["gated_mlp"]:
            steps["mlp.gate"] = parallel.ColwiseParallel()
        if MODEL["qk_norm"]:  # cut by heads
            for name in ("attention.q_norm", "attention.k_norm"):
                steps[name] = parallel.SequenceParallel(sequence_dim=2, use_local_output=True)
        parallel.parallelize_module(block, mesh, steps)


def built(device: torch.device, mesh: DeviceMesh) -> nn.Module:
    """The model, sharded before it takes any memory, then given its first weights."""
    with torch.device("meta"):
        model = Decoder()
    if PLAN["tp"] > 1:
        cut_by_tp(model, mesh["tp"])
        model.tie()
    on_cpu = PLAN["offload_params"] == "cpu" and device.type == "cuda"
    if PLAN["sharding"] != "ddp":
        half = torch.bfloat16 if PLAN["precision"] == "bf16" else torch.float32
        names = ("dp_replicate", "dp_shard") if PLAN["dp_replicate"] > 1 else ("dp_shard",)
        how: dict[str, Any] = {
            "mesh": mesh[names],
            "mp_policy": fsdp.MixedPrecisionPolicy(param_dtype=half, reduce_dtype=torch.float32),
            "offload_policy": fsdp.CPUOffloadPolicy() if on_cpu else fsdp.OffloadPolicy(),
        }
        for block in model.blocks:
            fsdp.fully_shard(block, reshard_after_forward=PLAN["reshard_after_forward"], **how)
        fsdp.fully_shard(model, **how)
    model.to_empty(device="cpu" if on_cpu else device)
    model.tie()
    first_weights(model)
    if PLAN["compiled"] and device.type == "cuda":
        for block in model.blocks:
            block.compile()
    if PLAN["sharding"] == "ddp" and dist.get_world_size() > 1:
        return DistributedDataParallel(model)
    return model


@torch.no_grad()
def first_weights(model: nn.Module) -> None:
    """Normal matrices, norms of one, biases of zero. Every shard draws its own numbers, and
    replicas of a shard draw the same ones."""
    for i, (name, weight) in enumerate(model.named_parameters()):
        shard, local = 0, weight.data
        if isinstance(weight, DTensor):
            places = weight.device_mesh.get_coordinate() or ()
            for coordinate, placement in zip(places, weight.placements, strict=True):
                shard = shard * 4096 + (0 if isinstance(placement, Replicate) else coordinate)
            local = weight.to_local()
        if "norm" in name and name.endswith("weight"):
            local.fill_(1.0)
        elif name.endswith("bias"):
            local.zero_()
        else:
            seed = (i + 1) * 2**33 + shard
            generator = torch.Generator(local.device).manual_seed(seed % 2**63)
            local.normal_(0.0, INIT_STD, generator=generator)


def optimizer_of(model: nn.Module, learning_rate: float) -> torch.optim.Optimizer:
    kinds = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
    return kinds[PLAN["optimizer"]](model.parameters(), lr=learning_rate)


def step_of(model: nn.Module, step: int, device: torch.device, dp_rank: int) -> Tensor:
    """Forward and backward of every micro-batch; the mean loss of this rank."""
    total = torch.zeros((), device=device)
    count = PLAN["num_microbatches"]
    autocast = PLAN["sharding"] == "ddp" and PLAN["precision"] == "bf16"
    for number in range(count):
        last = number == count - 1
        waits: Any = nullcontext()
        if isinstance(model, fsdp.FSDPModule):  # gradients stay sharded, replicas meet once a step
            model.set_requires_all_reduce(last)
        elif isinstance(model, DistributedDataParallel) and not last:
            waits = model.no_sync()
        tokens = batch(step, number, dp_rank, PLAN["micro_batch_size"], PLAN["seq_len"])
        tokens = tokens.to(device, non_blocking=True)
        with waits, parallel.loss_parallel() if PLAN["tp"] > 1 else nullcontext():
            with torch.autocast(device.type, torch.bfloat16, enabled=autocast):
                logits = model(tokens[:, :-1])
            loss = (
                functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
                / count
            )
            loss.backward()
        part = loss.detach()
        total += part.full_tensor() if isinstance(part, DTensor) else part
    return total


def say(text: str) -> None:
    if dist.get_rank() == 0:
        print(text, flush=True)


def train(options: argparse.Namespace, device: torch.device) -> None:
    world, rank, tp = dist.get_world_size(), dist.get_rank(), PLAN["tp"]
    if world != PLAN["world_size"]:
        if not (options.tiny or options.any_world_size):
            raise SystemExit(
                f"The plan is for {PLAN['world_size']} processes, not {world}: start as many, or "
                "say --any-world-size (the global batch changes with them)."
            )
        PLAN["tp"] = tp = tp if world % tp == 0 and MODEL["num_kv_heads"] % tp == 0 else 1
        replicas = PLAN["dp_replicate"]
        PLAN["dp_replicate"] = replicas if (world // tp) % replicas == 0 else 1
        PLAN["dp_shard"] = world // tp // PLAN["dp_replicate"]
    sequences = PLAN["micro_batch_size"] * PLAN["num_microbatches"] * (world // tp)
    sizes = {"dp_replicate": PLAN["dp_replicate"], "dp_shard": PLAN["dp_shard"], "tp": tp}
    mesh = init_device_mesh(device.type, tuple(sizes.values()), mesh_dim_names=tuple(sizes))
    model = built(device, mesh)
    optimizer = optimizer_of(model, options.learning_rate)
    step = resumed(model, optimizer, options.checkpoint_dir) if options.resume else 0
    degrees = ", ".join(f"{name}={size}" for name, size in sizes.items())
    count = sum(p.numel() for p in model.parameters())
    say(f"parameters: {count}, device mesh with parallelism: {degrees}")
    say(f"from step {step}: global batch size {sequences}, sequence length {PLAN['seq_len']}")
    until = step + options.steps if options.steps else PLAN["num_steps"]
    every = options.checkpoint_every
    while step < until:
        begin = time.perf_counter()
        loss = step_of(model, step, device, rank // tp)
        optimizer.step()
        optimizer.zero_grad()
        dist.all_reduce(loss)
        mean, step = loss.item() / world, step + 1  # waits for the device
        took = time.perf_counter() - begin
        rate = sequences * PLAN["seq_len"] / took
        on_gpu = device.type == "cuda"
        held = torch.cuda.max_memory_reserved() / 2**30 if on_gpu else 0.0
        whole = torch.cuda.mem_get_info()[1] / 2**30 if on_gpu else 1.0
        say(
            f"step: {step}  loss: {mean:.5f}  memory: {held:.2f}GiB({held / whole:.2%})  "
            f"tps: {rate / world:,.0f}  tokens_per_s: {rate:.1f}  step_s: {took:.4f}"
        )
        if options.checkpoint_dir and (step == until or (every and step % every == 0)):
            saved(model, optimizer, step, options.checkpoint_dir)
            say(f"checkpoint: step {step}")


def saved(model: nn.Module, optimizer: torch.optim.Optimizer, step: int, folder: Path) -> None:
    """Every process writes its shards; any number of processes can read them again."""
    weights, states = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": states, "step": torch.tensor(step)}
    save(state, checkpoint_id=folder / f"step-{step}")


def resumed(model: nn.Module, optimizer: torch.optim.Optimizer, folder: Path) -> int:
    """Load the newest whole checkpoint; the step it was saved after, 0 where there is none."""
    whole = [int(p.parent.name[5:]) for p in folder.glob("step-*/.metadata")]
    if not whole:
        return 0
    weights, states = get_state_dict(model, optimizer)
    number = torch.tensor(0)
    state = {"model": weights, "optimizer": states, "step": number}
    load(state, checkpoint_id=folder / f"step-{max(whole)}")
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=states)
    return int(number)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="small dimensions, to try it")
    parser.add_argument("--any-world-size", action="store_true")
    parser.add_argument("--steps", type=int, default=0, help="this many; default: the plan's")
    parser.add_argument("--learning-rate", type=float, default=TRIAL_LEARNING_RATE)
    parser.add_argument("--checkpoint-dir", type=Path)
    parser.add_argument("--checkpoint-every", type=int, default=0, help="steps; 0: at the end")
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    if options.resume and not options.checkpoint_dir:
        parser.error("--resume needs --checkpoint-dir")
    return options


def main() -> None:
    options = arguments()
    if options.tiny:
        MODEL.update(TINY, num_positions=64 if MODEL["num_positions"] else 0)
        PLAN.update(seq_len=64, num_microbatches=min(PLAN["num_microbatches"], 2))
    device = torch.device(options.device)
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo")
    try:
        train(options, device)
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
    if "TORCHELASTIC_RUN_ID" in os.environ:  # torchrun takes it for failed where, while the
        os._exit(0)  # interpreter ends, a thread of gloo that still lets go of a tensor aborts it

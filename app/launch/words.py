"""What to check when a launched job goes wrong, with the plan's own figures."""

from __future__ import annotations

import math
from collections.abc import Mapping

from app.document import format as fmt
from core.scenario import Scenario
from core.search.plan import Plan

MEMORY = {
    "parameters": "weights", "gradients": "gradients", "optimizer": "optimizer states",
    "activations": "activations", "logits": "logits", "buffers": "buffers",
    "reserve": "what the framework and its libraries keep",
}  # fmt: skip


TIERS = {"validated": "validated with the tool", "not_validated": "not validated with the tool"}
Looks = Mapping[str, str]  # where to look -> what to do about it; likeliest first


def troubles(scenario: Scenario, plan: Plan) -> dict[str, Looks]:
    """Where to look, by what goes wrong."""
    return {
        "It runs out of memory": _memory(plan),
        "It hangs": _hang(plan),
        "It diverges": _diverges(scenario),
    }


def _memory(plan: Plan) -> Looks:
    peak = math.fsum(plan.memory_bytes.values())
    part, size = max(plan.memory_bytes.items(), key=lambda x: x[1])
    return {
        "torch.cuda.max_memory_allocated() after the second step, on every rank": "The forecast is "
        f"{fmt.gib(peak)} of {fmt.gib(plan.memory_capacity_bytes)}, most of it "
        f"{MEMORY.get(part, part)} ({fmt.gib(size)}). Far above it, something is held that the "
        "plan does not know: a second copy of the weights, an evaluation, unsharded logits.",
        "whether it fails at the first steps or after hours": "After hours it is fragmentation or "
        "something that grows: compare memory_reserved with memory_allocated, and set "
        "PYTORCH_ALLOC_CONF=expandable_segments:True.",
        "whether it is one rank or all of them": "One rank alone: the fullest pipeline stage, an "
        "expert that gets most tokens, or another process on that GPU (nvidia-smi).",
        "what would make room": "A smaller micro-batch, the next level of recompute, or more "
        "sharding: `runcast explain` says what each costs in time.",
    }


def _hang(plan: Plan) -> Looks:
    rate, step_s = plan.tokens_per_s, math.fsum(plan.step_s.values())
    slow_s = step_s * rate.p50 / rate.p10
    return {
        "whether every process has printed anything": "Before the first step it is the rendezvous: "
        f"the same address and port on every node, {plan.num_nodes} nodes started, no firewall "
        "between them. NCCL_DEBUG=INFO says which interface each node took.",
        "the first collective": "NCCL_DEBUG_SUBSYS=INIT,NET shows the network that was chosen: it "
        "must be the fast one, not Socket. preflight.sh says whether a node's links, clocks or "
        "driver are at fault.",
        "the flight recorder's files, which are written when a collective times out": "They name "
        "the rank that did not come and the call the others wait in. On that node: py-spy dump "
        "--pid, and dmesg for Xid errors of the GPU.",
        "the time of a step, if it is slow and does not hang": "The forecast is "
        f"{fmt.seconds(step_s)}, with P90 at {fmt.seconds(slow_s)}. Beyond it: the data loader "
        "(GPUs idle between steps), one slow node (steps of all ranks wait for it), or a network "
        "that fell back to TCP.",
    }


def _diverges(scenario: Scenario) -> Looks:
    per_step = scenario.global_batch_size * scenario.seq_len
    in_16_bits = {
        f"the same steps in bf16 instead of {scenario.precision}": "fp16 needs its loss scaling to "
        "settle; fp8 and fp4 want the first and last layers in 16 bits.",
    }
    return {
        "tokens of one step in the log": f"The plan has {fmt.count(per_step)}: "
        f"{fmt.count(scenario.global_batch_size)} sequences of {fmt.count(scenario.seq_len)}. "
        "Another number is another learning rate.",
        "the first ten losses on one node and on all, with the same data and seed": "They agree to "
        "about three digits. If not, the layout is at fault: gradients that are not averaged over "
        "all replicas, or a loss that is averaged twice.",
        **(in_16_bits if scenario.precision != "bf16" else {}),
        "the norm of the gradients before the loss rises": "A jump on one batch is data: skip it. "
        "A slow climb is a learning rate that is too high or a warm-up that is too short.",
        "the loss after a restart": "It goes on where it was. If it jumps, the optimizer's states, "
        "the position in the data or the random state were not in the checkpoint.",
        "NaN on one rank alone": "A broken GPU: nvidia-smi -q -d ECC, then run the same batch on "
        "another node.",
    }

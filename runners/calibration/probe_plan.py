"""Plan of a probe: calib-plan/1, the file that runners/probes/plan.py reads.

The shapes are those of the plan being calibrated (model, tensor parallelism, micro-batch,
sequence), and six anchors that never change, so that any two results can be compared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from core.errors import RuncastError, shown

SCHEMA = "calib-plan/1"
# In order of value: when the budget ends, the last ones are missing.
GROUPS = (
    "matmul", "layers", "holdout", "attention", "collectives", "block", "memory_bandwidth",
    "memory_bound", "overlap", "optimizer", "host_device", "checkpoint", "compiled_block",
)  # fmt: skip
DTYPES = ("bf16", "fp8", "fp32")
REDUCED_DTYPES = ("bf16", "fp32")  # a CPU multiplies fp8 through fp32
COLLECTIVE_MAX_BYTES = 2**30
REDUCED_COLLECTIVE_MAX_BYTES = 4 * 2**20
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# Facts on the place of the node and on its software, which only the user gives.
TOLD = ("cloud", "instance_type", "region", "purchase", "image", "stack", "software_date")

Shape = dict[str, Any]


class ProbePlanError(RuncastError):
    """A workload or an id is not valid for a plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The part of a training job that one rank computes, in whole numbers before division by tp."""

    hidden_size: int
    ffn_hidden_size: int
    num_attention_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    tp: int
    micro_batch_size: int
    seq_len: int

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 2**31:
                raise ProbePlanError(
                    f"{field.name} {shown(value)} is not a whole number from 1 to {2**31:,}."
                )
        if self.num_attention_heads % self.tp or self.num_attention_heads % self.num_kv_heads:
            raise ProbePlanError(
                f"{self.num_attention_heads} attention heads are not divided evenly by tp "
                f"{self.tp} and by {self.num_kv_heads} key heads."
            )


# Llama 3 8B (arXiv:2407.21783, table 3), one sequence of 8,192 tokens: the default.
DEFAULT = Workload(
    hidden_size=4096, ffn_hidden_size=14336, num_attention_heads=32, num_kv_heads=8, head_dim=128,
    vocab_size=128256, tp=1, micro_batch_size=1, seq_len=8192,
)  # fmt: skip


def anchors(*, reduced: bool = False) -> list[Shape]:
    """Six matmuls of every result; the reduced ones are small enough for a CPU.

    >>> [a["label"] for a in anchors()]
    ['square', 'tokens_1k', 'small_m', 'wgrad', 'moe_expert', 'odd']
    """
    if reduced:
        sizes = [(512, 512, 512), (64, 512, 512), (4, 512, 512), (512, 512, 128), (32, 128, 448),
                 (257, 511, 263)]  # fmt: skip
    else:
        sizes = [(8192, 8192, 8192), (1024, 8192, 8192), (16, 8192, 8192), (8192, 8192, 4096),
                 (512, 2048, 7168), (4097, 8191, 5003)]  # fmt: skip
    labels = ("square", "tokens_1k", "small_m", "wgrad", "moe_expert", "odd")
    return [
        {"label": label, "m": m, "n": n, "k": k, "transpose_a": label == "wgrad"}
        for label, (m, n, k) in zip(labels, sizes, strict=True)
    ]


def workload_shapes(workload: Workload, *, backward: bool = True) -> list[Shape]:
    """The matmuls of one layer and of the head on one rank: forward (tokens, out, in), the
    gradient of the input (tokens, in, out) and that of the weight (out, in, tokens).

    >>> up = workload_shapes(DEFAULT, backward=False)[2]
    >>> up["label"], up["m"], up["n"], up["k"]
    ('mlp_up.fwd', 8192, 28672, 4096)
    """
    c = local_block(workload)
    tokens = c["seq_len"] * c["micro_batch_size"]
    hidden, heads, d = c["hidden_size"], c["num_attention_heads"], c["head_dim"]
    weights = {  # name -> (output size, input size)
        "qkv": ((heads + 2 * c["num_kv_heads"]) * d, hidden),
        "attention_out": (hidden, heads * d),
        "mlp_up": (2 * c["ffn_hidden_size"], hidden),
        "mlp_down": (hidden, c["ffn_hidden_size"]),
        "head": (c["vocab_size"], hidden),
    }
    shapes = []
    for name, (out, into) in weights.items():
        shapes.append(_shape(f"{name}.fwd", tokens, out, into))
        if backward:
            shapes.append(_shape(f"{name}.dgrad", tokens, into, out))
            shapes.append(_shape(f"{name}.wgrad", out, into, tokens, transpose_a=True))
    return shapes


def _shape(label: str, m: int, n: int, k: int, *, transpose_a: bool = False) -> Shape:
    return {"label": label, "m": m, "n": n, "k": k, "transpose_a": transpose_a}


def local_block(workload: Workload) -> dict[str, int]:
    """One rank's part of a block under tensor parallelism; key heads fewer than tp are copied."""
    w = workload
    return {
        "hidden_size": w.hidden_size,
        "ffn_hidden_size": -(-w.ffn_hidden_size // w.tp),
        "num_attention_heads": w.num_attention_heads // w.tp,
        "num_kv_heads": max(1, w.num_kv_heads // w.tp),
        "head_dim": w.head_dim,
        "vocab_size": -(-w.vocab_size // w.tp),
        "seq_len": w.seq_len,
        "micro_batch_size": w.micro_batch_size,
    }


def reduced_workload(workload: Workload) -> Workload:
    """A block of equal kind, small enough for one core: hidden size 256, 128 tokens."""
    w = workload
    ratio = min(4.0, max(1.0, w.ffn_hidden_size / w.hidden_size))
    kv = max(1, round(4 * w.num_kv_heads / w.num_attention_heads))
    return replace(
        w, hidden_size=256, ffn_hidden_size=round(256 * ratio / 16) * 16, num_attention_heads=4,
        num_kv_heads=4 if kv > 2 else kv, head_dim=64, vocab_size=2048, tp=1, micro_batch_size=1,
        seq_len=128,
    )  # fmt: skip


def probe_plan(
    *,
    run_id: str,
    launcher: str,
    planner_version: str,
    workload: Workload | None = None,
    groups: Sequence[str] = GROUPS,
    dtypes: Sequence[str] | None = None,
    collective_max_bytes: int | None = None,
    collective_s: float | None = None,
    row_s: float | None = None,
    reduced: bool = False,
    device: str | None = None,
    job_id: str | None = None,
    sku_key: str | None = None,
    planner_commit: str | None = None,
    told: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A calib-plan/1 of the shapes of a workload and the anchors.

    Without a workload, `DEFAULT` is measured. `reduced` makes every shape small enough for a CPU,
    so that the whole probe takes half a minute. `device="cpu"` leaves a GPU alone. `row_s` and
    `collective_s` are seconds of one row and of all collectives; the probe has its own.
    """
    if not RUN_ID.fullmatch(run_id):
        raise ProbePlanError(
            f"The run id {shown(run_id)} is not 1 to 64 letters, digits, '.', '_' or '-'."
        )
    if unknown := [g for g in groups if g not in GROUPS]:
        raise ProbePlanError(
            f"There is no group {shown(unknown[0])} to measure; there are {', '.join(GROUPS)}."
        )
    if unknown := [key for key in told or {} if key not in TOLD]:
        raise ProbePlanError(f"{shown(unknown[0])} is not a fact on a node; {', '.join(TOLD)} are.")
    chosen = workload or DEFAULT
    if reduced:
        chosen = reduced_workload(chosen)
    block = local_block(chosen)
    most = REDUCED_COLLECTIVE_MAX_BYTES if reduced else COLLECTIVE_MAX_BYTES
    return {
        "schema": SCHEMA,
        "run_id": run_id,
        "groups": list(groups),
        "shapes": anchors(reduced=reduced) + workload_shapes(chosen, backward=not reduced),
        "attention": [
            {
                "label": "plan",
                "batch": block["micro_batch_size"],
                "num_heads": block["num_attention_heads"],
                "num_kv_heads": block["num_kv_heads"],
                "seq_len": block["seq_len"],
                "head_dim": block["head_dim"],
                "causal": True,
            }
        ],
        "block": {**block, "layer_counts": [1, 3], "holdout_layers": 4},
        "collective_max_bytes": collective_max_bytes or most,
        "collective_s": collective_s,
        "row_s": row_s,
        "dtypes": list(dtypes or (REDUCED_DTYPES if reduced else DTYPES)),
        "reduced": reduced,
        "device": device,
        "launcher": launcher,
        "job_id": job_id,
        "sku_key": sku_key,
        "planner_version": planner_version,
        "planner_commit": planner_commit,
        "told": dict(told or {}),
    }

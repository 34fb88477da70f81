"""Why a layout cannot be used: the rules it breaks with their figures, or missing memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.explain.explain import Evaluated
from core.layout.layouts import RULES, Choices, Layouts, broken_rules, dp
from core.layout.workload import Workload
from core.numeric import as_float

# Rules of the data-parallel ranks: reported only where their number is whole.
OF_RANKS = ("batch", "interleaving", "experts", "nothing_to_shard", "hybrid", "shard_group")


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """One rule that a layout breaks."""

    reason: str  # a key of core.layout.layouts.RULES
    sentence: str
    figures: tuple[tuple[str, float], ...]  # the numbers that the rule compares, by name


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """Memory that one GPU lacks."""

    need_bytes: float
    usable_bytes: float  # that may be planned for, given the error of the forecast
    capacity_bytes: float
    largest_part: str
    largest_bytes: float

    @property
    def over_bytes(self) -> float:
        """Bytes by which the layout exceeds the memory."""
        return self.need_bytes - self.usable_bytes


def obstacles(work: Workload, layouts: Layouts, row: int, choices: Choices) -> tuple[Obstacle, ...]:
    """Every rule that one row breaks, in the order of RULES; none if the layout is legal. Rules of
    ranks are left out where the number of ranks is not whole: they follow from it."""
    one = layouts.take(np.array([row]))
    broken = broken_rules(
        one,
        model=work.model,
        seq_len=int(np.asarray(work.seq_len)),
        global_batch_size=int(np.asarray(work.global_batch_size)),
        choices=choices,
    )
    return tuple(
        Obstacle(
            reason=reason,
            sentence=RULES.get(reason, reason.replace("_", " ")),
            figures=figures(reason, work, one),
        )
        for reason, rows in broken.items()
        if rows[0] and not (broken["gpu_count"][0] and reason in OF_RANKS)
    )


def figures(reason: str, work: Workload, one: Layouts) -> tuple[tuple[str, float], ...]:
    """The numbers that a rule compares, for a layout of one row; none for a rule without
    numbers."""

    def of(name: str) -> float:
        return as_float(getattr(one, name))

    def model(name: str) -> float:
        return as_float(getattr(work.model, name))

    tp, pp, cp, ep, etp = (of(n) for n in ("tp", "pp", "cp", "ep", "etp"))
    ranks = as_float(dp(one))
    batch = as_float(work.global_batch_size)
    found: dict[str, tuple[tuple[str, float], ...]] = {
        "gpu_count": (("tp x pp x cp", tp * pp * cp), ("GPUs", of("num_gpus"))),
        "heads": (("tp", tp), ("attention heads", model("num_attention_heads"))),
        "kv_heads": (("tp", tp), ("KV heads", model("num_kv_heads"))),
        "state_heads": (
            ("tp", tp),
            ("state-space heads", model("ssm_num_heads")),
            ("linear-attention key heads", model("linear_num_key_heads")),
        ),
        "ffn": (("tp", tp), ("MLP size", model("ffn_hidden_size"))),
        "layers": (
            ("pp x virtual stages", pp * of("virtual_stages")),
            ("layers", model("num_layers")),
        ),
        "uneven": (
            ("pp x virtual stages", pp * of("virtual_stages")),
            ("layers", model("num_layers")),
        ),
        "sequence": (("cp", cp), ("tokens of a sequence", as_float(work.seq_len))),
        "ulysses_heads": (
            ("tp x cp", tp * cp),
            ("attention heads", model("num_attention_heads")),
            ("KV heads", model("num_kv_heads")),
        ),
        "batch": (
            ("dp x micro-batch", ranks * of("micro_batch_size")),
            ("sequences of a global batch", batch),
        ),
        "interleaving": (("pp", pp), ("micro-batches", of("num_microbatches"))),
        "virtual_stages": (("virtual stages", of("virtual_stages")),),
        "no_pipeline": (("pp", pp), ("virtual stages", of("virtual_stages"))),
        "experts": (
            ("ep x etp", ep * etp),
            ("experts", model("num_experts")),
            ("ranks of a stage", ranks * tp * cp),
        ),
        "expert_cut": (("etp", etp), ("tp", tp)),
        "no_experts": (("ep", ep), ("etp", etp), ("experts", model("num_experts"))),
        "expert_size": (("etp", etp), ("size of an expert", model("moe_ffn_hidden_size"))),
        "pipeline_sharding": (("pp", pp),),
        "nothing_to_shard": (("ranks to shard over", of("dp_shard") * cp),),
        "shard_group": (("ranks that share one copy", of("dp_shard")),),
        "hybrid": (("replicas", of("dp_replicate")), ("shards", of("dp_shard"))),
    }
    return found.get(reason, ())


def shortage(found: Evaluated, row: int) -> Shortage | None:
    """What one row lacks; None where it fits."""
    if bool(found.fits[row]):
        return None
    parts = {k: float(v[row]) for k, v in found.memory_bytes.items()}
    largest = max(parts, key=lambda p: parts[p])
    return Shortage(
        need_bytes=float(found.need_bytes[row]),
        usable_bytes=float(found.usable_bytes[row]),
        capacity_bytes=float(found.capacity_bytes[row]),
        largest_part=largest,
        largest_bytes=parts[largest],
    )

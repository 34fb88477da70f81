"""Made-up cases for tests of explanations: a job on eight-GPU machines, and layouts of it."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from core.explain.explain import Case, Place, columns_of
from core.layout.layouts import Choices, broken_rules
from core.model.transformer import Transformer
from core.search.plan import Layout
from tests.made_up.jobs import CLUSTER, LLAMA_8B, LLAMA_70B, MIXTRAL_8X7B, SHIPPED, workload

NUM_GPUS = 64
BATCH = 512
CHOICES = Choices(schedule="interleaved")
PLACE = Place(name="H100", cluster=CLUSTER, gpus_per_instance=8.0, usd_per_instance_hour=50.0)
JOBS = (LLAMA_8B, LLAMA_70B, MIXTRAL_8X7B)


def case(model: Transformer = LLAMA_8B, **changes: Any) -> Case:
    """A job of 1e11 tokens in sequences of 8k, 512 a step; `changes` are of its workload."""
    given = {"seq_len": 8192.0, "global_batch_size": float(BATCH), **changes}
    return Case(
        work=workload(model, **given),
        place=PLACE,
        eff=SHIPPED["generic"],
        memory_sigma=0.1,
        num_tokens=1e11,
    )


def layout(**changes: Any) -> Layout:
    """Fully sharded data parallelism over 64 GPUs, unless said otherwise."""
    given: dict[str, Any] = {
        "tp": 1, "pp": 1, "virtual_stages": 1, "cp": 1, "ep": 1, "sharding": "fsdp2",
        "micro_batch_size": 1, "recompute": "full", "dp_replicate": 1, **changes,
    }  # fmt: skip
    ranks = NUM_GPUS / (given["tp"] * given["pp"] * given["cp"])
    given.setdefault("dp_shard", int(ranks) if ranks % 1 == 0 else ranks)
    batches = BATCH / (ranks * given["micro_batch_size"])
    given.setdefault("num_microbatches", int(max(batches, 1)))
    return Layout(**given)


@st.composite
def legal(draw: st.DrawFn) -> tuple[Case, Layout]:
    """A job and one of its legal layouts, which need not fit."""
    found = case(draw(st.sampled_from(JOBS)))
    moe = float(found.work.model.num_experts) > 0
    one = layout(
        tp=draw(st.sampled_from([1, 2, 4, 8])),
        pp=draw(st.sampled_from([1, 1, 2, 4])),
        ep=draw(st.sampled_from([1, 2, 8])) if moe else 1,
        sharding=draw(st.sampled_from(["zero1", "fsdp2", "ddp"])),
        micro_batch_size=draw(st.sampled_from([1, 2, 4])),
        recompute=draw(st.sampled_from(["none", "selective", "full"])),
    )
    if is_legal(found, one):
        return found, one
    return found, layout()


def is_legal(found: Case, one: Layout, num_gpus: int = NUM_GPUS) -> bool:
    """Whether a layout breaks none of the rules."""
    broken = broken_rules(
        columns_of([one], [num_gpus]),
        model=found.work.model,
        seq_len=int(found.work.seq_len),
        global_batch_size=int(found.work.global_batch_size),
        choices=CHOICES,
    )
    return not any(rows[0] for rows in broken.values())

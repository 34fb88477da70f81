"""Made-up jobs for tests of explanations, on eight-GPU machines, and layouts of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from core.explain.explain import columns_of
from core.layout.layouts import Choices, broken_rules
from core.machine.cluster import Cluster
from core.model.transformer import Transformer
from core.search.job import Machine, PlanJob, Question
from core.search.plan import Layout
from tests.made_up import plans
from tests.made_up.jobs import CLUSTER, LLAMA_8B, LLAMA_70B, MIXTRAL_8X7B, SHIPPED, workload

NUM_GPUS = 64
BATCH = 512
CHOICES = Choices(schedule="interleaved")
JOBS = (LLAMA_8B, LLAMA_70B, MIXTRAL_8X7B)


def machine(
    name: str = "H100", cluster: Cluster = CLUSTER, usd: float | None = 50.0, **changes: Any
) -> Machine:
    """Eight GPUs for so many dollars an hour, at once and without a host's memory."""
    base = plans.job().machine
    return replace(
        base,
        accelerator=replace(base.accelerator, name=name),
        cluster=cluster,
        offer=plans.offer(usd_per_hour=usd),
        supply=replace(base.supply, startup_hours=0.0, least_billed_hours=0.0),
        **{"host_bytes": 0.0, **changes},
    )


def job(model: Transformer = LLAMA_8B, *, on: Machine | None = None, **changes: Any) -> PlanJob:
    """A job of 1e11 tokens in sequences of 8k, 512 a step; `changes` are of its workload."""
    given = {"seq_len": 8192.0, "global_batch_size": float(BATCH), **changes}
    on = machine() if on is None else on
    eff = replace(SHIPPED["generic"], memory_sigma=0.1)
    return replace(
        plans.job(),
        question=Question(work=workload(model, **given), eff=eff, choices=CHOICES),
        machine=on,
        cluster=on.cluster,
        num_gpus=NUM_GPUS,
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
def legal(draw: st.DrawFn) -> tuple[PlanJob, Layout]:
    """A job and one of its legal layouts, which need not fit."""
    found = job(draw(st.sampled_from(JOBS)))
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


def is_legal(found: PlanJob, one: Layout, num_gpus: int = NUM_GPUS) -> bool:
    """Whether a layout breaks none of the rules."""
    broken = broken_rules(
        columns_of([one], [num_gpus]),
        model=found.work.model,
        seq_len=int(found.work.seq_len),
        global_batch_size=int(found.work.global_batch_size),
        choices=CHOICES,
    )
    return not any(rows[0] for rows in broken.values())

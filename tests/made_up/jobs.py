"""Made-up jobs for tests of the formulas: scalars by default, random ones, and columns of them."""

from __future__ import annotations

from dataclasses import fields, replace
from math import nan
from typing import Any

import numpy as np
from hypothesis import strategies as st

from core.layout.layouts import CONTEXT_METHODS, RECOMPUTE, SCHEDULES, Layouts
from core.layout.sharding import INDEX, STRATEGIES
from core.layout.workload import CPU, NOWHERE, NVME, Workload
from core.machine.cluster import Cluster
from core.machine.cluster import as_columns as cluster_columns
from core.machine.efficiency import Efficiency
from core.model.transformer import Transformer
from core.model.transformer import as_columns as model_columns
from hardware.efficiency import load_efficiencies

LLAMA_8B = Transformer(
    num_layers=32, hidden_size=4096, ffn_hidden_size=14336, num_attention_heads=32,
    num_kv_heads=8, head_dim=128, vocab_size=128256,
)  # fmt: skip
LLAMA_70B = Transformer(
    num_layers=80, hidden_size=8192, ffn_hidden_size=28672, num_attention_heads=64,
    num_kv_heads=8, head_dim=128, vocab_size=128256,
)  # fmt: skip
LLAMA_405B = Transformer(
    num_layers=126, hidden_size=16384, ffn_hidden_size=53248, num_attention_heads=128,
    num_kv_heads=8, head_dim=128, vocab_size=128256,
)  # fmt: skip
LLAMA_2_7B = Transformer(
    num_layers=32, hidden_size=4096, ffn_hidden_size=11008, num_attention_heads=32,
    num_kv_heads=32, head_dim=128, vocab_size=32000,
)  # fmt: skip
LLAMA_2_13B = Transformer(
    num_layers=40, hidden_size=5120, ffn_hidden_size=13824, num_attention_heads=40,
    num_kv_heads=40, head_dim=128, vocab_size=32000,
)  # fmt: skip
MIXTRAL_8X7B = Transformer(
    num_layers=32, hidden_size=4096, ffn_hidden_size=14336, num_attention_heads=32,
    num_kv_heads=8, head_dim=128, vocab_size=32000, num_experts=8, experts_per_token=2,
    moe_ffn_hidden_size=14336,
)  # fmt: skip
DEEPSEEK_V3 = Transformer(
    num_layers=61, hidden_size=7168, ffn_hidden_size=18432, num_attention_heads=128,
    num_kv_heads=128, head_dim=128, vocab_size=129280, num_experts=256, experts_per_token=8,
    num_shared_experts=1, moe_ffn_hidden_size=2048, num_dense_layers=3, q_lora_rank=1536,
    kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128,
)  # fmt: skip
TIED_GPT = Transformer(
    num_layers=24, hidden_size=2048, ffn_hidden_size=8192, num_attention_heads=16,
    num_kv_heads=16, head_dim=128, vocab_size=50304, tied_embeddings=True, gated_mlp=False,
    linear_bias=True, qkv_bias=True, norm_bias=True, num_positions=2048,
)  # fmt: skip
WINDOWED = replace(LLAMA_8B, sliding_window=1024, num_window_layers=16)
DENSE = (LLAMA_8B, LLAMA_70B, LLAMA_405B, LLAMA_2_7B, TIED_GPT, WINDOWED)
MODELS = (*DENSE, MIXTRAL_8X7B, DEEPSEEK_V3)

# Round figures near those of an eight-GPU H100 machine: a test that needs the exact ones reads
# the facts.
CLUSTER = Cluster(
    peak_flops_per_s=989e12, ceiling=0.8, fp8_ratio=2.0, fp4_ratio=float("nan"),
    memory_bytes=85e9, memory_bytes_per_s=3.35e12, scale_up_bytes_per_s=450e9,
    scale_up_domain=8, gpus_per_node=8, scale_out_bytes_per_s=50e9,
)  # fmt: skip
SHIPPED = load_efficiencies()
# Software without friction: what remains is arithmetic.
IDEAL = replace(
    SHIPPED["generic"], matmul=1.0, matmul_unhidden=0.0, grouped_matmul=1.0, fp8_of_peak_ratio=1.0,
    fp4_of_peak_ratio=1.0, kernel_s=0.0, attention_forward=1.0, attention_in_step=1.0,
    attention_half_tokens=0.0, attention_half_head_dim=0.0, attention_backward=1.0,
    fast_exponentials=0.0, memory=1.0, elementwise=1.0, onchip=0.0, permutation=1.0,
    fused_permutation=1.0, host_s=0.0, expert_host_s=0.0, adapter_host_s=0.0, zero3_host_s=0.0,
    step_s=0.0, alone_step_s=0.0,
    software_per_year=0.0,
    selective_recompute=0.4, selective_core=0.0, full_recompute=1.0,
    scale_up=1.0, scale_out=1.0, hop=1.0,
    all_to_all=1.0, tp_exposed=1.0, cp_exposed=0.0, ep_exposed=1.0, ep_network_exposed=1.0,
    pp_exposed=0.0, dp_exposed=1.0, fsdp_exposed=1.0, overlap_window=1.0, overlap_slowdown=0.0,
    straggler=0.0, activation_copies=1.0, selective_kept=0.6, logits_bytes=10.0,
    reserve_bytes=0.0, memory_pool=1.0, fragmentation=0.0, compiled_kept=1.0, frozen_kept=1.0,
    quantised_kept=1.0, routed_copies=1.0, held_logits_bytes=10.0, compiled_logits=1.0,
    own_weight_bytes=4.0, bucket_copies=0.0, step_bytes=0.0, fill_bytes=0.0,
    communicator_bytes=0.0, reserve_reported=1.0,
)  # fmt: skip


def layout(**changes: Any) -> Layouts:
    """One layout: 8 GPUs, data parallel, unless said otherwise. Names are read as their number;
    virtual stages are interleaved."""
    given: dict[str, Any] = {
        "tp": 1, "pp": 1, "virtual_stages": 1, "cp": 1, "ep": 1, "etp": 1, "dp_replicate": 1,
        "dp_shard": 8, "strategy": "ddp", "micro_batch_size": 1, "num_microbatches": 1,
        "recompute": "none", "sequence_parallel": 0, "context_method": "ring", "reshard": 1,
        "offload_optimizer": 0, "offload_params": 0, **changes,
    }  # fmt: skip
    several = np.max(given["virtual_stages"]) > 1
    given.setdefault("schedule", "interleaved" if several else "1f1b")
    numbers = {"strategy": INDEX.__getitem__, "schedule": SCHEDULES.index,
               "context_method": CONTEXT_METHODS.index, "recompute": RECOMPUTE.index}  # fmt: skip
    for name, number in numbers.items():
        if isinstance(given[name], str):
            given[name] = number(given[name])
    degrees = ("tp", "pp", "cp", "dp_replicate", "dp_shard")
    given.setdefault("num_gpus", np.prod([given[d] for d in degrees], axis=0))
    return Layouts(**{f.name: np.asarray(given[f.name], dtype=float)[()] for f in fields(Layouts)})


def workload(model: Transformer = LLAMA_8B, **changes: Any) -> Workload:
    given = {"seq_len": 4096.0, "global_batch_size": 64.0, **changes}
    return Workload(model=model, **given)


@st.composite
def layouts(draw: st.DrawFn, *, experts: bool = False) -> Layouts:
    """A layout that need not be sensible, only consistent."""
    power = st.sampled_from([1, 2, 4, 8])
    tp, pp, cp = draw(power), draw(power), draw(st.sampled_from([1, 1, 2, 4]))
    strategy = draw(st.sampled_from(STRATEGIES))
    shard = draw(st.sampled_from([1, 2, 8, 64]))
    replicate = draw(st.sampled_from([1, 2, 4])) if strategy.replicates else 1
    # Experts lie within one stage of the whole group that holds them.
    ep = draw(st.sampled_from([e for e in (1, 2, 4, 8) if tp * cp * shard % e == 0]))
    ep = ep if experts else 1
    virtual_stages = draw(st.sampled_from([1, 2])) if pp > 1 else 1
    schedule = draw(st.sampled_from(["naive", "gpipe", "1f1b", "zero_bubble"]))
    return layout(
        tp=tp,
        pp=pp,
        cp=cp,
        ep=ep,
        etp=tp if experts and ep == 1 else 1,
        virtual_stages=virtual_stages,
        schedule=schedule if virtual_stages == 1 else "interleaved",
        context_method=draw(st.sampled_from(CONTEXT_METHODS)),
        reshard=float(draw(st.booleans())),
        dp_shard=shard,
        dp_replicate=replicate,
        strategy=strategy.name,
        micro_batch_size=draw(st.sampled_from([1, 2, 4])),
        num_microbatches=draw(st.sampled_from([1, 2, 8, 32, 128])),
        recompute=draw(st.sampled_from([0, 1, 2, 3])),
        sequence_parallel=float(tp > 1 and draw(st.booleans())),
    )


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """A machine between a PCIe workstation and a rack."""
    domain = draw(st.sampled_from([1, 4, 8, 72]))
    return Cluster(
        peak_flops_per_s=draw(st.floats(100e12, 2500e12)),
        ceiling=draw(st.floats(0.6, 0.95)),
        fp8_ratio=2.0,
        fp4_ratio=4.0,
        memory_bytes=draw(st.floats(24e9, 288e9)),
        memory_bytes_per_s=draw(st.floats(0.8e12, 8e12)),
        scale_up_bytes_per_s=draw(st.floats(25e9, 900e9)),
        scale_up_domain=domain,
        gpus_per_node=draw(st.sampled_from([4, 8])),
        scale_out_bytes_per_s=draw(st.floats(1e9, 100e9)),
        host_link_bytes_per_s=draw(st.floats(8e9, 450e9)),
        pools_memory=draw(st.sampled_from([0.0, 1.0])),
        newer_than_flash2=draw(st.sampled_from([0.0, 1.0, 2.0])),
        fast_exponentials=draw(st.sampled_from([0.0, 1.0])),
        power_share=draw(st.sampled_from([1.0, 0.6])),
        scale_up_hop_s=draw(st.sampled_from([3.1e-6, 1e-6])),
        scale_out_hop_s=draw(st.sampled_from([9.6e-6, 50e-6])),
    )


@st.composite
def jobs(
    draw: st.DrawFn, models: tuple[Transformer, ...] = MODELS
) -> tuple[Workload, Layouts, Cluster, Efficiency]:
    """Everything that memory and step time need, as scalars."""
    model = draw(st.sampled_from(models))
    work = workload(
        model,
        seq_len=draw(st.sampled_from([512.0, 4096.0, 8192.0, 131072.0])),
        unfused_attention=draw(st.sampled_from([False, False, True])),
        compiled=draw(st.booleans()),
        flash2=draw(st.booleans()),
        chunked_loss=draw(st.booleans()),
        loss_chunk_by_width=draw(st.booleans()),
        frees_gradients=draw(st.booleans()),
        optimizer_state_bytes=draw(st.sampled_from([0.01, 2.0, 4.0, 8.0])),
        orthogonalises=draw(st.booleans()),
        lists_tensors=draw(st.booleans()),
        factors_by_operator=draw(st.sampled_from([False, False, True])),
        ends_state_bytes=draw(st.sampled_from([nan, 8.0])),
        gradient_bytes=draw(st.sampled_from([nan, nan, 2.0, 4.0, 6.0])),
        offload_optimizer=draw(st.sampled_from([NOWHERE, NOWHERE, CPU, NVME])),
        offload_params=draw(st.sampled_from([NOWHERE, NOWHERE, CPU, NVME])),
        offloads_activations=draw(st.booleans()),
        paged_optimizer=draw(st.booleans()),
        capacity_factor=draw(st.sampled_from([0.0, 0.0, 1.25])),
        expert_imbalance=draw(st.sampled_from([1.0, 4.0])),
        software_year=draw(st.sampled_from([2022.0, 2026.5])),
        host_slowdown=draw(st.sampled_from([1.0, 1.0, 5.0])),
        deduplicates=draw(st.booleans()),
    )
    lay = draw(layouts(experts=model.num_experts > 0))
    return work, lay, draw(clusters()), draw(st.sampled_from(list(SHIPPED.values())))


def as_columns(
    rows: list[tuple[Workload, Layouts, Cluster, Efficiency]],
) -> tuple[Workload, Layouts, Cluster, Efficiency]:
    """Jobs as one column each."""
    works, lays, machines, profiles = zip(*rows, strict=True)
    flags = [f.name for f in fields(Workload) if f.type == "Bools"]
    values = {
        f.name: np.array(
            [getattr(w, f.name) for w in works], dtype=bool if f.name in flags else float
        )
        for f in fields(Workload)
        if f.name != "model"
    }
    return (
        Workload(model=model_columns([w.model for w in works]), **values),
        Layouts(**{f.name: np.array([getattr(x, f.name) for x in lays]) for f in fields(Layouts)}),
        cluster_columns(list(machines)),
        Efficiency(
            **{f.name: np.array([getattr(e, f.name) for e in profiles]) for f in fields(Efficiency)}
        ),
    )


def parts_at(parts: dict[str, Any], row: int) -> dict[str, float]:
    """One row of columns."""
    return {k: float(np.atleast_1d(v)[row]) for k, v in parts.items()}

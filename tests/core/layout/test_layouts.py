"""Candidate layouts: what comes out is legal, and what was dropped is counted by its reason."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.layout.layouts import (
    CONTEXT_METHODS,
    RECOMPUTE,
    RULES,
    SCHEDULES,
    SEARCHED,
    SEARCHED_RECOMPUTE,
    Choices,
    broken_rules,
    dp,
)
from core.layout.sharding import INDEX, STRATEGIES
from core.memory.offload import LEVELS
from core.model.transformer import total_params
from core.search.space import candidates
from tests.made_up.jobs import (
    DEEPSEEK_V3,
    LLAMA_8B,
    LLAMA_70B,
    LLAMA_405B,
    MIXTRAL_8X7B,
    MODELS,
    TIED_GPT,
)

# 40 heads divide by 4 and by 8, its 10 KV heads by neither.
PHI_3_MEDIUM = replace(LLAMA_8B, num_layers=40, hidden_size=5120, num_attention_heads=40,
                       num_kv_heads=10, ffn_hidden_size=17920, vocab_size=32064)  # fmt: skip
JOBS = st.fixed_dictionaries(
    {
        "model": st.sampled_from([*MODELS, PHI_3_MEDIUM]),
        "global_batch_size": st.sampled_from([1, 8, 96, 100, 512, 2048]),
        "num_gpus": st.sampled_from([1, 2, 3, 8, 12, 16, 48, 64, 72, 256, 1024]),
        "gpus_per_node": st.sampled_from([1, 4, 8]),
        "scale_up_domain": st.sampled_from([1, 4, 8, 72]),
        "seq_len": st.sampled_from([4096, 5000, 131072]),
        "choices": st.builds(
            Choices,
            schedule=st.sampled_from(SCHEDULES),
            context_method=st.sampled_from(CONTEXT_METHODS),
            etp=st.sampled_from([None, None, 2]),
            virtual_stages=st.sampled_from([None, None, 2]),
            searches_offload=st.booleans(),
            tp_across_nodes=st.sampled_from([False, False, True]),
        ),
    }
)


def candidates_of(**job):
    """Candidates of an 8-GPU job of Llama 8B, unless said otherwise; choices by their name."""
    given = {"model": LLAMA_8B, "seq_len": 4096, "global_batch_size": 64, "num_gpus": 8,
             "gpus_per_node": 8, "scale_up_domain": 8}  # fmt: skip
    fixed = {name: job.pop(name) for name in tuple(job) if name not in given}
    return candidates(**{**given, **job}, choices=Choices(**fixed))


def rows(layouts):
    names = list(type(layouts).__dataclass_fields__)
    columns = [np.atleast_1d(getattr(layouts, n)) for n in names]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


@given(job=JOBS)
def test_every_candidate_is_legal(job):
    found, _ = candidates(**job)
    model, batch = job["model"], job["global_batch_size"]
    ranks = np.asarray(dp(found))
    t, p, ep = np.asarray(found.tp), np.asarray(found.pp), np.asarray(found.ep)
    cp, v, etp = (np.asarray(x) for x in (found.cp, found.virtual_stages, found.etp))
    m = np.asarray(found.num_microbatches)
    sequences = ranks * found.micro_batch_size * found.num_microbatches
    assert (t * p * ranks * found.cp == job["num_gpus"]).all()
    assert (sequences == batch).all()
    assert (np.asarray(found.num_microbatches) >= 1).all()
    assert (np.asarray(found.num_microbatches) % 1 == 0).all()
    assert (model.num_attention_heads % t == 0).all()
    assert ((model.num_kv_heads % t == 0) | (t % model.num_kv_heads == 0)).all()
    assert (model.ffn_hidden_size % t == 0).all()
    assert (p <= model.num_layers).all()
    if not job["choices"].tp_across_nodes:
        assert (t <= max(job["scale_up_domain"], 1)).all()
    assert ((ranks * t * cp) % (ep * etp) == 0).all()
    assert ((cp == 1) | (job["seq_len"] % (2 * cp) == 0)).all()
    if job["choices"].context_method == "ulysses":
        assert ((cp == 1) | (model.num_attention_heads % (t * cp) == 0)).all()
        repeated = ((t * cp) % model.num_kv_heads == 0) | (model.num_kv_heads % (t * cp) == 0)
        assert ((cp == 1) | repeated).all()
    if (wanted := job["choices"].virtual_stages) is not None:
        assert (v == wanted).all()
    if job["choices"].schedule == "interleaved":
        assert (p > 1)[v > 1].all()
        assert (p * v <= model.num_layers).all()
        assert (m % p == 0)[v > 1].all()
    else:
        assert (v == 1).all()
    if model.num_experts:
        assert (model.num_experts % ep == 0).all()
    else:
        assert (ep * etp == 1).all()
    sharded = np.array([s.shards_optimizer for s in STRATEGIES])[
        np.asarray(found.strategy, dtype=int)
    ]
    on_host = np.asarray(found.offload_optimizer) > 0
    assert ((np.asarray(found.dp_shard) * cp)[sharded & ~on_host] > 1).all()
    stage3 = np.isin(found.strategy, [INDEX[s] for s in ("zero2", "zero3", "zeropp")])
    assert (p[stage3] == 1).all()
    hybrid = np.asarray(found.strategy) == INDEX["hsdp"]
    assert (np.asarray(found.dp_replicate)[~hybrid] == 1).all()
    assert (np.asarray(found.dp_replicate)[hybrid] >= 2).all()


@given(job=JOBS)
def test_candidates_are_distinct_and_all_is_accounted_for(job):
    found, removed = candidates(**job)
    seen = {tuple(r.values()) for r in rows(found)}
    assert len(seen) == len(rows(found))
    assert len(seen) + sum(c.count for c in removed) == _grid(job)
    assert all(c.count >= 0 and c.reason and c.sentence for c in removed)
    assert [c.reason for c in removed] == list(RULES)


@given(job=JOBS)
def test_the_rules_find_nothing_to_remove_among_the_candidates(job):
    """What was dropped in stages is what the rules forbid of whole layouts."""
    found, _ = candidates(**job)
    broken = broken_rules(
        found, model=job["model"], seq_len=job["seq_len"],
        global_batch_size=job["global_batch_size"], choices=job["choices"],
    )  # fmt: skip
    assert list(broken) == list(RULES)
    assert not any(rows.any() for rows in broken.values())


@pytest.mark.parametrize("num_gpus", [1, 16])
def test_interleaving_without_a_pipeline_is_plain(num_gpus):
    job = {"model": LLAMA_8B, "seq_len": 4096, "global_batch_size": 64, "num_gpus": num_gpus,
           "gpus_per_node": 8, "scale_up_domain": 8,
           "choices": Choices(schedule="interleaved")}  # fmt: skip
    found, removed = candidates(**job)
    assert (np.asarray(found.pp) == 1).any()
    assert len(rows(found)) + sum(c.count for c in removed) == _grid(job)


def _grid(job):
    """Combinations there are, counted without the code under test."""

    def divisors(n, most):
        return [d for d in range(1, min(n, most) + 1) if n % d == 0]

    gpus, model, choices = job["num_gpus"], job["model"], job["choices"]
    domain = gpus if choices.tp_across_nodes else max(job["scale_up_domain"], 1)
    tps = divisors(gpus, domain)
    large = gpus * float(total_params(model)) >= 50e9 * job["global_batch_size"]
    most_cp = 64 if job["seq_len"] >= 32_768 else min(job["seq_len"] // 2048, 64) if large else 1
    cps = len(divisors(gpus, max(most_cp, 1)))
    stages = 0
    for p in divisors(gpus, model.num_layers):
        if p == 1 or (choices.schedule != "interleaved" and not choices.virtual_stages):
            stages += 1  # without a pipeline there are no chunks to choose
        elif choices.virtual_stages:
            stages += 1
        else:
            layers = -(-model.num_layers // p)
            stages += len({1, 2, 4, 8, *divisors(layers, layers)})
    experts = 0
    for t in tps:
        eps = len(divisors(model.num_experts, model.num_experts)) if model.num_experts else 1
        cuts = 2 if model.num_experts and t > 1 and choices.etp is None else 1
        experts += eps * cuts
    nodes = max(gpus // job["gpus_per_node"], 1)
    strategies = len(SEARCHED) - 1 + len(divisors(nodes, nodes))
    levels = len(LEVELS) if choices.searches_offload else 1
    batches = len(divisors(job["global_batch_size"], 16))
    return experts * stages * cps * strategies * len(SEARCHED_RECOMPUTE) * batches * levels


@pytest.mark.parametrize(("gpus", "batch"), [(16, 64), (24, 96), (12, 60), (7, 21), (40, 40)])
def test_nothing_legal_is_missed(gpus, batch):
    """Brute force over a small job, with the rules written out again, for every whole number."""
    model = LLAMA_8B
    want = set()
    for tp, pp, b, s, r in product(
        range(1, 9), range(1, gpus + 1), range(1, 17), STRATEGIES, SEARCHED_RECOMPUTE
    ):
        if s.name not in SEARCHED or pp > model.num_layers:
            continue
        ranks, rest = divmod(gpus, tp * pp)
        if rest or ranks < 1 or batch % (ranks * b):
            continue
        if model.num_kv_heads % tp or model.ffn_hidden_size % tp:
            continue
        if (s.shards_optimizer and ranks == 1) or (pp > 1 and s.name in ("zero2", "zero3")):
            continue
        groups = [ranks]
        if s.replicates:  # a copy on whole nodes, more than one of them, more than one copy
            groups = [
                8 * n // tp for n in range(1, gpus) if gpus // 8 and (gpus // 8) % n == 0
                and 8 * n % tp == 0 and ranks % (8 * n / tp) == 0
            ]  # fmt: skip
            groups = [g for g in groups if g > 1 and ranks // g >= 2]
        want |= {(tp, pp, b, s.name, g, RECOMPUTE.index(r)) for g in groups}
    found, _ = candidates_of(model=model, global_batch_size=batch, num_gpus=gpus)
    got = {
        (r["tp"], r["pp"], r["micro_batch_size"], STRATEGIES[int(r["strategy"])].name,
         r["dp_shard"], r["recompute"])
        for r in rows(found)
    }  # fmt: skip
    assert got == want


@pytest.mark.parametrize(
    ("model", "gpus", "batch", "tp", "pp", "sharding"),
    [
        (LLAMA_70B, 64, 512, 8, 4, "zero1"),
        (LLAMA_70B, 128, 512, 8, 4, "zero1"),
        (LLAMA_405B, 1024, 512, 8, 8, "zero1"),  # TP8 PP8 DP16; 126 layers do not divide by 8
        (LLAMA_70B, 64, 512, 1, 1, "fsdp2"),
        (LLAMA_8B, 8, 64, 1, 1, "ddp"),
        (TIED_GPT, 8, 64, 1, 1, "zero2"),
    ],
)
def test_layouts_that_people_run_are_among_them(model, gpus, batch, tp, pp, sharding):
    found, _ = candidates_of(model=model, global_batch_size=batch, num_gpus=gpus)
    assert any((r["tp"], r["pp"], r["strategy"]) == (tp, pp, INDEX[sharding]) for r in rows(found))


def test_the_layout_of_the_405b_run_is_among_them():
    """TP8, PP16 with 4 chunks, DP128 (arXiv:2407.21783, table 4): 126 layers on 16 x 4 chunks."""
    found, _ = candidates_of(
        model=LLAMA_405B, seq_len=8192, global_batch_size=2048, num_gpus=16384,
        schedule="interleaved", shardings=("zero1",),
    )  # fmt: skip
    cuts = {(r["tp"], r["pp"], r["virtual_stages"], r["dp_shard"]) for r in rows(found)}
    assert (8, 16, 4, 128) in cuts


@pytest.mark.parametrize(
    ("choice", "of"),
    [
        ({"tp": 4}, lambda r: r["tp"] == 4),
        ({"pp": 2}, lambda r: r["pp"] == 2),
        ({"micro_batch_size": 2}, lambda r: r["micro_batch_size"] == 2),
        ({"shardings": ("zero1", "ddp")}, lambda r: r["strategy"] in (INDEX["zero1"], 0)),
        ({"recomputes": ("full",)}, lambda r: r["recompute"] == RECOMPUTE.index("full")),
        ({"cp": 1}, lambda r: r["cp"] == 1),
    ],
    ids=lambda x: str(x) if isinstance(x, dict) else "",
)
def test_a_given_value_is_the_only_one_tried(choice, of):
    everything, chosen = (rows(candidates_of(num_gpus=16, **c)[0]) for c in ({}, choice))
    assert chosen
    assert all(of(r) for r in chosen)
    key = [tuple(r.values()) for r in everything if of(r)]
    assert {tuple(r.values()) for r in chosen} == set(key)


def test_hybrid_sharding_fills_whole_nodes():
    """One copy on one node, on two, on four: more than one copy is left, on several ranks each."""
    found, _ = candidates_of(global_batch_size=512, num_gpus=64, shardings=("hsdp",))
    assert set(np.asarray(found.tp) * found.dp_shard) == {8, 16, 32}
    assert (np.asarray(found.dp_shard) > 1).all()


def test_a_shard_group_has_a_whole_number_of_ranks():
    found, _ = candidates_of(
        global_batch_size=144, num_gpus=144, gpus_per_node=72, scale_up_domain=72,
        shardings=("hsdp",),
    )  # fmt: skip
    assert len(np.asarray(found.tp))
    assert (np.asarray(found.dp_shard) % 1 == 0).all()


@pytest.mark.parametrize("model", [MIXTRAL_8X7B, DEEPSEEK_V3])
def test_experts_are_cut_or_spread(model):
    found, _ = candidates_of(model=model, num_gpus=64)
    ep, etp, tp = (np.asarray(x) for x in (found.ep, found.etp, found.tp))
    assert set(ep) > {1.0, 8.0}
    ways = set(zip(etp[tp > 1] > 1, ep[tp > 1] > 1, strict=True))
    assert ways == set(product((False, True), repeat=2))
    assert ((etp == 1) | (etp == tp)).all()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"tp": 3}, "gpu_count"),
        ({"tp": 64, "num_gpus": 64}, "heads"),
        ({"tp": 16, "model": MODELS[3]}, None),  # 32 heads and 32 KV heads divide by 16
        ({"tp": 4, "model": PHI_3_MEDIUM}, "kv_heads"),
        ({"pp": 64, "num_gpus": 64}, "layers"),
        ({"global_batch_size": 1}, "batch"),
        ({"num_gpus": 1, "shardings": ("fsdp2",)}, "nothing_to_shard"),
        ({"cp": 4, "seq_len": 4100}, "sequence"),
        ({"cp": 16, "tp": 1, "context_method": "ulysses"}, None),  # 32 heads
        ({"cp": 16, "tp": 4, "num_gpus": 64, "context_method": "ulysses"}, "ulysses_heads"),
        ({"cp": 16, "tp": 4, "num_gpus": 64, "context_method": "ring"}, None),
        ({"pp": 2, "virtual_stages": 3, "schedule": "interleaved"}, None),  # 32 on 6, as 126 on 32
        (
            {"pp": 16, "virtual_stages": 2, "schedule": "interleaved", "global_batch_size": 8},
            "interleaving",
        ),
        ({"pp": 2, "virtual_stages": 2}, "virtual_stages"),
        ({"pp": 1, "virtual_stages": 2, "schedule": "interleaved"}, "no_pipeline"),
        ({"cp": 8, "context_method": "ulysses", "model": PHI_3_MEDIUM}, "ulysses_heads"),  # 40, 10
        ({"ep": 16, "model": MIXTRAL_8X7B}, "experts"),
        ({"ep": 8, "etp": 4, "tp": 4, "model": MIXTRAL_8X7B}, "experts"),  # 32 on 16 ranks
        ({"ep": 2, "etp": 2, "tp": 1, "model": MIXTRAL_8X7B}, "expert_cut"),
        ({"ep": 2, "etp": 2, "tp": 2, "model": MIXTRAL_8X7B}, None),
        ({"shardings": ("ddp",), "fetches_params": True, "offloads": True}, "offload_params"),
        ({"shardings": ("zero3",), "fetches_params": True, "offloads": True}, None),
        ({"num_gpus": 1, "shardings": ("zero3",), "offloads": True}, None),
        ({"ep": 2}, "no_experts"),
        ({"etp": 2}, "no_experts"),
        ({"pp": 2, "shardings": ("zero3",)}, "pipeline_sharding"),
        ({"pp": 2, "shardings": ("zeropp",)}, "pipeline_sharding"),
        ({"pp": 2, "shardings": ("fsdp2",)}, None),
        ({"pp": 16, "model": DEEPSEEK_V3}, None),  # 61 layers
        ({"pp": 16, "model": DEEPSEEK_V3, "layer_split": "fuller"}, None),  # 13 x 4 + 3 x 3
        ({"pp": 16, "model": LLAMA_405B, "layer_split": "fuller"}, None),  # 126 + 2
        ({"pp": 12, "num_gpus": 12, "layer_split": "fuller"}, "uneven"),  # 3 each fill 11
        ({"pp": 16, "model": LLAMA_405B, "layer_split": "even"}, "uneven"),
        ({"pp": 2, "model": LLAMA_405B, "layer_split": "even"}, None),
    ],
)
def test_the_reason_is_named(changes, reason):
    found, removed = candidates_of(**{"global_batch_size": 512, "num_gpus": 16, **changes})
    counts = {c.reason: c.count for c in removed}
    if reason is None:
        assert len(np.asarray(found.tp))
    else:
        assert counts[reason] > 0


def test_absurd_sizes_are_answered_and_not_enumerated_for_ever():
    found, removed = candidates_of(model=DEEPSEEK_V3, global_batch_size=4_194_304, num_gpus=131_072)
    assert len(np.asarray(found.tp)) + sum(c.count for c in removed) < 200_000

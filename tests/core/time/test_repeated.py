"""Recompute by module: what is computed again, what is not kept, and that both are consistent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from core.layout.layouts import RECOMPUTE
from core.memory.activations import layer_kept, module_bytes_per_token
from core.memory.layer_memory import one_layer
from core.time.layer import layer_seconds
from core.time.repeated import repeated_flops_per_token, repeated_share
from core.time.step import step
from tests.made_up.jobs import (
    CLUSTER,
    DEEPSEEK_V3,
    IDEAL,
    LLAMA_8B,
    jobs,
    layout,
    workload,
)

SHAPE = {"tokens": 4096.0, "tp": 1.0, "sequence_parallel": 0.0, "selective_kept": 0.6}


def share(recompute, model):
    work, lay = workload(model), layout(recompute=recompute)
    one = layer_seconds(work, lay, CLUSTER, IDEAL)
    return float(repeated_share(lay, model, one, IDEAL))


def kept(recompute, model):
    return float(layer_kept(model, recompute=RECOMPUTE.index(recompute), **SHAPE).kept)


def test_the_mlp_of_a_dense_model_is_its_share_of_the_matmuls_by_hand():
    """Llama 3.1 8B: 3 x 4096 x 14336 weights of the MLP beside 41.9M of attention."""
    mlp, attention = 3 * 4096 * 14336, 4096 * (4096 + 2 * 1024) + 4096 * 4096
    work, lay = workload(LLAMA_8B), layout()
    one = layer_seconds(work, lay, CLUSTER, IDEAL)
    forward = one.matmul_forward + one.attention_forward + one.memory_bound_forward
    matmuls = float(one.matmul_forward / forward) * mlp / (mlp + attention)
    assert matmuls < share("mlp", LLAMA_8B) < matmuls + float(one.memory_bound_forward / forward)
    dropped = 4096 * 2 * 3 * 14336
    assert kept("none", LLAMA_8B) - kept("mlp", LLAMA_8B) == pytest.approx(dropped)
    flops = float(repeated_flops_per_token(LLAMA_8B, 4096, RECOMPUTE.index("mlp")))
    assert flops == pytest.approx(2 * 32 * mlp)


def test_latents_are_expanded_again_and_experts_activations_are_not_kept():
    """DeepSeek-V3: 58 of 61 layers have experts; keys, values and queries are 128 heads of 192 +
    128 (values) + 128 (keys) + 64 shared, from latents of 1536 + 512 + 64."""
    norms, light, _ = module_bytes_per_token(DEEPSEEK_V3)
    assert float(norms) == pytest.approx((1 + 58 / 61) * 2 * 7168)
    latents = 1536 + 512 + 64
    experts = 58 / 61 * 8 * 2048
    assert float(light) / 2 - experts > 100 * latents / 10
    assert 0 < share("norm_act", DEEPSEEK_V3) < 0.5 * share("mlp", DEEPSEEK_V3) < 0.5


def test_a_dense_model_without_latents_has_nothing_light_to_drop():
    assert kept("norm_act", LLAMA_8B) == kept("none", LLAMA_8B)


@pytest.mark.parametrize("model", [LLAMA_8B, DEEPSEEK_V3])
def test_full_recompute_of_a_quarter_of_the_layers_costs_and_frees_a_quarter(model):
    lay = layout(recompute="full", tp=2, ep=8 if model is DEEPSEEK_V3 else 1)
    eff = replace(IDEAL, full_recompute=0.8)
    none, some, all_ = (
        step(workload(model, recomputed_layers=n), lay, CLUSTER, eff).parts for n in (0, 0.25, 1)
    )
    for part in ("recompute", "tp_exposed", "ep_exposed"):
        more = all_[part] - none[part]
        assert some[part] - none[part] == pytest.approx(more / 4)
    assert all_["recompute"] > 0 == none["recompute"]
    of = {n: one_layer(workload(model, recomputed_layers=n), lay, eff) for n in (0, 0.25, 1)}
    assert of[0].kept == of[0].whole
    assert of[0.25].whole - of[0.25].kept == pytest.approx((of[1].whole - of[1].kept) / 4)


@given(job=jobs())
def test_modules_keep_more_than_full_recompute_and_repeat_no_more_than_a_forward(job):
    work, lay, cluster, eff = job
    one = layer_seconds(work, lay, cluster, eff)
    shares = {}
    for name in ("norm_act", "mlp"):
        row = {"recompute": RECOMPUTE.index(name), "selective_kept": eff.selective_kept}
        held = {**SHAPE, **row, "tp": lay.tp, "sequence_parallel": lay.sequence_parallel}
        of = layer_kept(work.model, **held)
        least = layer_kept(work.model, **{**held, "recompute": RECOMPUTE.index("full")}).kept
        assert float(least) * (1 - 1e-12) <= float(of.kept) <= float(of.whole)
        changed = {f: getattr(lay, f) for f in lay.__dataclass_fields__}
        changed["recompute"] = np.float64(RECOMPUTE.index(name))
        shares[name] = float(repeated_share(type(lay)(**changed), work.model, one, eff))
    assert all(0 <= s <= 1 for s in shares.values())

"""Passes of adapters over memory: counts, and what divides them."""

from dataclasses import replace

import pytest

from core.model.adapter_passes import (
    KINDS,
    AdapterPasses,
    frozen_inputs_per_token,
    kept_bytes_per_token,
    moved_bytes_per_token,
    widths,
)
from tests.made_up.jobs import DEEPSEEK_V3, LLAMA_8B, LLAMA_70B, MIXTRAL_8X7B

MODELS = [LLAMA_8B, LLAMA_70B, MIXTRAL_8X7B, DEEPSEEK_V3]


def passes(kind="fp32", **given):
    return AdapterPasses(kind=float(KINDS.index(kind)), **given)


def test_the_matrices_of_a_dense_layer_are_counted_one_by_one():
    """Llama 3.1 8B: q 4096x4096, k and v 4096x1024, output 4096x4096, gate and up 4096x14336, down
    14336x4096."""
    w = widths(LLAMA_8B, passes())
    assert float(w.whole_in) == 5 * 4096
    assert float(w.cut_in) == 4096 + 14336
    assert float(w.whole_out) == 2 * 4096
    assert float(w.cut_out) == 4096 + 2 * 1024 + 2 * 14336


def test_attention_alone():
    w = widths(LLAMA_8B, passes(on_mlp=0.0))
    assert float(w.whole_in + w.cut_in) == 4 * 4096
    assert float(w.whole_out + w.cut_out) == 2 * 4096 + 2 * 1024

    w = widths(LLAMA_8B, passes(on_mlp=0.0, on_output=0.0))
    assert float(w.whole_in + w.cut_in) == 3 * 4096
    assert float(w.whole_out + w.cut_out) == 4096 + 2 * 1024


def test_joined_matrices_read_their_input_once():
    apart, joined = (widths(LLAMA_8B, passes(joined=j)) for j in (0.0, 1.0))
    assert float(apart.whole_in - joined.whole_in) == 3 * 4096
    assert apart.cut_out == joined.cut_out


def test_a_token_passes_the_adapters_of_its_experts_only():
    w, attention = (widths(MIXTRAL_8X7B, passes(on_mlp=on)) for on in (1.0, 0.0))
    assert float(w.cut_in - attention.cut_in) == 2 * 14336
    assert float(w.whole_in - attention.whole_in) == 2 * 2 * 4096


@pytest.mark.parametrize(
    ("kind", "dropout", "forward", "backward", "kept"),
    [
        ("none", 1.0, (0, 0), (0, 0), 0),
        ("fused", 1.0, (2, 4), (6, 4), 0),
        ("own", 0.0, (2, 12), (10, 8), 0),
        ("own", 1.0, (7, 12), (15, 8), 3),
        ("packed", 1.0, (7, 16), (15, 8), 3),
        ("fp32", 0.0, (14, 12), (22, 8), 2),
        ("fp32", 1.0, (23, 12), (31, 8), 3),
    ],
)
def test_bytes_of_each_input_and_output(kind, dropout, forward, backward, kept):
    inputs, outputs = 5 * 4096 + 4096 + 14336, 2 * 4096 + 4096 + 2 * 1024 + 2 * 14336
    of = passes(kind, dropout=dropout)
    found = moved_bytes_per_token(LLAMA_8B, of, tp=1.0)
    for moved, (of_in, of_out) in zip(found, (forward, backward), strict=True):
        assert float(moved) == of_in * inputs + of_out * outputs
    assert float(kept_bytes_per_token(LLAMA_8B, of, tp=1.0)) == kept * inputs


@pytest.mark.parametrize("model", MODELS)
def test_tensor_parallelism_divides_some_of_it(model):
    one, four = (moved_bytes_per_token(model, passes(), tp=t)[0] for t in (1.0, 4.0))
    assert one / 4 < four < one


@pytest.mark.parametrize("model", MODELS)
def test_each_fusion_moves_less(model):
    moved = [sum(moved_bytes_per_token(model, passes(k), tp=1.0)) for k in KINDS]
    assert moved == sorted(moved)
    assert moved[0] == 0


@pytest.mark.parametrize(
    ("kind", "on", "whole", "cut"),
    [
        ("own", {}, 0, 0),  # the adapters read what trained matmuls would
        ("own", {"on_mlp": 0.0}, 4096, 14336),
        ("fp32", {}, 2 * 4096, 14336),  # they read copies of their own
        ("none", {"on_mlp": 0.0, "on_output": 0.0}, 4096, 14336),
    ],
)
def test_frozen_matmuls_keep_only_what_adapters_read(kind, on, whole, cut):
    found = frozen_inputs_per_token(LLAMA_8B, replace(passes(kind), **on))
    assert [float(x) for x in found] == [whole, cut]

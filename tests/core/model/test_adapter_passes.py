"""Passes of adapters over memory: counts, and what divides them."""

from dataclasses import replace

import pytest

from core.model.adapter_passes import (
    KINDS,
    AdapterPasses,
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
        ("fp32", 0.0, (14, 12), (22, 8), 4),
        ("fp32", 1.0, (23, 12), (31, 8), 5),
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
    ("sizes", "micro_batch", "saved_mib"),
    [
        ((896, 4864, 14, 2, 64), 8, 1236),  # Qwen2.5-0.5B
        ((1536, 8960, 12, 2, 128), 4, 2512),  # Qwen2.5-1.5B
    ],
)
def test_fp32_copies_are_no_more_than_a_published_run_saved_without_them(
    sizes, micro_batch, saved_mib
):
    """AgileRL/AgileRL pull request 623: every matrix, sequences of 4096, of one layer at a time.
    The first pair saves what is counted (1,280), the second 2.2 times of it, which is open."""
    hidden, ffn, heads, kv_heads, head_dim = sizes
    qwen = replace(
        LLAMA_8B, hidden_size=hidden, ffn_hidden_size=ffn, num_attention_heads=heads,
        num_kv_heads=kv_heads, head_dim=head_dim,
    )  # fmt: skip
    kept = float(kept_bytes_per_token(qwen, passes(), tp=1.0)) * micro_batch * 4096
    assert kept / 2**20 < 1.04 * saved_mib

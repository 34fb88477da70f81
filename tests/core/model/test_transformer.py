"""Parameters and FLOPs of a transformer against closed forms and published formulas.

[N21] Narayanan et al., arXiv:2104.04473: equation 2 (parameters), appendix (FLOPs).
[P22] Chowdhery et al., arXiv:2204.02311, appendix B.
Counts of named models are in tests/core/model/test_presets.py and
tests/core/model/test_hf_config.py.
"""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model import state_space
from core.model import transformer as t
from core.model.presets import PRESETS
from core.model.transformer import Transformer

MODELS = [p.transformer for p in PRESETS.values()]
QUANTITIES = (
    t.total_params, t.active_params, t.layer_params, t.routed_expert_params, t.embedding_params,
    t.head_params, t.small_params, t.norm_params, t.query_size, t.kv_size, t.attention_output_size,
    t.attention_matrix_params, t.mlp_params, t.expert_params, t.num_moe_layers,
    t.num_dense_mlp_layers, t.matrix_flops_per_token, t.head_flops_per_token,
)  # fmt: skip


def gpt(*, num_layers, hidden_size, vocab_size=51200, num_positions=2048, heads=16):
    """The models of [N21]: multi-head attention, MLP of 4h with GELU, tied embeddings."""
    return Transformer(
        num_layers=num_layers,
        hidden_size=hidden_size,
        ffn_hidden_size=4 * hidden_size,
        num_attention_heads=heads,
        num_kv_heads=heads,
        head_dim=hidden_size / heads,
        vocab_size=vocab_size,
        num_positions=num_positions,
        tied_embeddings=True,
        gated_mlp=False,
        qkv_bias=True,
        linear_bias=True,
        norm_bias=True,
    )


# [N21] Table 1: billions of parameters, heads, hidden size, layers.
NARAYANAN_TABLE_1 = [
    (1.7, 24, 2304, 24), (3.6, 32, 3072, 30), (7.5, 32, 4096, 36), (18.4, 48, 6144, 40),
    (39.1, 64, 8192, 48), (76.1, 80, 10240, 60), (145.6, 96, 12288, 80), (310.1, 128, 16384, 96),
    (529.6, 128, 20480, 105), (1008.0, 160, 25600, 128),
]  # fmt: skip


@pytest.mark.parametrize(("billions", "heads", "h", "layers"), NARAYANAN_TABLE_1)
def test_parameters_of_narayanan_table_1(billions, heads, h, layers):
    model = gpt(num_layers=layers, hidden_size=h, heads=heads)
    assert float(t.total_params(model)) / 1e9 == pytest.approx(billions, abs=0.06)


@given(layers=st.integers(1, 200), h=st.integers(1, 1600), vocab=st.integers(1, 300_000))
def test_parameters_are_narayanan_equation_2(layers, h, vocab):
    """12 l h^2 (1 + 13/(12 h) + (V + s)/(12 l h)), which leaves out the final norm (2 h)."""
    h *= 16
    model = gpt(num_layers=layers, hidden_size=h, vocab_size=vocab)
    equation = 12 * layers * h**2 + 13 * layers * h + (vocab + 2048) * h
    assert float(t.total_params(model)) == pytest.approx(equation + 2 * h, rel=1e-12)


@given(
    layers=st.integers(1, 200),
    h=st.integers(1, 1600),
    seq_len=st.integers(1, 131_072),
    vocab=st.integers(1, 300_000),
)
def test_flops_are_those_of_narayanan_with_causal_attention(layers, h, seq_len, vocab):
    """[N21] prints 96 B s l h^2 (1 + s/(6h) + V/(16 l h)) for a step that recomputes the layers:
    four forward passes of the layers (24 l h^2 (1 + s/(6h)) a token each), three of the LM head
    (6 V h). Model FLOPs are three of both. [N21] counts the whole square of attention, 4 s h a
    token and layer; here only the keys at or before each query, 2 (s + 1) h.
    """
    h *= 16
    layer, square = 24 * layers * h**2, 4 * layers * seq_len * h
    printed = 96 * layers * h**2 * (1 + seq_len / (6 * h) + vocab / (16 * layers * h))
    assert printed == pytest.approx(4 * (layer + square) + 6 * vocab * h)

    ours = t.train_flops_per_token(gpt(num_layers=layers, hidden_size=h, vocab_size=vocab), seq_len)
    without_recompute = printed - (layer + square)
    above_diagonal = 3 * layers * (4 * seq_len * h - 2 * (seq_len + 1) * h)
    assert float(ours) == pytest.approx(without_recompute - above_diagonal, rel=1e-12)


@pytest.mark.parametrize("seq_len", [1024, 8192, 131_072])
@pytest.mark.parametrize("id", ["llama3.1-8b", "llama3.1-70b", "llama3.1-405b", "llama2-7b"])
def test_flops_are_those_of_palm_with_causal_attention(id, seq_len):
    """[P22] 6 N + 12 L H Q T a token, N without the embedding and T halved by causality.

    N there counts norms, which multiply nothing: below 1e-4.
    """
    model = PRESETS[id].transformer
    n = float(t.total_params(model) - t.embedding_params(model))
    attention = 6 * model.num_layers * model.num_attention_heads * model.head_dim * (seq_len + 1)
    ours = float(t.train_flops_per_token(model, seq_len))
    assert ours == pytest.approx(6 * n + attention, rel=1e-4)
    assert ours < 6 * n + attention


@given(seq_len=st.integers(1, 500), window=st.integers(0, 600))
def test_attended_tokens_are_the_mean_of_what_each_query_sees(seq_len, window):
    seen = [min(i, window) if window else i for i in range(1, seq_len + 1)]
    mean = t.mean_attended_tokens(seq_len=float(seq_len), window=float(window))
    assert float(mean) == pytest.approx(sum(seen) / seq_len)


def test_attention_flops_are_two_per_multiply_add_of_every_pair():
    """All (query, key) pairs of Gemma 2, layer by layer: a window, then none, and so on."""
    gemma, seq_len = PRESETS["gemma2-9b"].transformer, 10_000
    query = np.arange(1, seq_len + 1)
    local, whole = np.minimum(query, 4096).sum(), query.sum()
    width = 16 * 256  # of all heads; Q K^T and P V each
    expected = sum(2 * 2 * width * (whole if i % 2 else local) for i in range(42))
    got = float(t.attention_score_flops_per_token(gemma, seq_len)) * seq_len
    assert got == pytest.approx(expected)


def test_matrix_flops_are_two_per_active_weight():
    for model in MODELS:
        weights = (t.active_params(model) - t.embedding_params(model) - t.head_params(model)
                   - model.num_layers * t.norm_params(model)
                   - t.num_attention_layers(model) * t.small_params(model)
                   - (state_space.params(model) - state_space.matrix_params(model)))  # fmt: skip
        biases = 0.0
        if model.linear_bias:  # of MLPs, experts and routers
            dense = t.mlp_params(model) - t.mlp_matrix_params(model)
            expert = t.expert_params(model) - t.expert_matrix_params(model)
            biases = t.num_dense_mlp_layers(model) * dense + t.num_moe_layers(model) * (
                model.experts_per_token * expert + model.num_experts
            )
        got = float(t.matrix_flops_per_token(model))
        assert got == pytest.approx(2 * float(weights - biases), rel=1e-12)


def test_the_parts_sum_to_the_total():
    for model in MODELS:
        parts = (
            t.layer_params(model),
            t.routed_expert_params(model),
            t.embedding_params(model),
            t.head_params(model),
        )
        assert float(sum(parts)) == float(t.total_params(model))


def test_columns_give_what_their_rows_give():
    columns = t.as_columns(MODELS)
    for quantity in QUANTITIES:
        rows = [float(quantity(m)) for m in MODELS]
        column = np.broadcast_to(quantity(columns), len(MODELS))
        assert column.tolist() == rows, quantity.__name__
    seq_lens = np.linspace(100, 200_000, len(MODELS))
    for quantity in (t.forward_flops_per_token, t.train_flops_per_token):
        rows = [float(quantity(m, s)) for m, s in zip(MODELS, seq_lens, strict=True)]
        assert quantity(columns, seq_lens) == pytest.approx(rows, rel=1e-14)


def test_a_latent_query_of_rank_zero_is_a_plain_projection():
    """DeepSeek-V2-Lite: q_lora_rank is null, so h x heads x 192 weights make the queries."""
    full = PRESETS["deepseek-v3"].transformer
    plain = dataclasses.replace(full, q_lora_rank=0)
    h, r, width = 7168, 1536, 128 * 192
    difference = t.attention_matrix_params(plain) - t.attention_matrix_params(full)
    assert float(difference) == h * width - (h * r + r * width)


def test_experts_that_a_token_does_not_visit_are_idle():
    model = PRESETS["mixtral-8x7b"].transformer
    idle = float(t.total_params(model) - t.active_params(model))
    assert idle == 32 * 6 * 3 * 4096 * 14336
    dense = PRESETS["llama3.1-8b"].transformer
    assert float(t.active_params(dense)) == float(t.total_params(dense))


def test_biases_of_experts_are_counted_once_per_expert():
    """gpt-oss-20b is published with 20,914,757,184: 24 layers of 32 experts with 3 biases of
    2,880, and a router with 32; 24 x 64 attention sinks are left out."""
    model = PRESETS["gpt-oss-20b"].transformer
    without = dataclasses.replace(model, linear_bias=False)
    biases = float(t.total_params(model) - t.total_params(without))
    assert biases == 24 * (2880 + 32 * 3 * 2880 + 32)
    assert float(t.total_params(model)) == 20_914_757_184 - 24 * 64


@given(seq_len=st.integers(1, 1 << 20), window=st.integers(1, 1 << 20))
def test_a_window_never_adds_work(seq_len, window):
    whole = PRESETS["llama3.1-8b"].transformer
    local = dataclasses.replace(whole, sliding_window=window, num_window_layers=32)
    less = float(t.train_flops_per_token(local, seq_len))
    assert less <= float(t.train_flops_per_token(whole, seq_len)) * (1 + 1e-12)

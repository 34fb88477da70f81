"""State-space and linear-attention layers: published counts, printed FLOP formulas, properties.

[MLM] NVIDIA/Megatron-LM@001b00c27, megatron/training/training.py, `mamba_layer_flops` and
      `gdn_layer_flops`. Counts of whole models are in tests/core/model/test_presets.py and
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

HYBRIDS = [p.transformer for p in PRESETS.values() if state_space.has_state(p.transformer)]
ATTENTION = PRESETS["llama3.1-8b"].transformer
BASE = {
    "num_layers": 1, "hidden_size": 2048, "ffn_hidden_size": 5504, "num_attention_heads": 16,
    "num_kv_heads": 16, "head_dim": 128, "vocab_size": 32000,
}  # fmt: skip


def mamba2(*, hidden_size, heads, head_dim, state, groups, **other):
    return Transformer(
        **(BASE | {"hidden_size": hidden_size} | other),
        num_ssm_layers=1,
        ssm_inner_size=heads * head_dim,
        ssm_state_size=state,
        ssm_num_heads=heads,
        ssm_num_groups=groups,
        ssm_conv_size=4,
    )


def delta(*, hidden_size, key_heads, value_heads, head_dim, gate_rank=0):
    return Transformer(
        **(BASE | {"hidden_size": hidden_size}),
        num_linear_layers=1,
        linear_num_key_heads=key_heads,
        linear_num_value_heads=value_heads,
        linear_key_head_dim=head_dim,
        linear_value_head_dim=head_dim,
        linear_conv_size=4,
        linear_gate_rank=gate_rank,
    )


def test_nemotron_h_8b_layer_by_layer():
    """24 state spaces, 24 MLPs and 4 attentions, each behind one norm, written out."""
    h, inner, heads, groups, state = 4096, 8192, 128, 8, 128
    channels = inner + 2 * groups * state
    ssm = h * (inner + channels + heads) + inner * h + channels * (4 + 1) + 3 * heads + inner
    attention = h * (32 + 2 * 8) * 128 + 32 * 128 * h
    expected = 24 * ssm + 24 * 2 * h * 21504 + 4 * attention + 52 * h + 2 * 131072 * h + h
    model = PRESETS["nemotron-h-8b"].transformer
    assert float(t.total_params(model)) == expected
    assert float(t.num_attention_layers(model)) == 4
    assert float(t.num_mixer_layers(model)) == 28
    assert float(t.num_dense_mlp_layers(model)) == 24
    assert float(t.attention_share(model)) == pytest.approx(4 / 52)


@given(
    hidden_size=st.integers(1, 64),
    head_dim=st.sampled_from([32, 64, 128]),
    state=st.sampled_from([16, 64, 128, 256]),
    groups=st.sampled_from([1, 2, 8]),
)
def test_flops_of_mamba2_are_those_that_megatron_prints(hidden_size, head_dim, state, groups):
    """2 h (2 d + 2 G N + heads) + 7 d N + 2 d h a token, with d = 2 h; [MLM] leaves out the
    convolution, 2 x 4 a channel."""
    h = 256 * hidden_size
    d = 2 * h
    heads = d // head_dim
    model = mamba2(hidden_size=h, heads=heads, head_dim=head_dim, state=state, groups=groups)
    printed = 2 * h * (2 * d + 2 * groups * state + heads) + 7 * d * state + 2 * d * h
    convolution = 2 * 4 * (d + 2 * groups * state)
    matrices = 2 * float(state_space.matrix_params(model))
    scan = float(state_space.scan_flops_per_token(model))
    assert matrices + scan == pytest.approx(printed + convolution, rel=1e-12)


@given(
    hidden_size=st.integers(1, 64),
    key_heads=st.sampled_from([1, 4, 16]),
    per_key=st.sampled_from([1, 2, 3]),
    head_dim=st.sampled_from([64, 128, 256]),
)
def test_flops_of_the_delta_rule_are_those_that_megatron_prints(
    hidden_size, key_heads, per_key, head_dim
):
    """2 (h (2 q + 2 v + 2 heads) + 4 (2 q + v) + 4 heads d^2 + h v) a token. [MLM]"""
    h, value_heads = 256 * hidden_size, key_heads * per_key
    q, v = key_heads * head_dim, value_heads * head_dim
    model = delta(hidden_size=h, key_heads=key_heads, value_heads=value_heads, head_dim=head_dim)
    printed = 2 * (
        h * (2 * q + 2 * v + 2 * value_heads)
        + 4 * (2 * q + v)
        + 4 * value_heads * head_dim**2
        + h * v
    )
    got = 2 * float(state_space.matrix_params(model)) + float(
        state_space.scan_flops_per_token(model)
    )
    assert got == pytest.approx(printed, rel=1e-12)


def test_flops_of_a_hybrid_do_not_grow_with_the_square_of_its_length():
    """Doubling 128k doubles the attention of four layers of 52 and nothing else."""
    model = PRESETS["nemotron-h-8b"].transformer
    short, long = (float(t.forward_flops_per_token(model, s)) for s in (131_072, 262_144))
    widths = 2 * 32 * 128
    assert long - short == pytest.approx(4 * 2 * widths * 131_072 / 2)
    without = dataclasses.replace(model, num_ssm_layers=0)  # 28 layers of attention instead
    assert float(t.attention_score_flops_per_token(without, 8192)) == pytest.approx(
        7 * float(t.attention_score_flops_per_token(model, 8192))
    )


def test_a_model_of_attention_has_nothing_here():
    assert state_space.projections(ATTENTION) == []
    assert state_space.matmuls(ATTENTION, tp=4.0) == []
    for quantity in (
        state_space.params,
        state_space.scan_flops_per_token,
        state_space.scan_bytes_per_token,
        state_space.kept_bytes_per_token,
    ):
        assert float(quantity(ATTENTION)) == 0


@pytest.mark.parametrize("model", HYBRIDS)
@pytest.mark.parametrize("tp", [1.0, 2.0, 8.0])
def test_matmuls_are_the_matrices_and_divide_over_the_ranks(model, tp):
    weights = sum(
        float(n) * float(k) * float(share) * model.num_layers
        for n, k, share in state_space.matmuls(model, tp=tp)
    )
    assert weights == pytest.approx(float(state_space.matrix_params(model)) / tp)


@pytest.mark.parametrize("model", HYBRIDS)
def test_columns_give_what_their_rows_give(model):
    columns = t.as_columns([ATTENTION, model])
    for quantity in (state_space.params, state_space.matrix_params,
                     state_space.scan_flops_per_token, state_space.scan_bytes_per_token,
                     state_space.kept_bytes_per_token, t.num_attention_layers,
                     t.num_mixer_layers, t.num_layers_with_mlp, t.attention_share):  # fmt: skip
        rows = [float(quantity(m)) for m in (ATTENTION, model)]
        assert np.broadcast_to(quantity(columns), 2).tolist() == rows, quantity.__name__


@pytest.mark.parametrize("model", HYBRIDS)
def test_a_mixer_keeps_less_than_it_moves(model):
    """What is kept for backward was written once in forward."""
    kept = float(state_space.kept_bytes_per_token(model))
    moved = float(state_space.scan_bytes_per_token(model))
    assert 0 < kept < moved + 2 * 2 * model.num_layers * model.hidden_size


def test_kept_bytes_of_one_mamba2_layer():
    """The projection's 2 d + 2 G N + heads, the scan's output d, the gated norm's d; 2 bytes."""
    model = mamba2(hidden_size=4096, heads=128, head_dim=64, state=128, groups=8)
    expected = 2 * (2 * 8192 + 2 * 8 * 128 + 128 + 2 * 8192)
    assert float(state_space.kept_bytes_per_token(model)) == expected
    twice = mamba2(hidden_size=4096, heads=128, head_dim=64, state=128, groups=8, num_layers=2)
    assert float(state_space.kept_bytes_per_token(twice)) == expected / 2  # mean over layers


def test_a_mamba1_layer_written_out():
    """Jamba's: in 2 d, x_proj R + 2 N, dt_proj with bias, A of d N, D, three inner norms."""
    h, d, rank, state = 4096, 8192, 256, 16
    model = Transformer(
        **(BASE | {"hidden_size": h}),
        num_ssm_layers=1,
        ssm_inner_size=d,
        ssm_state_size=state,
        ssm_conv_size=4,
        ssm_dt_rank=rank,
    )
    matrices = h * 2 * d + d * (rank + 2 * state) + rank * d + d * h
    small = d * (4 + 1) + d + d * state + d + rank + 2 * state
    assert float(state_space.matrix_params(model)) == matrices
    assert float(state_space.params(model)) == matrices + small

"""Fused attention: FLOPs and kernel times against [D23], FlashAttention-2."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.transformer import attention_score_flops_per_token
from core.time.attention import (
    BACKWARD_FLOPS,
    backward_s,
    forward_s,
    head_dim_factor,
    sequence_factor,
)
from tests.made_up.jobs import LLAMA_2_7B, LLAMA_8B, WINDOWED


def test_causal_attention_is_half_of_the_published_square():
    """[D23, section 4.1]: 4 s^2 d heads forward, divided by 2 with a causal mask."""
    s = 16384.0
    model = LLAMA_2_7B
    flops = float(attention_score_flops_per_token(model, s)) * s / model.num_layers
    assert flops == pytest.approx(4 * s**2 * 128 * 32 / 2, rel=1e-3)


def test_kv_heads_do_not_change_the_score_flops_and_windows_lower_them():
    per_layer = [
        float(attention_score_flops_per_token(m, 8192.0)) for m in (LLAMA_2_7B, LLAMA_8B, WINDOWED)
    ]
    assert per_layer[0] == per_layer[1] > per_layer[2]


SHAPE = {"flops": 1e12, "flops_per_s": 400e12, "head_dim": 128.0, "half_head_dim": 30.0,
         "unaligned_slowdown": 3.9,
         "seq_len": 8192.0, "half_tokens": 500.0}  # fmt: skip


def test_backward_is_five_matmuls_for_two():
    assert BACKWARD_FLOPS == 5 / 2
    forward = forward_s(**SHAPE)
    assert backward_s(forward_s=forward, relative_rate=1.0) == pytest.approx(2.5 * forward)
    assert backward_s(forward_s=forward, relative_rate=0.5) == pytest.approx(5 * forward)


def test_the_rate_is_that_of_a_long_sequence_at_head_dim_128():
    long = forward_s(**{**SHAPE, "seq_len": 1e9})
    assert float(long) == pytest.approx(1e12 / 400e12, rel=1e-6)


@given(head_dim=st.integers(4, 32).map(lambda n: 8 * n), half=st.floats(0, 80))
def test_wider_heads_run_faster_and_no_rate_runs_away(head_dim, half):
    factor = float(head_dim_factor(float(head_dim), half, 3.9))
    assert 0 < factor <= 1.1
    assert factor <= float(head_dim_factor(float(head_dim + 8), half, 3.9))
    assert float(head_dim_factor(float(head_dim + 1), half, 3.9)) < factor / 2  # padded
    if head_dim < 128:  # the later it saturates, the less a narrow head reaches
        assert float(head_dim_factor(float(head_dim), half + 10)) < factor


@given(seq_len=st.floats(16, 1e6), half=st.floats(0, 4000), longer=st.floats(1, 100))
def test_a_longer_sequence_reaches_more_of_the_rate_and_never_more_than_all(seq_len, half, longer):
    here = float(sequence_factor(seq_len, half))
    assert 0 < here <= float(sequence_factor(seq_len * longer, half)) * (1 + 1e-12) <= 1 + 1e-9
    if half > 0:
        assert float(sequence_factor(half, half)) == pytest.approx(0.5)


@given(
    seq_len=st.sampled_from([512.0, 2048.0, 16384.0]),
    head_dim=st.sampled_from([64.0, 80.0, 96.0, 128.0, 256.0]),
    rate=st.floats(1e13, 2e15),
)
def test_seconds_go_with_work_and_against_the_rate(seq_len, head_dim, rate):
    shape = {**SHAPE, "seq_len": seq_len, "head_dim": head_dim, "flops_per_s": rate}
    one = float(forward_s(**shape))
    assert float(forward_s(**{**shape, "flops": 2e12})) == pytest.approx(2 * one)
    assert float(forward_s(**{**shape, "flops_per_s": 2 * rate})) == pytest.approx(one / 2)


def test_the_forward_kernel_is_its_flops_over_its_rate_at_this_shape():
    """At head_dim 128 and a long sequence the rate itself; at the half length twice the time."""
    kernel = {
        "flops": 6e12, "flops_per_s": 3e12, "head_dim": 128.0, "half_head_dim": 48.0,
        "unaligned_slowdown": 2.0,
    }  # fmt: skip
    assert forward_s(**kernel, seq_len=8192.0, half_tokens=0.0) == pytest.approx(2)
    assert forward_s(**kernel, seq_len=1024.0, half_tokens=1024.0) == pytest.approx(4)
    narrow = kernel | {"head_dim": 64.0}
    slower = 1 / float(head_dim_factor(64.0, 48.0))
    assert slower > 1
    assert forward_s(**narrow, seq_len=8192.0, half_tokens=0.0) == pytest.approx(2 * slower)

"""Optimizers: bytes of state against their papers, work against what it must move."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ScenarioError
from core.layout.optimizers import (
    OPTIMIZERS,
    factored_held_bytes,
    newton_schulz_flops,
    optimizer,
    orthogonalisation_flops_per_param,
    orthogonalised_matrices,
    step_bytes_per_param,
)
from core.model.transformer import layer_params
from core.scenario.types import Optimizer as Names
from tests.made_up.jobs import DEEPSEEK_V3, DENSE, LLAMA_8B, MIXTRAL_8X7B


@pytest.mark.parametrize(
    ("name", "printed_bytes", "tolerance"),
    [
        ("adamw", 8, 0),  # two fp32 moments, arXiv:1412.6980
        ("adamw_8bit", 2, 0.01),  # two 8-bit moments and a scale a block, arXiv:2110.02861
        ("sgd", 4, 0),  # momentum
        ("muon", 4, 0),  # momentum
        ("adafactor", 0, 0.02),  # a row and a column of each matrix, arXiv:1804.04235
    ],
)
def test_states_take_what_their_papers_print(name, printed_bytes, tolerance):
    assert optimizer(name).state_bytes == pytest.approx(printed_bytes, abs=tolerance)
    assert optimizer(name).state_bytes > 0


def test_adafactor_keeps_a_row_and_a_column_of_every_matrix():
    """4 (n + m) bytes for n x m: below the table's figure from 1,024 x 2,048 on."""
    for n, m in ((1024, 2048), (4096, 11008), (16384, 53248)):
        assert 4 * (n + m) / (n * m) < OPTIMIZERS["adafactor"].state_bytes


def test_the_table_holds_the_names_of_the_scenario():
    assert set(OPTIMIZERS) == set(Names.__args__)


def test_an_unknown_optimizer_is_never_guessed():
    with pytest.raises(ScenarioError, match="Did you mean 'adamw'"):
        optimizer("adam")


def test_adamw_reads_and_writes_what_it_must():
    """At least 4 fp32 reads and 3 writes: 28 bytes a parameter; at most twice that."""
    assert 28 <= step_bytes_per_param(state_bytes=8.0) <= 56


def test_adamw_all_in_16_bits_moves_half_of_that():
    """Gradient read for the norm and for the update, zeroed (6); weight and both moments read and
    written (12)."""
    assert step_bytes_per_param(state_bytes=4.0, weight_bytes=2.0) == 18


def test_adafactor_by_operators_passes_over_a_parameter_some_twenty_times():
    """Qwen3 8B all in 16 bits on one H200 (hardware/measured_runs.csv, own-...-qwen8b-1k-adafactor)
    took 285 ms longer than its passes without the optimizer: 8.19 billion parameters at 80% of
    4.8 TB/s are 134 bytes each; a fused update of as little state moves 10."""
    narrow = float(step_bytes_per_param(state_bytes=0.01, weight_bytes=2.0, factored=True))
    assert 0.75 * 134 < narrow < 134
    wide = float(step_bytes_per_param(state_bytes=0.01, factored=True))
    copies = (2 + 4) + (2 + 4) + (4 + 2)
    assert narrow - wide == pytest.approx(copies - (4 + 8) + (2 + 4))
    assert step_bytes_per_param(state_bytes=0.01, weight_bytes=2.0) < 0.1 * narrow


@pytest.mark.parametrize("weight_bytes", [2.0, 4.0])
def test_adamw_by_operators_passes_over_a_parameter_twenty_times(weight_bytes):
    """A fused kernel reads weight, gradient and moments and writes all but the gradient: 7."""
    of = {"state_bytes": 2 * weight_bytes, "weight_bytes": weight_bytes}
    fused, listed = (float(step_bytes_per_param(**of, listed=n)) for n in (False, True))
    assert listed - fused == (20 - 7) * weight_bytes


def test_adafactor_by_operators_holds_temporaries_of_one_tensor():
    """In 16 bits fp32 copies of gradient and weight, and an update before and after."""
    assert factored_held_bytes(largest=1000, weight_bytes=2.0) == 16_000
    assert factored_held_bytes(largest=1000, weight_bytes=4.0) == 8_000


@given(state_bytes=st.floats(0, 16))
def test_smaller_states_move_fewer_bytes_but_weights_and_gradients_stay(state_bytes):
    moved = step_bytes_per_param(state_bytes=state_bytes)
    assert 4 + 4 + 4 <= moved <= step_bytes_per_param(state_bytes=16.0)
    assert moved - step_bytes_per_param(state_bytes=0.0) == pytest.approx(2 * state_bytes)


@pytest.mark.parametrize(
    ("hidden_size", "batch_tokens", "printed"),
    [(768, 524_288, 0.007), (16_384, 16e6, 0.005)],  # NanoGPT, Llama 405B
)
def test_muon_costs_what_its_author_prints(hidden_size, batch_tokens, printed):
    """kellerjordan.github.io/posts/muon: at most T m / B of the FLOPs, T = 5 iterations."""
    rows, columns = hidden_size, 4 * hidden_size
    per_param = newton_schulz_flops(rows=rows, columns=columns) / (rows * columns)
    of_training = float(per_param) / (6 * batch_tokens)
    assert 0.5 * printed < of_training <= printed * 1.05


def test_newton_schulz_counts_the_products_of_its_iterations():
    """Five times X X^T, its square and one product, a multiply-add 2 FLOPs; either way round."""
    rows, columns = 3, 7
    x_xt, square, product = (
        2 * rows * columns * rows, 2 * rows * rows * rows, 2 * rows * rows * columns
    )  # fmt: skip
    want = 5 * (x_xt + square + product)
    assert newton_schulz_flops(rows=rows, columns=columns) == want
    assert newton_schulz_flops(rows=columns, columns=rows) == want


@pytest.mark.parametrize("model", [*DENSE, MIXTRAL_8X7B, DEEPSEEK_V3])
def test_the_matrices_are_all_of_the_layers_but_what_is_small(model):
    """Norms, biases and routers are no matrices that Muon orthogonalises."""
    held = sum(float(np.asarray(r * c * n)) for r, c, n in orthogonalised_matrices(model))
    assert 0.985 * float(layer_params(model)) < held <= float(layer_params(model))


def test_experts_are_orthogonalised_by_their_own_size():
    """An expert of 7,168 x 2,048: r is 2,048, not the hidden size."""
    dense, expert = orthogonalisation_flops_per_param(DEEPSEEK_V3)
    assert float(expert) == pytest.approx(5 * (4 * 2048 + 2 * 2048**2 / 7168))
    assert float(expert) < 0.5 * float(dense)
    small = replace(MIXTRAL_8X7B, moe_ffn_hidden_size=1024)
    ratio = [float(orthogonalisation_flops_per_param(m)[1]) for m in (MIXTRAL_8X7B, small)]
    assert ratio[0] > 3 * ratio[1]


def test_the_matrices_of_grouped_queries_are_skinny():
    """Keys and values of 1,024 x 4,096 each cost less per parameter than 4,096 x 14,336."""
    one_kind = newton_schulz_flops(rows=4096, columns=14336) / (4096 * 14336)
    dense, _ = orthogonalisation_flops_per_param(LLAMA_8B)
    assert 0.85 * one_kind < float(dense) < one_kind * 1.1


def test_only_muon_keeps_more_of_the_ends_than_of_the_layers():
    """AdamW for embedding and head, 8 bytes; momentum, 4, for hidden matrices [J24]."""
    assert {n: o.ends_state_bytes for n, o in OPTIMIZERS.items() if o.ends_state_bytes} == {
        "muon": 8.0
    }

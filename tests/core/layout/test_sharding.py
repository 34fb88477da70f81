"""The strategy table against [R20], Rajbhandari et al., "ZeRO", arXiv:1910.02054."""

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.layout.sharding import (
    GRADIENT_BYTES,
    INDEX,
    STRATEGIES,
    held_gradient_bytes,
    model_state_bytes_per_param,
    reduced_gradient_bytes,
)
from core.scenario.types import GradientDtype

FIGURE_1 = pd.read_csv(Path(__file__).parents[2] / "golden/rajbhandari2020_figure1.csv")
PRINTED = {row["stage"]: row for row in FIGURE_1.to_dict("records")}


def state(name, shards, gradients=""):
    return float(
        model_state_bytes_per_param(
            strategy=INDEX[name], shards=shards, gradient_bytes=GRADIENT_BYTES[gradients]
        )
    )


@pytest.mark.parametrize("stage", ["zero1", "zero2", "zero3"])
def test_model_state_of_figure_1(stage):
    """16 bytes a parameter: gradients in 16 bits."""
    row = PRINTED[stage]
    bytes_per_param = state(stage, row["shards"], gradients="bf16")
    assert bytes_per_param * row["params"] / 1e9 == pytest.approx(row["state_gb"], abs=0.05)
    assert 16 / bytes_per_param == pytest.approx(row["times_less"], abs=0.05)


@pytest.mark.parametrize("shards", [1, 8, 64, 1024])
def test_the_distributed_optimizer_of_megatron_keeps_6_and_12_over_d(shards):
    """megatron/training/theoretical_memory_usage.py: 6 + 12 / data_parallel_size, 18 without."""
    assert state("zero1", shards) == pytest.approx(6 + 12 / shards)


def test_the_printed_4x_and_8x_are_limits_for_many_gpus():
    """[R20, section 5]: 4x and 8x as N_d grows; at 64 GPUs 8x is 7.2x."""
    assert 16 / state("zero2", 64) == pytest.approx(7.2, abs=0.05)
    assert 16 / state("zero2", 1e9) == pytest.approx(8.0, abs=1e-3)
    assert 16 / state("zero3", 512) == pytest.approx(512)


@pytest.mark.parametrize(
    ("name", "bytes_per_param"),
    [("ddp", 16), ("zero1", 18), ("zero2", 16), ("zero3", 16), ("fsdp1", 16), ("fsdp2", 16),
     ("hsdp", 16), ("zeropp", 16)],
)  # fmt: skip
def test_unsharded_accounting_is_one_of_the_named_choices(name, bytes_per_param):
    """16: fp32 weights their own master, or 16-bit weights and gradients; 18: fp32 gradients."""
    assert state(name, 1) == bytes_per_param


@pytest.mark.parametrize(
    ("gradients", "bytes_per_param"), [("", 18), ("bf16", 16), ("fp32", 18), ("bf16_fp32", 20)]
)
def test_zero_1_has_the_three_named_accountings(gradients, bytes_per_param):
    """16 as [R20, section 3.1], 18 as Megatron, 20 as DeepSpeed's bf16 optimizer holds both."""
    assert state("zero1", 1, gradients) == bytes_per_param
    assert state("zero1", 64, gradients) == pytest.approx(bytes_per_param - 12 + 12 / 64)


def test_the_accountings_are_those_of_the_scenario():
    assert set(GRADIENT_BYTES) == set(GradientDtype.__args__)


@pytest.mark.parametrize("name", ["ddp", "fsdp1", "fsdp2", "hsdp"])
@pytest.mark.parametrize("gradients", ["bf16", "fp32", "bf16_fp32"])
def test_the_gradient_of_an_fp32_weight_is_fp32_whatever_it_is_reduced_in(name, gradients):
    of = {"strategy": INDEX[name], "gradient_bytes": GRADIENT_BYTES[gradients]}
    assert float(held_gradient_bytes(**of)) == 4
    in_16_bits = gradients == "bf16" and name != "ddp"  # which reduces what it holds
    assert float(reduced_gradient_bytes(**of)) == (2 if in_16_bits else 4)


@pytest.mark.parametrize(("gradients", "reduced"), [("", 4), ("bf16", 2), ("fp32", 4)])
def test_gradients_of_16_bit_weights_are_reduced_as_they_are_held(gradients, reduced):
    """NVIDIA/Megatron-LM@01d65bde5: megatron/model/distributed.py, _get_buffer_type."""
    of = {"strategy": INDEX["ddp"], "gradient_bytes": GRADIENT_BYTES[gradients]}
    assert float(reduced_gradient_bytes(**of, as_held=True)) == reduced


@pytest.mark.parametrize("gradients", ["bf16", "fp32", "bf16_fp32"])
def test_quantised_reductions_stay_quantised(gradients):
    of = {"strategy": INDEX["zeropp"], "gradient_bytes": GRADIENT_BYTES[gradients]}
    assert float(reduced_gradient_bytes(**of)) == 0.5  # [W23, section 3.3]: 4 bits
    assert float(held_gradient_bytes(**of)) == GRADIENT_BYTES[gradients]


@given(
    name=st.sampled_from([s.name for s in STRATEGIES]),
    shards=st.integers(1, 4096),
    more=st.integers(1, 4096),
)
def test_more_shards_never_hold_more(name, shards, more):
    assert state(name, shards + more) <= state(name, shards)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.name)
def test_stages_nest(strategy):
    """Sharding weights implies sharding gradients, and gradients the optimizer [R20, section 5]."""
    assert strategy.shards_parameters <= strategy.shards_gradients <= strategy.shards_optimizer


def test_each_stage_of_zero_holds_less_than_the_one_before():
    at_64 = [state(n, 64) for n in ("ddp", "zero1", "zero2", "zero3")]
    assert at_64 == sorted(at_64, reverse=True)
    assert len(set(at_64)) == 4


def test_what_is_sharded_is_gathered():
    for s in STRATEGIES:
        assert (s.gathered_bytes > 0) == s.shards_optimizer, s.name
        assert s.reduced_bytes > 0, s.name

"""Adapters against printed parameter counts, NF4 against [D23], arXiv:2305.14314."""

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.adapters import (
    mlp_adapter_params,
    nf4_bytes_per_param,
    trained_fraction,
)
from core.model.presets import preset
from core.model.transformer import Transformer, total_params
from tests.made_up.jobs import LLAMA_2_7B, MIXTRAL_8X7B, MODELS

PRINTED = pd.read_csv(Path(__file__).parents[2] / "golden/lora_parameters.csv")


@pytest.mark.parametrize(
    "row", PRINTED.to_dict("records"), ids=lambda r: f"{r['model']}-{r['rank']}-{r['targets']}"
)
def test_trained_parameters_are_those_that_are_printed(row):
    model = preset(row["model"]).transformer
    fraction = trained_fraction(model, rank=row["rank"], on_mlp=row["targets"] == "all")
    assert float(fraction * total_params(model)) == pytest.approx(row["trainable"], rel=1e-12)
    assert row["trainable"] % row["printed"] == 0


def test_the_printed_whole_is_the_base_and_its_adapters():
    adapters = float(trained_fraction(LLAMA_2_7B, rank=16, on_mlp=True) * total_params(LLAMA_2_7B))
    assert float(total_params(LLAMA_2_7B)) + adapters == 6_778_392_576


@given(model=st.sampled_from(MODELS), rank=st.integers(1, 512))
def test_adapters_grow_with_their_rank_and_their_targets(model, rank):
    attention, everything = (
        float(trained_fraction(model, rank=rank, on_mlp=on_mlp)) for on_mlp in (False, True)
    )
    assert 0 < attention < everything
    assert float(trained_fraction(model, rank=2 * rank, on_mlp=True)) == pytest.approx(
        2 * everything
    )


def test_every_expert_has_its_adapters():
    one_expert = 3 * (4096 + 14336)
    assert float(mlp_adapter_params(MIXTRAL_8X7B, 1.0)) == 32 * 8 * one_expert


class TestNF4:
    """[D23, section 3]: 4 bits, 32/64 of scales, or 8/64 + 32/(64 x 256) quantised again."""

    def bits(self, *, double_quantisation):
        return 8 * nf4_bytes_per_param(double_quantisation=double_quantisation)

    def test_scales_take_half_a_bit_and_0_127_when_quantised(self):
        assert self.bits(double_quantisation=False) == pytest.approx(4.5)
        assert self.bits(double_quantisation=True) == pytest.approx(4.127, abs=5e-4)

    def test_double_quantisation_saves_0_373_bits_and_about_3_gb_of_65b(self):
        saved = self.bits(double_quantisation=False) - self.bits(double_quantisation=True)
        assert saved == pytest.approx(0.373, abs=5e-4)
        assert saved * 65e9 / 8 / 1e9 == pytest.approx(3, abs=0.05)


def test_a_state_space_mixer_has_adapters_on_both_of_its_projections():
    """r (k + n) each [H21, section 4.1]: Mamba-2 of inner width 64, 4 heads, 2 groups, state 8."""
    dense = {
        "num_layers": 6.0, "hidden_size": 32.0, "ffn_hidden_size": 128.0, "vocab_size": 100.0,
        "num_attention_heads": 4.0, "num_kv_heads": 4.0, "head_dim": 8.0,
    }  # fmt: skip
    mixer = {
        "num_ssm_layers": 2.0, "ssm_inner_size": 64.0, "ssm_state_size": 8.0,
        "ssm_num_heads": 4.0, "ssm_num_groups": 2.0, "ssm_conv_size": 4.0,
    }  # fmt: skip
    into = 32 + (64 + 2 * 2 * 8) + (64 + 4)  # x, B, C; gate and step of each head
    out = 64 + 32
    more = mlp_adapter_params(Transformer(**dense, **mixer), 16.0) - mlp_adapter_params(
        Transformer(**dense), 16.0
    )
    assert more == 16 * 2 * (into + out)

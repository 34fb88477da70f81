"""Presets with state-space or linear-attention layers."""

from __future__ import annotations

from typing import TypedDict

from core.model.preset_rows import BRIDGE, CONFIGS, Preset, decoder, experts, hub, row
from core.model.transformer import Transformer

KIMI = (
    "huggingface/transformers 5.23.0: the defaults of KimiLinearConfig, which are this model's",
    "2026-11-13",
)


class _Mamba2(TypedDict):
    num_ssm_layers: int
    ssm_inner_size: int
    ssm_state_size: int
    ssm_num_heads: int
    ssm_num_groups: int
    ssm_conv_size: int


class _Delta(TypedDict):
    num_linear_layers: int
    linear_num_key_heads: int
    linear_num_value_heads: int
    linear_key_head_dim: int
    linear_value_head_dim: int
    linear_conv_size: int


def _mamba2(layers: int, *, heads: int, head_dim: int, state: int, groups: int) -> _Mamba2:
    return {
        "num_ssm_layers": layers,
        "ssm_inner_size": heads * head_dim,
        "ssm_state_size": state,
        "ssm_num_heads": heads,
        "ssm_num_groups": groups,
        "ssm_conv_size": 4,
    }


def _delta(layers: int, *, key_heads: int, value_heads: int) -> _Delta:
    return {
        "num_linear_layers": layers,
        "linear_num_key_heads": key_heads,
        "linear_num_value_heads": value_heads,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_size": 4,
    }


def hybrid_models() -> list[Preset]:
    """The table of hybrid presets."""
    return [*_nemotron(), *_with_mlp()]


def _nemotron() -> list[Preset]:
    """One norm, then a state space, an attention, an MLP or experts."""
    return [
        row(
            "nemotron-h-8b", "Nemotron-H 8B", BRIDGE,
            Transformer(
                **decoder(52, 4096, 21504, 32, 8, 128, 131072),
                **_mamba2(24, heads=128, head_dim=64, state=128, groups=8),
                num_mlp_layers=24,
                norms_per_layer=1,
                gated_mlp=False,
            ),
            max_seq_len=8192, published_params=8_100_852_736,
            aliases=("nvidia/Nemotron-H-8B-Base-8K",),
        ),
        row(
            "nemotron-h-56b", "Nemotron-H 56B", BRIDGE,
            Transformer(
                **decoder(118, 8192, 32768, 64, 8, 128, 131072),
                **_mamba2(54, heads=256, head_dim=64, state=256, groups=8),
                num_mlp_layers=54,
                norms_per_layer=1,
                gated_mlp=False,
            ),
            max_seq_len=8192, published_params=56e9, aliases=("nvidia/Nemotron-H-56B-Base-8K",),
        ),
        row(
            "nemotron-nano-9b-v2", "Nemotron Nano 9B v2", CONFIGS,
            Transformer(
                **decoder(56, 4480, 15680, 40, 8, 128, 131072),
                **_mamba2(27, heads=128, head_dim=80, state=128, groups=8),
                num_mlp_layers=25,
                norms_per_layer=1,
                gated_mlp=False,
            ),
            max_seq_len=131_072, published_params=8_888_227_328,
            aliases=("nvidia/NVIDIA-Nemotron-Nano-9B-v2",),
        ),
        row(
            "nemotron-3-nano-30b-a3b", "Nemotron 3 Nano 30B-A3B", BRIDGE,
            Transformer(
                **decoder(52, 2688, 1856, 32, 2, 128, 131072),
                **_mamba2(23, heads=64, head_dim=64, state=128, groups=8),
                **experts(128, 6, 1856),
                num_shared_experts=2,
                num_mlp_layers=23,
                norms_per_layer=1,
                gated_mlp=False,
            ),
            max_seq_len=262_144, published_params=31_577_937_344,
            aliases=("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
                     "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-Base-BF16"),
            note="The shared expert is as wide as two routed ones.",
        ),
    ]  # fmt: skip


def _with_mlp() -> list[Preset]:
    """A mixer and an MLP in every layer."""
    return [
        row(
            "bamba-9b", "Bamba 9B", hub("ibm-fms/Bamba-9B"),
            Transformer(
                **decoder(32, 4096, 14336, 32, 8, 128, 128256),
                **_mamba2(29, heads=128, head_dim=64, state=128, groups=1),
            ),
            max_seq_len=4096, published_params=9.78e9, aliases=("ibm-fms/Bamba-9B",),
        ),
        row(
            "granite-4.0-h-small", "Granite 4.0 H Small", CONFIGS,
            Transformer(
                **decoder(40, 4096, 768, 32, 8, 128, 100352),
                **_mamba2(36, heads=128, head_dim=64, state=128, groups=1),
                **experts(72, 10, 768),
                num_shared_experts=2,
                tied_embeddings=True,
            ),
            max_seq_len=131_072, published_params=32_207_337_984,
            aliases=("ibm-granite/granite-4.0-h-small",),
        ),
        row(
            "qwen3-next-80b-a3b", "Qwen3-Next 80B-A3B", CONFIGS,
            Transformer(
                **decoder(48, 2048, 5120, 16, 2, 256, 151936),
                **_delta(36, key_heads=16, value_heads=32),
                **experts(512, 10, 512),
                num_shared_experts=1,
                qk_norm=True,
                attention_gate=True,
            ),
            max_seq_len=262_144, published_params=80e9,
            aliases=("Qwen/Qwen3-Next-80B-A3B-Instruct", "Qwen/Qwen3-Next-80B-A3B-Thinking"),
            note="Without the multi-token prediction layer (1.6B more).",
        ),
        row(
            "kimi-linear-48b-a3b", "Kimi Linear 48B-A3B", KIMI,
            Transformer(
                **decoder(27, 2304, 9216, 32, 32, 192, 163840),
                **_delta(20, key_heads=32, value_heads=32),
                **experts(256, 8, 1024),
                num_shared_experts=1,
                num_dense_layers=1,
                linear_gate_rank=128,
                kv_lora_rank=512,
                qk_nope_head_dim=128,
                qk_rope_head_dim=64,
                v_head_dim=128,
            ),
            max_seq_len=1_048_576, published_params=49_122_675_072,
            aliases=("moonshotai/Kimi-Linear-48B-A3B-Base",
                     "moonshotai/Kimi-Linear-48B-A3B-Instruct"),
        ),
    ]  # fmt: skip

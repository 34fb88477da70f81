"""Families of Hugging Face configurations with linear-attention layers.

[HF] huggingface/transformers 5.23.0 (2026-11-13), as in core/model/hf_families.py, which also lists
     what is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

from core.errors import ModelError
from core.model.hf_moe import qwen_experts, shared_experts
from core.model.hf_reader import (
    FULL_ATTENTION,
    HEADS,
    LINEAR_ATTENTION,
    Config,
    decoder,
    num_layers,
    required_kv_heads,
)
from core.model.transformer import Transformer


class _Linear(TypedDict):
    num_linear_layers: int
    linear_num_key_heads: int
    linear_num_value_heads: int
    linear_key_head_dim: int
    linear_value_head_dim: int
    linear_conv_size: int


def _linear(c: Config) -> _Linear:
    """Gated DeltaNet in all but every fourth layer."""
    layers = num_layers(c)
    kinds = c.kinds("layer_types", layers, (FULL_ATTENTION, LINEAR_ATTENTION))
    interval = c.count("num_layers", "full_attention_interval", default=4)
    full = layers // interval if kinds is None else kinds.count(FULL_ATTENTION)
    return {
        "num_linear_layers": layers - full,
        "linear_num_key_heads": c.count("linear_num_key_heads", "linear_num_key_heads"),
        "linear_num_value_heads": c.count("linear_num_value_heads", "linear_num_value_heads"),
        "linear_key_head_dim": c.count("linear_key_head_dim", "linear_key_head_dim"),
        "linear_value_head_dim": c.count("linear_value_head_dim", "linear_value_head_dim"),
        "linear_conv_size": c.count("linear_conv_size", "linear_conv_kernel_dim", default=4),
    }


def _qwen3_next(c: Config) -> Transformer:
    return decoder(
        c,
        kv_heads=required_kv_heads(c),
        head_dim=256,
        qk_norm=True,
        attention_gate=True,
        qkv_bias=c.flag("attention_bias", default=False),
        num_shared_experts=shared_experts(
            c, "shared_expert_intermediate_size", "moe_intermediate_size"
        ),
        **qwen_experts(c),
        **_linear(c),
    )


def _qwen3_5(c: Config) -> Transformer:
    return decoder(
        c,
        kv_heads=required_kv_heads(c),
        head_dim=256,
        qk_norm=True,
        attention_gate=True,
        qkv_bias=c.flag("attention_bias", default=False),
        **_linear(c),
    )


def _kimi_linear(c: Config) -> Transformer:
    """Delta attention with a decay for each channel, and latent attention in every fourth."""
    inner = c.part("linear_attn_config")
    layers = num_layers(c)
    delta = inner.layers("kda_layers") or frozenset()
    full = inner.layers("full_attn_layers") or frozenset()
    if len(delta | full) != layers or len(delta) + len(full) != layers:
        raise ModelError(
            f"kda_layers ({len(delta)}) and full_attn_layers ({len(full)}) in the config "
            f"contradict num_hidden_layers={layers}: each layer must be in one of them."
        )
    heads = inner.count("linear_num_key_heads", "num_heads")
    size = inner.count("linear_key_head_dim", "head_dim")
    nope = c.count("qk_nope_head_dim", "qk_nope_head_dim")
    rope = c.count("qk_rope_head_dim", "qk_rope_head_dim")
    without_head_dim = {k: v for k, v in c.values.items() if k != "head_dim"}
    return decoder(
        Config(c.model_type, without_head_dim),
        kv_heads=c.count("num_attention_heads", *HEADS),
        head_dim=nope + rope,
        q_lora_rank=c.count("q_lora_rank", "q_lora_rank", default=0, least=0),
        kv_lora_rank=c.count("kv_lora_rank", "kv_lora_rank"),
        qk_nope_head_dim=nope,
        qk_rope_head_dim=rope,
        v_head_dim=c.count("v_head_dim", "v_head_dim"),
        num_experts=c.count("num_experts", "num_experts", "num_local_experts"),
        experts_per_token=c.count(
            "experts_per_token", "num_experts_per_token", "num_experts_per_tok"
        ),
        num_shared_experts=c.count(
            "num_shared_experts", "num_shared_experts", "n_shared_experts", default=1, least=0
        ),
        moe_ffn_hidden_size=c.count("moe_ffn_hidden_size", "moe_intermediate_size"),
        num_dense_layers=c.count("num_dense_layers", "first_k_dense_replace", default=1, least=0),
        num_linear_layers=len(delta),
        linear_num_key_heads=heads,
        linear_num_value_heads=heads,
        linear_key_head_dim=size,
        linear_value_head_dim=size,
        linear_conv_size=inner.count("linear_conv_size", "short_conv_kernel_size", default=4),
        linear_gate_rank=size,
    )


LINEAR: dict[str, Callable[[Config], Transformer]] = {
    "qwen3_next": _qwen3_next,
    "qwen3_5_text": _qwen3_5,
    "kimi_linear": _kimi_linear,
}

"""Families of Hugging Face configurations whose layers have experts.

[HF] huggingface/transformers 5.23.0 (2026-11-13), as in core/model/hf_families.py, which also lists
     what is left out.

Local attention in chunks (llama4) is counted as a window of that size: exact up to one chunk, and
an overestimate beyond.
"""

from __future__ import annotations

from collections.abc import Callable

from core.errors import ModelError
from core.model.hf_families import qwen_window
from core.model.hf_reader import (
    HEADS,
    Config,
    Experts,
    decoder,
    num_layers,
    required_kv_heads,
    window,
)
from core.model.transformer import Transformer


def _mixtral(c: Config) -> Transformer:
    size = c.count("sliding_window", "sliding_window", default=0, least=0)
    return decoder(
        c,
        kv_heads=required_kv_heads(c),
        **window(size, num_layers(c)),
        num_experts=c.count("num_experts", "num_local_experts"),
        experts_per_token=c.count("experts_per_token", "num_experts_per_tok"),
        moe_ffn_hidden_size=c.count("moe_ffn_hidden_size", "intermediate_size"),
    )


def qwen_experts(c: Config) -> Experts:
    """Experts in every decoder_sparse_step-th layer, except those of mlp_only_layers."""
    step = c.count("num_layers", "decoder_sparse_step", default=1)
    dense = c.layers("mlp_only_layers") or frozenset()
    return {
        "num_experts": c.count("num_experts", "num_experts", "num_local_experts"),
        "experts_per_token": c.count("experts_per_token", "num_experts_per_tok"),
        "moe_ffn_hidden_size": c.count("moe_ffn_hidden_size", "moe_intermediate_size"),
        "num_dense_layers": sum(i in dense or (i + 1) % step != 0 for i in range(num_layers(c))),
    }


def shared_experts(c: Config, shared_key: str, size_key: str) -> int:
    """A shared expert is as wide as a whole number of routed ones in all published sizes."""
    size = c.count("moe_ffn_hidden_size", size_key)
    shared = c.count("ffn_hidden_size", shared_key, least=0)
    if shared % size:
        raise ModelError(
            f"{shared_key}={shared} in the config is not a multiple of {size_key}={size}: such a "
            "shared expert cannot be estimated."
        )
    return shared // size


def _qwen2_moe(c: Config) -> Transformer:
    return decoder(
        c,
        kv_heads=required_kv_heads(c),
        qkv_bias=c.flag("qkv_bias", default=True),
        num_shared_experts=shared_experts(
            c, "shared_expert_intermediate_size", "moe_intermediate_size"
        ),
        **qwen_window(c, windowed=lambda layers, edge: (min(layers, edge) + 1) // 2),
        **qwen_experts(c),
    )


def _qwen3_moe(c: Config) -> Transformer:
    return decoder(
        c,
        kv_heads=required_kv_heads(c),
        qk_norm=True,
        qkv_bias=c.flag("attention_bias", default=False),
        **qwen_window(c, windowed=lambda layers, edge: layers),
        **qwen_experts(c),
    )


def _deepseek(c: Config) -> Transformer:
    """DeepSeek V2 and V3, Kimi K2: latent attention [D24 of core/model/transformer.py], experts
    after the first dense layers. head_dim is that of a query; latent attention does not use it."""
    if c.flag("attention_bias", default=False):
        raise ModelError(f"attention_bias=True in a {c.model_type} config cannot be estimated.")
    if c.count("num_layers", "moe_layer_freq", default=1) != 1:
        raise ModelError(f"moe_layer_freq in a {c.model_type} config is estimated only if it is 1.")
    nope = c.count("qk_nope_head_dim", "qk_nope_head_dim")
    rope = c.count("qk_rope_head_dim", "qk_rope_head_dim")
    without_head_dim = {k: v for k, v in c.values.items() if k != "head_dim"}
    return decoder(
        Config(c.model_type, without_head_dim),
        kv_heads=c.count("num_attention_heads", *HEADS),
        head_dim=nope + rope,
        num_experts=c.count("num_experts", "n_routed_experts"),
        experts_per_token=c.count("experts_per_token", "num_experts_per_tok"),
        num_shared_experts=c.count("num_shared_experts", "n_shared_experts", default=0, least=0),
        moe_ffn_hidden_size=c.count("moe_ffn_hidden_size", "moe_intermediate_size"),
        num_dense_layers=c.count("num_dense_layers", "first_k_dense_replace", least=0),
        q_lora_rank=c.count("q_lora_rank", "q_lora_rank", default=0, least=0),
        kv_lora_rank=c.count("kv_lora_rank", "kv_lora_rank"),
        qk_nope_head_dim=nope,
        qk_rope_head_dim=rope,
        v_head_dim=c.count("v_head_dim", "v_head_dim"),
    )


def _gpt_oss(c: Config) -> Transformer:
    """Every other layer, from the first, has the window; all matrices and the router have a
    bias."""
    layers = num_layers(c)
    size = c.count("sliding_window", "sliding_window", default=128, least=0)
    windowed = c.windowed_layers(num_layers=layers, default=(layers + 1) // 2)
    return decoder(
        c,
        kv_heads=required_kv_heads(c),
        head_dim=64,
        qkv_bias=c.flag("attention_bias", default=True),
        linear_bias=True,
        **window(size, windowed),
        num_experts=c.count("num_experts", "num_local_experts"),
        experts_per_token=c.count("experts_per_token", "num_experts_per_tok", "experts_per_token"),
        moe_ffn_hidden_size=c.count("moe_ffn_hidden_size", "intermediate_size"),
    )


def _llama4(c: Config) -> Transformer:
    """intermediate_size is that of an expert (and of the shared one), intermediate_size_mlp
    that of a dense layer. Three of four layers attend inside chunks."""
    layers = num_layers(c)
    step = c.count("num_layers", "interleave_moe_layer_step", default=1)
    sparse = c.layers("moe_layers")
    num_sparse = layers // step if sparse is None else len(sparse & set(range(layers)))
    no_rope = c.count("num_layers", "no_rope_layer_interval", default=4)
    windowed = c.windowed_layers(num_layers=layers, default=layers - layers // no_rope)
    chunk = 0 if "attention_chunk_size" in c.values else 8192
    size = c.count("sliding_window", "attention_chunk_size", default=chunk, least=0)
    return decoder(
        c,
        ffn=("intermediate_size_mlp",),
        kv_heads=required_kv_heads(c),
        head_dim=128,
        qkv_bias=c.flag("attention_bias", default=False),
        **window(size, windowed),
        num_experts=c.count("num_experts", "num_local_experts"),
        experts_per_token=c.count("experts_per_token", "num_experts_per_tok"),
        num_shared_experts=1,
        moe_ffn_hidden_size=c.count("moe_ffn_hidden_size", "intermediate_size"),
        num_dense_layers=layers - num_sparse,
    )


def _glm4_moe(c: Config) -> Transformer:
    """GLM 4.5: experts after the first dense layers."""
    return decoder(
        c,
        kv_heads=required_kv_heads(c),
        head_dim=128,
        qkv_bias=c.flag("attention_bias", default=False),
        qk_norm=c.flag("use_qk_norm", default=False),
        num_experts=c.count("num_experts", "n_routed_experts", "num_local_experts"),
        experts_per_token=c.count("experts_per_token", "num_experts_per_tok"),
        num_shared_experts=c.count("num_shared_experts", "n_shared_experts", default=1, least=0),
        moe_ffn_hidden_size=c.count("moe_ffn_hidden_size", "moe_intermediate_size"),
        num_dense_layers=c.count("num_dense_layers", "first_k_dense_replace", default=1, least=0),
    )


EXPERTS: dict[str, Callable[[Config], Transformer]] = {
    "mixtral": _mixtral,
    "qwen2_moe": _qwen2_moe,
    "qwen3_moe": _qwen3_moe,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek,
    "kimi_k2": _deepseek,
    "gpt_oss": _gpt_oss,
    "llama4_text": _llama4,
    "glm4_moe": _glm4_moe,
}

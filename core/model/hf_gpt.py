"""Older families of Hugging Face configurations: LayerNorm with bias, MLP without a gate.

[HF] huggingface/transformers 5.23.0 (2026-11-13), as in core/model/hf_families.py, which also lists
     what is left out.
"""

from __future__ import annotations

from collections.abc import Callable

from core.errors import ModelError
from core.model.hf_reader import HEADS, Config, decoder, hidden_size
from core.model.transformer import Transformer


def _gpt2(c: Config) -> Transformer:
    return decoder(
        c,
        ffn=("n_inner",),
        ffn_default=4 * hidden_size(c),
        tied=True,
        num_positions=c.count("num_positions", "n_positions", "max_position_embeddings"),
        gated_mlp=False,
        qkv_bias=True,
        linear_bias=True,
        norm_bias=True,
    )


def _gpt_neox(c: Config) -> Transformer:
    bias = c.flag("attention_bias", default=True)
    return decoder(c, gated_mlp=False, qkv_bias=bias, linear_bias=True, norm_bias=True)


def _opt(c: Config) -> Transformer:
    size = hidden_size(c)
    projected = c.count("hidden_size", "word_embed_proj_dim", default=size)
    if projected != size:
        raise ModelError(
            f"word_embed_proj_dim={projected} in the config differs from its hidden size "
            f"{size}: such embeddings cannot be estimated."
        )
    bias = c.flag("enable_bias", default=True)
    return decoder(
        c,
        ffn=("ffn_dim",),
        tied=True,
        num_positions=c.count("num_positions", "max_position_embeddings") + 2,  # 2 for padding
        gated_mlp=False,
        qkv_bias=bias,
        linear_bias=bias,
        norm_bias=True,
    )


def _bloom(c: Config) -> Transformer:
    return decoder(
        c,
        ffn=(),
        ffn_default=4 * hidden_size(c),
        tied=True,
        alibi=True,
        gated_mlp=False,
        qkv_bias=True,
        linear_bias=True,
        norm_bias=True,
    )


def _falcon(c: Config) -> Transformer:
    """Two designs: one norm and one KV head (7B), or two norms and grouped heads (40B, 180B)."""
    grouped = c.flag("new_decoder_architecture", default=False)
    heads = c.count("num_attention_heads", *HEADS)
    if grouped:
        kv_heads = c.count("num_kv_heads", "num_kv_heads", "n_head_kv", default=heads)
    else:
        kv_heads = 1 if c.flag("multi_query", default=True) else heads
    norms = 1 if c.flag("parallel_attn", default=True) and not grouped else 2
    bias = c.flag("bias", default=False)
    return decoder(
        c,
        ffn=("ffn_hidden_size",),
        ffn_default=4 * hidden_size(c),
        kv_heads=kv_heads,
        tied=True,
        norms_per_layer=c.count("num_layers", "num_ln_in_parallel_attn", default=norms),
        alibi=c.flag("alibi", default=False),
        gated_mlp=False,
        qkv_bias=bias,
        linear_bias=bias,
        norm_bias=True,
    )


def _phi(c: Config) -> Transformer:
    return decoder(
        c,
        gated_mlp=False,
        qkv_bias=True,
        linear_bias=True,
        norm_bias=True,
        norms_per_layer=1,
        qk_norm=c.flag("qk_layernorm", default=False),
    )


def _nemotron(c: Config) -> Transformer:
    """Nemotron-4: LayerNorm with bias, squared ReLU, no other bias."""
    return decoder(
        c,
        gated_mlp=False,
        norm_bias=True,
        qkv_bias=c.flag("attention_bias", default=False),
        linear_bias=c.flag("mlp_bias", default=False),
    )


UNGATED: dict[str, Callable[[Config], Transformer]] = {
    "gpt2": _gpt2,
    "gpt_neox": _gpt_neox,
    "opt": _opt,
    "bloom": _bloom,
    "falcon": _falcon,
    "phi": _phi,
    "nemotron": _nemotron,
}

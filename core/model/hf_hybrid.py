"""Families of Hugging Face configurations with state-space layers.

[HF] huggingface/transformers 5.23.0 (2026-11-13), as in core/model/hf_families.py, which also lists
     what is left out.

Models whose layers share their weights (zamba) cannot be written as a `Transformer`. For a model
without attention (mamba), the heads of its state space are given as attention heads, which no layer
has.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypedDict, Unpack

from core.errors import ModelError
from core.model.hf_moe import shared_experts
from core.model.hf_reader import (
    FULL_ATTENTION,
    LINEAR_ATTENTION,
    Config,
    decoder,
    hidden_size,
    num_layers,
    printed,
    required_kv_heads,
)
from core.model.transformer import Transformer

NOMINAL_HEADS = 64
SHARED_WEIGHTS = ("zamba", "zamba2")
# Letters of hybrid_override_pattern, and their names in layers_block_type.
BLOCKS = {"M": ("mamba", LINEAR_ATTENTION), "*": ("attention", FULL_ATTENTION), "-": ("mlp",),
          "E": ("moe",)}  # fmt: skip


class _Alone(TypedDict, total=False):
    """Dimensions of a state space of either kind."""

    ssm_inner_size: int
    ssm_state_size: int
    ssm_num_heads: int
    ssm_num_groups: int
    ssm_conv_size: int
    ssm_dt_rank: int


class _StateSpace(TypedDict):
    num_ssm_layers: int
    ssm_inner_size: int
    ssm_state_size: int
    ssm_num_heads: int
    ssm_num_groups: int
    ssm_conv_size: int


def _pattern(c: Config) -> str:
    """The pattern of layers, one letter per layer."""
    pattern = c.values.get("hybrid_override_pattern")
    if pattern is None:
        names = c.values.get("layers_block_type")
        if not isinstance(names, list):
            raise ModelError(f"The {c.model_type} config lacks hybrid_override_pattern.")
        letters = {name: letter for letter, of in BLOCKS.items() for name in of}
        allowed = tuple(letters)
        pattern = "".join(letters[k] for k in c.kinds("layers_block_type", len(names), allowed)
                          or [])  # fmt: skip
    if not isinstance(pattern, str) or not pattern or set(pattern) - set(BLOCKS):
        raise ModelError(
            f"hybrid_override_pattern={printed(pattern)} in the config is not a text of the "
            f"letters {', '.join(BLOCKS)}."
        )
    if c.has("num_hidden_layers") and num_layers(c) != len(pattern):
        raise ModelError(
            f"num_hidden_layers={num_layers(c)} and the {len(pattern)} letters of "
            "hybrid_override_pattern in the config contradict each other."
        )
    return pattern


def _nemotron_h(c: Config) -> Transformer:
    """Each layer is a state space, an attention, an MLP or experts, behind one norm."""
    pattern = _pattern(c)
    heads = c.count("ssm_num_heads", "mamba_num_heads")
    sparse = pattern.count("E")
    if c.has("moe_latent_size"):
        raise ModelError("moe_latent_size in a nemotron_h config cannot be estimated.")
    with_layers = Config(c.model_type, {**c.values, "num_hidden_layers": len(pattern)})
    ffn_default = c.count("ffn_hidden_size", "moe_intermediate_size") if sparse else None
    return decoder(
        with_layers,
        kv_heads=required_kv_heads(c),
        head_dim=c.count("head_dim", "head_dim", "attention_head_dim", default=128),
        ffn_default=ffn_default,
        gated_mlp=False,
        norms_per_layer=1,
        qkv_bias=c.flag("attention_bias", default=False),
        linear_bias=c.flag("mlp_bias", default=False),
        num_mlp_layers=pattern.count("-") + sparse,
        num_ssm_layers=pattern.count("M"),
        ssm_inner_size=heads * c.count("head_dim", "mamba_head_dim"),
        ssm_state_size=c.count("ssm_state_size", "ssm_state_size"),
        ssm_num_heads=heads,
        ssm_num_groups=c.count("ssm_num_groups", "n_groups", "mamba_n_groups"),
        ssm_conv_size=c.count("ssm_conv_size", "conv_kernel", "mamba_d_conv", default=4),
        num_experts=c.count("num_experts", "n_routed_experts") if sparse else 0,
        experts_per_token=c.count("experts_per_token", "num_experts_per_tok") if sparse else 0,
        num_shared_experts=_nemotron_shared(c) if sparse else 0,
        moe_ffn_hidden_size=ffn_default or 0,
        num_dense_layers=pattern.count("-") if sparse else 0,
    )


def _nemotron_shared(c: Config) -> int:
    number = c.count("num_shared_experts", "n_shared_experts", default=1, least=0)
    key = "moe_shared_expert_intermediate_size"
    return number * shared_experts(c, key, "moe_intermediate_size")


def _mamba2(c: Config, layers: int) -> _StateSpace:
    """The keys of bamba and granitemoehybrid, which give the inner size in two ways."""
    inner = c.count("ssm_inner_size", "mamba_expand", default=2) * hidden_size(c)
    heads = c.count("ssm_num_heads", "mamba_n_heads")
    if c.values.get("mamba_d_head", "auto") != "auto":
        size = c.count("head_dim", "mamba_d_head", default=0)
        if size and size * heads != inner:
            raise ModelError(
                f"mamba_n_heads={heads} times mamba_d_head={size} and mamba_expand times "
                f"hidden_size, {inner}, in the config contradict each other."
            )
    return {
        "num_ssm_layers": layers,
        "ssm_inner_size": inner,
        "ssm_state_size": c.count("ssm_state_size", "mamba_d_state"),
        "ssm_num_heads": heads,
        "ssm_num_groups": c.count("ssm_num_groups", "mamba_n_groups", default=1),
        "ssm_conv_size": c.count("ssm_conv_size", "mamba_d_conv", default=4),
    }


def _bamba(c: Config) -> Transformer:
    """Attention in the layers of attn_layer_indices, Mamba-2 in the others."""
    layers = num_layers(c)
    attention = (c.layers("attn_layer_indices") or frozenset()) & set(range(layers))
    return decoder(
        c,
        qkv_bias=c.flag("attention_bias", default=False),
        linear_bias=c.flag("mlp_bias", default=False),
        **_mamba2(c, layers - len(attention)),
    )


def _granite(c: Config) -> Transformer:
    """Granite 4: Mamba-2 or attention, then experts with a shared one, or only the shared one."""
    layers = num_layers(c)
    kinds = c.kinds("layer_types", layers, (*BLOCKS["M"], *BLOCKS["*"]))
    if kinds is None:
        raise ModelError("The granitemoehybrid config lacks layer_types.")
    experts = c.count("num_experts", "num_local_experts", default=0, least=0)
    state = _mamba2(c, sum(k in BLOCKS["M"] for k in kinds))
    bias = c.flag("attention_bias", default=False)
    if not experts:
        return decoder(c, ffn=("shared_intermediate_size",), qkv_bias=bias, **state)
    return decoder(
        c,
        qkv_bias=bias,
        **state,
        num_experts=experts,
        experts_per_token=c.count("experts_per_token", "num_experts_per_tok"),
        num_shared_experts=shared_experts(c, "shared_intermediate_size", "intermediate_size"),
        moe_ffn_hidden_size=c.count("moe_ffn_hidden_size", "intermediate_size"),
    )


def _jamba(c: Config) -> Transformer:
    """Mamba-1 in all but every eighth layer, experts in every second."""
    layers = num_layers(c)
    size = hidden_size(c)
    attention = _every(c, "attn_layer", layers, period=8, offset=4)
    experts = c.count("num_experts", "num_experts", "num_local_experts", default=16)
    sparse = _every(c, "expert_layer", layers, period=2, offset=1) if experts > 1 else 0
    automatic = c.values.get("mamba_dt_rank", "auto") == "auto"
    ffn = c.count("ffn_hidden_size", "intermediate_size")
    return decoder(
        c,
        num_ssm_layers=layers - attention,
        ssm_inner_size=c.count("ssm_inner_size", "mamba_expand", default=2) * size,
        ssm_state_size=c.count("ssm_state_size", "mamba_d_state", default=16),
        ssm_conv_size=c.count("ssm_conv_size", "mamba_d_conv", default=4),
        ssm_dt_rank=math.ceil(size / 16) if automatic else c.count("ssm_dt_rank", "mamba_dt_rank"),
        num_experts=experts if sparse else 0,
        experts_per_token=c.count("experts_per_token", "num_experts_per_tok", default=2)
        if sparse
        else 0,
        moe_ffn_hidden_size=ffn if sparse else 0,
        num_dense_layers=layers - sparse if sparse else 0,
    )


def _falcon_h1(c: Config) -> Transformer:
    """Attention and Mamba-2 in parallel in every layer, then an MLP."""
    if not c.flag("mamba_use_mlp", default=True):
        raise ModelError("mamba_use_mlp=false in a falcon_h1 config cannot be estimated.")
    expanded = c.count("ssm_inner_size", "mamba_expand", default=2) * hidden_size(c)
    inner = c.count("ssm_inner_size", "mamba_d_ssm", default=expanded)
    heads = c.count("ssm_num_heads", "mamba_n_heads")
    if c.values.get("mamba_d_head", "auto") != "auto":
        _same_width(c, heads, c.count("head_dim", "mamba_d_head"), inner, "mamba_d_ssm")
    return decoder(
        c,
        kv_heads=required_kv_heads(c),
        qkv_bias=c.flag("attention_bias", default=False),
        linear_bias=c.flag("mlp_bias", default=False),
        num_ssm_layers=num_layers(c),
        ssm_inner_size=inner,
        ssm_state_size=c.count("ssm_state_size", "mamba_d_state"),
        ssm_num_heads=heads,
        ssm_num_groups=c.count("ssm_num_groups", "mamba_n_groups", default=1),
        ssm_conv_size=c.count("ssm_conv_size", "mamba_d_conv", default=4),
        ssm_beside_attention=True,
    )


def _same_width(c: Config, heads: int, size: int, inner: int, what: str) -> None:
    if heads * size != inner:
        raise ModelError(
            f"{heads} heads of {size} in the {c.model_type} config contradict {what}, {inner}: "
            "heads times their dimension must be the inner size."
        )


def _mamba(c: Config) -> Transformer:
    """Mamba-1 in every layer, and nothing else."""
    size = hidden_size(c)
    expanded = c.count("ssm_inner_size", "expand", default=2) * size
    # The class of falcon_mamba takes intermediate_size where it is given, that of mamba never.
    given = c.model_type == "falcon_mamba"
    inner = c.count("ssm_inner_size", "intermediate_size", default=expanded) if given else expanded
    automatic = c.values.get("time_step_rank", "auto") == "auto"
    rank = math.ceil(size / 16) if automatic else c.count("ssm_dt_rank", "time_step_rank")
    return _alone(
        c,
        heads=min(inner & -inner, NOMINAL_HEADS),
        tied=True,
        ssm_inner_size=inner,
        ssm_state_size=c.count("ssm_state_size", "state_size", default=16),
        ssm_conv_size=c.count("ssm_conv_size", "conv_kernel", default=4),
        ssm_dt_rank=rank,
    )


def _pure_mamba2(c: Config) -> Transformer:
    """Mamba-2 in every layer, and nothing else."""
    inner = c.count("ssm_inner_size", "expand", default=2) * hidden_size(c)
    heads = c.count("ssm_num_heads", "num_heads")
    _same_width(c, heads, c.count("head_dim", "head_dim"), inner, "expand times hidden_size")
    return _alone(
        c,
        heads=heads,
        tied=False,
        ssm_inner_size=inner,
        ssm_state_size=c.count("ssm_state_size", "state_size"),
        ssm_num_heads=heads,
        ssm_num_groups=c.count("ssm_num_groups", "n_groups"),
        ssm_conv_size=c.count("ssm_conv_size", "conv_kernel", default=4),
    )


def _alone(c: Config, *, heads: int, tied: bool, **state_space: Unpack[_Alone]) -> Transformer:
    """Layers of one norm and a state space, without attention. The heads of the state space, of a
    nominal size, are given as attention heads, so that tensor parallelism may divide them."""
    return Transformer(
        num_layers=num_layers(c),
        hidden_size=hidden_size(c),
        ffn_hidden_size=0,
        num_attention_heads=heads,
        num_kv_heads=heads,
        head_dim=NOMINAL_HEADS,
        vocab_size=c.count("vocab_size", "vocab_size"),
        tied_embeddings=c.flag("tie_word_embeddings", default=tied),
        norms_per_layer=1,
        num_ssm_layers=num_layers(c),
        **state_space,
    )


def _every(c: Config, what: str, layers: int, *, period: int, offset: int) -> int:
    """Layers whose index modulo `<what>_period` is `<what>_offset`."""
    period = c.count("num_layers", f"{what}_period", default=period)
    offset = c.count("num_layers", f"{what}_offset", default=offset, least=0)
    if offset >= period:
        raise ModelError(
            f"{what}_offset={offset} and {what}_period={period} in the config contradict each "
            "other: the offset must be smaller."
        )
    return len(range(offset, layers, period))


HYBRID: dict[str, Callable[[Config], Transformer]] = {
    "nemotron_h": _nemotron_h,
    "bamba": _bamba,
    "granitemoehybrid": _granite,
    "jamba": _jamba,
    "falcon_h1": _falcon_h1,
    "mamba": _mamba,
    "falcon_mamba": _mamba,
    "mamba2": _pure_mamba2,
}

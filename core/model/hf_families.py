"""Dense families of Hugging Face configurations: which keys mean which dimensions.

[HF] huggingface/transformers 5.23.0 (2026-11-13), src/transformers/models/<model_type>: the
configuration classes define which keys may be absent and their defaults, the modeling classes which
matrices, biases and norms there are. The parameter count of every family
     was compared with that of the modules these classes build.

Left out, because `Transformer` has no field for it: attention sinks (gpt_oss), the bias of the LM
head (phi), the norm after the embedding (bloom), the gate of the shared experts (qwen2_moe,
qwen3_next), and that query and key norms can span all heads (olmo2, cohere; counted as one head):
each below 1e-4 of the parameters. Layers for multi-token prediction (deepseek_v3, glm4_moe,
qwen3_next) are left out as well: 2% more.
"""

from __future__ import annotations

from collections.abc import Callable

from core.model.hf_reader import (
    KV_HEADS,
    Config,
    Window,
    decoder,
    num_layers,
    required_kv_heads,
    window,
)
from core.model.transformer import Transformer


def _llama(c: Config) -> Transformer:
    return decoder(
        c,
        qkv_bias=c.flag("attention_bias", default=False),
        linear_bias=c.flag("mlp_bias", default=False),
    )


def _mistral(c: Config) -> Transformer:
    """Every layer has the window: 4096 where the key is absent, none where it is null."""
    absent = 0 if "sliding_window" in c.values else 4096
    size = c.count("sliding_window", "sliding_window", default=absent, least=0)
    return decoder(c, kv_heads=required_kv_heads(c), **window(size, num_layers(c)))


def qwen_window(c: Config, *, windowed: Callable[[int, int], int]) -> Window:
    """No window unless use_sliding_window is set; `windowed` counts layers from all and
    max_window_layers."""
    if not c.flag("use_sliding_window", default=False):
        return {}
    layers = num_layers(c)
    edge = c.count("num_window_layers", "max_window_layers", default=28, least=0)
    size = c.count("sliding_window", "sliding_window", default=4096, least=0)
    return window(size, c.windowed_layers(num_layers=layers, default=windowed(layers, edge)))


def _after_edge(layers: int, edge: int) -> int:
    return max(0, layers - edge)


def _qwen2(c: Config) -> Transformer:
    window = qwen_window(c, windowed=_after_edge)
    return decoder(c, kv_heads=required_kv_heads(c), qkv_bias=True, **window)


def _qwen3(c: Config) -> Transformer:
    return decoder(
        c,
        kv_heads=required_kv_heads(c),
        head_dim=128,
        qk_norm=True,
        qkv_bias=c.flag("attention_bias", default=False),
        **qwen_window(c, windowed=_after_edge),
    )


def _gemma(c: Config) -> Transformer:
    bias = c.flag("attention_bias", default=False)
    return decoder(c, kv_heads=required_kv_heads(c), head_dim=256, tied=True, qkv_bias=bias)


def _gemma2(c: Config) -> Transformer:
    """Every other layer, from the first, has the window; norms before and after each block."""
    layers = num_layers(c)
    size = c.count("sliding_window", "sliding_window", least=0)
    windowed = c.windowed_layers(num_layers=layers, default=(layers + 1) // 2)
    return decoder(
        c,
        kv_heads=required_kv_heads(c),
        head_dim=256,
        tied=True,
        norms_per_layer=4,
        qkv_bias=c.flag("attention_bias", default=False),
        **window(size, windowed),
    )


def _gemma3(c: Config) -> Transformer:
    """All but every sixth layer have the window. The files of 4B leave out values that equal the
    defaults: 8 heads, 4 KV heads of 256, and a vocabulary of 262,208."""
    layers = num_layers(c)
    size = c.count("sliding_window", "sliding_window", default=4096, least=0)
    pattern = c.count("num_layers", "sliding_window_pattern", "_sliding_window_pattern", default=6)
    windowed = c.windowed_layers(num_layers=layers, default=layers - layers // pattern)
    return decoder(
        c,
        heads_default=8,
        kv_heads=c.count("num_kv_heads", KV_HEADS, default=4),
        head_dim=256,
        vocab_default=262_208,
        tied=True,
        norms_per_layer=4,
        qk_norm=True,
        qkv_bias=c.flag("attention_bias", default=False),
        **window(size, windowed),
    )


def _phi3(c: Config) -> Transformer:
    size = c.count("sliding_window", "sliding_window", default=0, least=0)
    return decoder(c, **window(size, num_layers(c)))


def _olmo(c: Config) -> Transformer:
    return decoder(c, norms_per_layer=0, qkv_bias=c.flag("attention_bias", default=False))


def _olmo2(c: Config) -> Transformer:
    return decoder(c, qk_norm=True, qkv_bias=c.flag("attention_bias", default=False))


def _cohere(c: Config) -> Transformer:
    """Attention and MLP in parallel, behind one norm without bias."""
    return decoder(
        c,
        tied=True,
        norms_per_layer=1,
        qk_norm=c.flag("use_qk_norm", default=False),
        qkv_bias=c.flag("attention_bias", default=False),
    )


def _cohere2(c: Config) -> Transformer:
    """Cohere 2: like cohere, but all except every fourth layer have the window."""
    layers = num_layers(c)
    pattern = c.count("num_layers", "sliding_window_pattern", default=4)
    windowed = c.windowed_layers(num_layers=layers, default=layers - layers // pattern)
    absent = 0 if "sliding_window" in c.values else 4096
    size = c.count("sliding_window", "sliding_window", default=absent, least=0)
    bias = c.flag("attention_bias", default=False)
    return decoder(c, tied=True, norms_per_layer=1, qkv_bias=bias, **window(size, windowed))


DENSE: dict[str, Callable[[Config], Transformer]] = {
    "llama": _llama,
    "mistral": _mistral,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "phi3": _phi3,
    "olmo": _olmo,
    "olmo2": _olmo2,
    "cohere": _cohere,
    "cohere2": _cohere2,
}

"""A model in one line: its parameters, the active ones, and its kind of attention."""

from __future__ import annotations

from app.document import format as fmt
from core.model.dimensions import is_mla, is_moe, num_attention_layers
from core.model.transformer import Transformer, active_params, total_params
from core.numeric import as_float


def described(model: Transformer) -> str:
    """Parameters, active parameters of a mixture of experts, and the kind of attention.

    >>> from core.model.presets import PRESETS
    >>> described(PRESETS["llama3.1-8b"].transformer)
    '8.03B parameters; grouped-query attention, 8 of 32 heads have keys'
    >>> described(PRESETS["deepseek-v3"].transformer)
    '671B parameters, 37.6B active; multi-head latent attention'
    """
    size = f"{fmt.tokens(as_float(total_params(model)))} parameters"
    if is_moe(model):
        size += f", {fmt.tokens(as_float(active_params(model)))} active"
    return f"{size}; {_attention(model)}"


def _attention(model: Transformer) -> str:
    layers, every = as_float(num_attention_layers(model)), as_float(model.num_layers)
    heads, keys = as_float(model.num_attention_heads), as_float(model.num_kv_heads)
    if not layers:
        return "no attention"
    if is_mla(model):
        kind = "multi-head latent attention"
    elif keys == 1 < heads:
        kind = "multi-query attention"
    elif keys < heads:
        kind = f"grouped-query attention, {fmt.count(keys)} of {fmt.count(heads)} heads have keys"
    else:
        kind = f"multi-head attention, {fmt.count(heads)} heads"
    if window := as_float(model.sliding_window):
        some = as_float(model.num_window_layers)
        kind += f", a window of {fmt.count(window)} tokens in {fmt.count(some)} layers"
    if layers < every:
        kind += f", in {fmt.count(layers)} of {fmt.count(every)} layers"
    return kind

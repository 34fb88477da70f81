"""A smaller model of the same shape, as ablations train it.

Layers and widths shrink by one factor, found so that the parameters come as near to the asked share
as whole numbers allow; heads keep their size, experts their number and the vocabulary its rows. The
numbers are rounded to multiples that parallel layouts can divide. Validity: decoders whose layers
all have attention.
"""

from __future__ import annotations

from dataclasses import replace

from core.errors import ScenarioError
from core.model.transformer import Transformer, total_params
from core.numeric import as_float

WIDTH, LAYERS, HEADS = 128, 4, 4  # a size is a multiple of these
FAR = 1.35  # times the asked parameters, beyond which the smallest model is too large
HALVINGS = 24  # of the range in which the factor lies


def scaled(model: Transformer, *, share: float) -> Transformer:
    """The model with about this share of the parameters."""
    if as_float(model.num_ssm_layers) or as_float(model.num_linear_layers):
        raise ScenarioError(
            "A model with state-space or linear-attention layers cannot be scaled down: give the "
            "stage a model= of its own instead of scale=."
        )
    wanted, low, high = share * as_float(total_params(model)), 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if as_float(total_params(_shrunk(model, middle))) < wanted:
            low = middle
        else:
            high = middle
    found = min(
        (_shrunk(model, low), _shrunk(model, high)),
        key=lambda m: abs(as_float(total_params(m)) - wanted),
    )
    if as_float(total_params(found)) > FAR * wanted:
        raise ScenarioError(
            f"scale={share:g} is too small: with its vocabulary the model keeps "
            f"{as_float(total_params(found)) / as_float(total_params(model)):.1%} of its "
            "parameters; give a larger scale, or a model= of its own."
        )
    return found


def _shrunk(model: Transformer, factor: float) -> Transformer:
    """The model with its layers and widths times this factor, rounded."""

    def sized(value: object, unit: int) -> float:
        size = as_float(value)
        return float(min(max(round(size * factor / unit), 1) * unit, size)) if size else 0.0

    layers = sized(model.num_layers, LAYERS)
    groups = as_float(model.num_kv_heads)
    is_grouped = 1 < groups < as_float(model.num_attention_heads)
    heads = sized(model.num_attention_heads, int(groups) if is_grouped else HEADS)
    return replace(
        model,
        num_layers=layers,
        hidden_size=sized(model.hidden_size, WIDTH),
        ffn_hidden_size=sized(model.ffn_hidden_size, WIDTH),
        moe_ffn_hidden_size=sized(model.moe_ffn_hidden_size, WIDTH),
        num_attention_heads=heads,
        num_kv_heads=min(groups, heads),
        num_dense_layers=min(as_float(model.num_dense_layers), layers - 1),
        num_window_layers=round(
            as_float(model.num_window_layers) * layers / as_float(model.num_layers)
        ),
        q_lora_rank=sized(model.q_lora_rank, WIDTH),
        kv_lora_rank=sized(model.kv_lora_rank, WIDTH),
    )

"""A row of the table of measured models as a `Transformer`, with what had to be assumed.

Columns: model_key, name, layers, hidden, ffn_hidden (of the dense MLP), heads, kv_heads, head_dim,
vocab, tied_embeddings, gated_mlp, n_experts, n_shared_experts, top_k, moe_ffn_hidden,
n_dense_layers, attention (mha, gqa, mqa, mla, hybrid ...), q_lora, kv_lora, qk_nope, qk_rope,
v_head, sliding_window (free text), architecture. `total_params_b` is a check of the table, never an
input.

The table prints neither biases nor norms nor position embeddings: they are those of the row of
`hardware/model_architectures.csv` that `architecture` names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.errors import RunsError, shown, unknown_sentence
from core.model.transformer import Transformer
from hardware.model_architectures import ModelArchitecture, model_architectures

USUAL_HEAD_DIM = 128
# Mamba-2 layers of the Nemotron family; the inner size is that of the row's model where known.
SSM_STATE, SSM_GROUPS, SSM_HEAD_DIM, SSM_CONV = 128, 8, 64, 4

# Column: (field of Transformer, highest value)
DIMENSIONS = {
    "layers": ("num_layers", 2048),
    "hidden": ("hidden_size", 2**20),
    "ffn_hidden": ("ffn_hidden_size", 2**22),
    "heads": ("num_attention_heads", 4096),
    "kv_heads": ("num_kv_heads", 4096),
    "head_dim": ("head_dim", 8192),
    "vocab": ("vocab_size", 2**24),
    "n_experts": ("num_experts", 16_384),
    "n_shared_experts": ("num_shared_experts", 1024),
    "top_k": ("experts_per_token", 1024),
    "moe_ffn_hidden": ("moe_ffn_hidden_size", 2**22),
    "n_dense_layers": ("num_dense_layers", 2048),
    "q_lora": ("q_lora_rank", 2**20),
    "kv_lora": ("kv_lora_rank", 2**20),
    "qk_nope": ("qk_nope_head_dim", 8192),
    "qk_rope": ("qk_rope_head_dim", 8192),
    "v_head": ("v_head_dim", 8192),
}
NEEDED = ("layers", "hidden", "vocab")
GPT3, PLAIN, USUAL_HYBRID = "gpt3", "plain", "nemotron3-nano"  # of model_architectures.csv


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """A measured model; `notes` are sentences on what its table left open or cannot express."""

    transformer: Transformer
    notes: tuple[str, ...]
    is_moe: bool


def read_model(row: Mapping[str, str]) -> ModelFacts:
    """One row of stripped cells, or `RunsError` with the reason."""
    key = row["model_key"]
    notes: list[str] = []
    cell = {name: _dimension(name, row.get(name, "")) for name in DIMENSIONS}
    if blank := [name for name in NEEDED if not cell[name]]:
        raise RunsError(f"{' and '.join(blank)} must be given.")
    attention = row.get("attention", "").lower()
    gated = _flag("gated_mlp", row.get("gated_mlp", ""))
    tied = _flag("tied_embeddings", row.get("tied_embeddings", ""))
    published = _architecture(row.get("architecture", ""), attention, gated, notes)
    if gated is None:
        gated = attention != "mha"
        notes.append(f"gated_mlp is blank: {'gated' if gated else 'ungated'} assumed.")
    if tied is None:
        tied = False
        notes.append("tied_embeddings is blank: an LM head of its own assumed.")
    notes += _infer_heads(cell) + _infer_mlp(cell, gated=gated)
    if cell["top_k"] > cell["n_experts"]:
        raise RunsError(f"top_k {cell['top_k']:.0f} is more than {cell['n_experts']:.0f} experts.")
    cell["n_dense_layers"] = min(cell["n_dense_layers"], cell["layers"])
    window, num_window, window_notes = _window(
        published, row.get("sliding_window", ""), cell["layers"]
    )
    notes += window_notes
    typed: dict[str, Any] = {"norms_per_layer": published.norms_per_layer}
    if "hybrid" in attention or "mamba" in attention:
        typed |= _typed_layers(key, published, cell, notes)
    title = f"{key} {row.get('name', '')}".lower()
    if "mtp" in title and "no mtp" not in title:
        cell["layers"] += 1
        notes.append(
            "The multi-token-prediction layer counts as one more layer; its pass through the "
            "LM head is left out."
        )
    dimensions: dict[str, Any] = {DIMENSIONS[name][0]: cell[name] for name in DIMENSIONS}
    return ModelFacts(
        transformer=Transformer(
            **dimensions,
            tied_embeddings=tied,
            gated_mlp=gated,
            sliding_window=window,
            num_window_layers=num_window,
            linear_bias=published.linear_bias,
            qkv_bias=published.qkv_bias,
            norm_bias=published.norm_bias,
            qk_norm=published.qk_norm,
            alibi=published.alibi,
            num_positions=published.num_positions,
            **typed,
        ),
        notes=tuple(notes),
        is_moe=cell["n_experts"] > 0,
    )


def _architecture(
    name: str, attention: str, gated: bool | None, notes: list[str]
) -> ModelArchitecture:
    """The published architecture that the row names; a blank one is assumed and noted."""
    known = model_architectures()
    if name and name not in known:
        raise RunsError(unknown_sentence("architecture", name, known))
    if not name and attention.startswith("mha") and gated is False:
        name = GPT3
        notes.append("Taken to have the biases and learned positions of GPT-3.")
    elif not name:
        name = PLAIN
        notes.append("architecture is blank: no bias and two norms a layer assumed.")
    return known[name]


def _dimension(name: str, text: str) -> float:
    """A dimension; 0 where blank (the feature is off)."""
    if not text:
        return 0.0
    try:
        value = float(text) if len(text) <= 64 and "_" not in text else -1.0
    except ValueError:
        raise RunsError(f"{name}={shown(text)} is not a number.") from None
    highest = DIMENSIONS[name][1]
    if not (0 <= value <= highest and value.is_integer()):
        raise RunsError(f"{name}={shown(text)} is not a whole number from 0 to {highest:,}.")
    return value


def _flag(name: str, text: str) -> bool | None:
    known = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}
    if text and text.lower() not in known:
        raise RunsError(f"{name}={shown(text)} is not 0 or 1.")
    return known.get(text.lower())


def _infer_heads(cell: dict[str, float]) -> list[str]:
    """Fill in blank heads as most published models have them."""
    notes = []
    if not cell["heads"]:
        cell["heads"] = max(1.0, cell["hidden"] // (cell["head_dim"] or USUAL_HEAD_DIM))
        notes.append(f"heads is blank: {cell['heads']:.0f} assumed (hidden / {USUAL_HEAD_DIM}).")
    if not cell["kv_heads"]:
        cell["kv_heads"] = cell["heads"]
        notes.append("kv_heads is blank: as many as heads assumed.")
    if not cell["head_dim"]:
        cell["head_dim"] = max(1.0, cell["hidden"] // cell["heads"])
        notes.append("head_dim is blank: hidden / heads assumed.")
    if cell["kv_heads"] > cell["heads"]:
        raise RunsError(f"{cell['kv_heads']:.0f} kv_heads are more than {cell['heads']:.0f} heads.")
    if cell["kv_lora"] and not (cell["qk_nope"] and cell["v_head"]):
        raise RunsError("latent attention (kv_lora) needs qk_nope and v_head.")
    return notes


def _infer_mlp(cell: dict[str, float], *, gated: bool) -> list[str]:
    """Fill in a blank MLP width: 4 h, or 8/3 h with a gate, which has equally many parameters."""
    moe = cell["n_experts"] > 0
    if moe and not cell["moe_ffn_hidden"]:
        if not cell["ffn_hidden"]:
            raise RunsError("a model with experts needs moe_ffn_hidden.")
        cell["moe_ffn_hidden"] = cell["ffn_hidden"]
        return ["moe_ffn_hidden is blank: that of the dense MLP assumed."]
    if moe and not cell["top_k"]:
        raise RunsError("a model with experts needs top_k.")
    if cell["ffn_hidden"] or (moe and not cell["n_dense_layers"]):
        return []
    cell["ffn_hidden"] = float(round(cell["hidden"] * (8 / 3 if gated else 4)))
    return [f"ffn_hidden is blank: {cell['ffn_hidden']:.0f} assumed."]


def _window(
    published: ModelArchitecture, text: str, layers: float
) -> tuple[float, float, list[str]]:
    """Window in tokens and the number of windowed layers, from text such as
    '4096 alternate layers', '1024, 5:1' or '128'."""
    if not text or text.lower() in ("none", "no", "0", "0.0"):
        return 0.0, 0.0, []
    number = re.match(r"\D{0,40}(\d{1,8})(?:\.0)?(?!\d)", text)
    if number is None:
        raise RunsError(f"sliding_window={shown(text)} does not start with a number of tokens.")
    window, rest = float(number[1]), text[number.end() :].lower()
    pattern = re.search(r"(\d{1,3})\s*:\s*(\d{1,3})", rest)
    notes = []
    if pattern and int(pattern[1]) + int(pattern[2]) > 0:
        local, full = int(pattern[1]), int(pattern[2])
    elif "altern" in rest or "every other" in rest:
        local, full = 1, 1
    elif published.pattern:
        local, full = published.pattern
        notes.append(
            f"Window pattern not in the table: {local} local to {full} full, as published."
        )
    else:
        local, full = 1, 0
        notes.append("No window pattern is given: every layer is taken to be windowed.")
    return window, float(round(layers * local / (local + full))), notes


def _typed_layers(
    key: str, published: ModelArchitecture, cell: dict[str, float], notes: list[str]
) -> dict[str, float]:
    """State-space, attention and MLP layers of a hybrid, whose layers are one of them each.

    Where its pattern is not known, the shares of Nemotron-3-Nano and an inner size of twice the
    hidden size are assumed.
    """
    hybrid = published.hybrid or model_architectures()[USUAL_HYBRID].hybrid
    if hybrid is None:
        raise RunsError(f"{USUAL_HYBRID} has no pattern of layers in model_architectures.csv.")
    ssm, mlp, layers, inner = hybrid
    if published.hybrid is None:
        ssm, mlp = round(cell["layers"] * ssm / layers), round(cell["layers"] * mlp / layers)
        inner = 2 * int(cell["hidden"])
        notes.append(
            f"A hybrid whose pattern is not in the table: {ssm} state-space and {mlp} MLP layers "
            f"of {cell['layers']:.0f} assumed, as in Nemotron-3-Nano: a rough estimate."
        )
    elif layers != cell["layers"]:
        raise RunsError(f"layers={cell['layers']:.0f}, but {key} is known with {layers}.")
    return {
        "norms_per_layer": 1.0,
        "num_mlp_layers": float(mlp),
        "num_ssm_layers": float(ssm),
        "ssm_inner_size": float(inner),
        "ssm_state_size": float(SSM_STATE),
        "ssm_num_heads": float(inner // SSM_HEAD_DIM),
        "ssm_num_groups": float(SSM_GROUPS),
        "ssm_conv_size": float(SSM_CONV),
    }

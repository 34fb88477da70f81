"""One row of a table of measured models as a `Transformer`, and what had to be assumed for it.

Columns: model_key, name, layers, hidden, ffn_hidden (of the dense MLP), heads, kv_heads, head_dim,
vocab, tied_embeddings, gated_mlp, n_experts, n_shared_experts, top_k, moe_ffn_hidden,
n_dense_layers, attention (mha, gqa, mqa, mla, hybrid ...), q_lora, kv_lora, qk_nope, qk_rope,
v_head, sliding_window (free text). `total_params_b` is a check of the table, never an input.

The table prints neither biases nor norms nor position embeddings: `FAMILIES` supplies them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.errors import RunsError, shown
from core.model.transformer import Transformer

USUAL_HEAD_DIM = 128
GPT_POSITIONS = 2048  # rows of the position table of GPT-3 and its reproductions
# Mamba-2 layers of the Nemotron family; the inner size is that of the row's model where known.
SSM_STATE, SSM_GROUPS, SSM_HEAD_DIM, SSM_CONV = 128, 8, 64, 4
# Start of a model_key -> (state-space, MLP or expert, all) layers and the state-space inner size,
# NVIDIA-NeMo/Megatron-Bridge@160ccccbb nemotron_h_provider.py.
HYBRIDS = {"nemotron3-nano": (23, 23, 52, 4096), "nemotron-h-8b": (24, 24, 52, 8192)}

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

# Start of a model_key -> what its published architecture adds. The longest match counts.
_GPT3 = {
    "linear_bias": True,
    "qkv_bias": True,
    "norm_bias": True,
    "num_positions": float(GPT_POSITIONS),
}
FAMILIES: dict[str, dict[str, Any]] = {
    "gpt3": _GPT3,
    "bs-": _GPT3,
    "megatron": _GPT3,
    "mcore08-gpt": {"linear_bias": True, "qkv_bias": True, "norm_bias": True},
    "mpt": {"num_positions": float(GPT_POSITIONS)},  # without any bias
    "phi-2": {"linear_bias": True, "qkv_bias": True, "norm_bias": True, "norms_per_layer": 1.0},
    "stablelm": {"linear_bias": True, "qkv_bias": True, "norm_bias": True},
    "falcon": {"norm_bias": True, "norms_per_layer": 1.0},
    "nemotron3-8b": {"norm_bias": True},
    "nemotron3-22b": {"norm_bias": True},
    "nemotron4": {"norm_bias": True},
    "internlm": {"qkv_bias": True},
    "qwen2": {"qkv_bias": True},
    "qwen3": {"qk_norm": True},
    "gpt-oss": {"qkv_bias": True},
    "gemma2": {"norms_per_layer": 4.0},
    "gemma3": {"norms_per_layer": 4.0, "qk_norm": True},
}
# A pattern that the table leaves out: (windowed, full) layers in a row.
PATTERNS = {"gemma3": (5, 1), "gemma2": (1, 1), "gpt-oss": (1, 1)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """A measured model; `notes` says in sentences what its table left open or cannot express."""

    transformer: Transformer
    notes: tuple[str, ...]
    is_moe: bool


def read_model(row: Mapping[str, str]) -> ModelFacts:
    """One row of stripped cells, or `RunsError` with the reason."""
    key, notes = row["model_key"], []
    cell = {name: _dimension(name, row.get(name, "")) for name in DIMENSIONS}
    if blank := [name for name in NEEDED if not cell[name]]:
        raise RunsError(f"{' and '.join(blank)} must be given.")
    attention = row.get("attention", "").lower()
    gated = _flag("gated_mlp", row.get("gated_mlp", ""))
    tied = _flag("tied_embeddings", row.get("tied_embeddings", ""))
    family = _longest(FAMILIES, key)
    if family is None and attention.startswith("mha") and gated is False:
        family = "gpt3"
        notes.append("Taken to have the biases and learned positions of GPT-3.")
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
    window, num_window, window_notes = _window(key, row.get("sliding_window", ""), cell["layers"])
    notes += window_notes
    typed: dict[str, Any] = {}
    if "hybrid" in attention or "mamba" in attention:
        typed = _typed_layers(key, cell, notes)
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
            **typed,
            **(FAMILIES[family] if family else {}),
        ),
        notes=tuple(notes),
        is_moe=cell["n_experts"] > 0,
    )


def _longest(names: Mapping[str, object], key: str) -> str | None:
    starts = [name for name in names if key.lower().startswith(name)]
    return max(starts, key=len) if starts else None


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
    """Fill blank heads as most published models have them."""
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
    """Fill a blank MLP width: 4 h, or 8/3 h with a gate, so that the parameters are the same."""
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


def _window(key: str, text: str, layers: float) -> tuple[float, float, list[str]]:
    """Window in tokens and the number of windowed layers, from text such as
    '4096 alternate layers', '1024, 5:1' or '128'."""
    if not text or text.lower() in ("none", "no", "0", "0.0"):
        return 0.0, 0.0, []
    number = re.match(r"\D{0,40}(\d{1,8})(?:\.0)?(?!\d)", text)
    if number is None:
        raise RunsError(f"sliding_window={shown(text)} does not start with a number of tokens.")
    window, rest = float(number[1]), text[number.end() :].lower()
    pattern = re.search(r"(\d{1,3})\s*:\s*(\d{1,3})", rest)
    known = _longest(PATTERNS, key)
    notes = []
    if pattern and int(pattern[1]) + int(pattern[2]) > 0:
        local, full = int(pattern[1]), int(pattern[2])
    elif "altern" in rest or "every other" in rest:
        local, full = 1, 1
    elif known:
        local, full = PATTERNS[known]
        notes.append(
            f"Window pattern not in the table: {local} local to {full} full, as published."
        )
    else:
        local, full = 1, 0
        notes.append("No window pattern is given: every layer is taken to be windowed.")
    return window, float(round(layers * local / (local + full))), notes


def _typed_layers(key: str, cell: dict[str, float], notes: list[str]) -> dict[str, float]:
    """State-space, attention and MLP layers of a hybrid, whose layers are one of them each.

    Where its pattern is not known, the shares of Nemotron-3-Nano and an inner size of twice the
    hidden size are assumed.
    """
    known = _longest(HYBRIDS, key)
    ssm, mlp, layers, inner = HYBRIDS[known or "nemotron3-nano"]
    if known is None:
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

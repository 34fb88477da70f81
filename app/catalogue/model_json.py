"""A model as JSON: parameters by part, FLOPs per token, dimensions, source.

`runcast models --json`; the keys are documented in docs/plan-json.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TypedDict

import numpy as np

from app.scenario.model import NamedModel, model_of
from core.model import transformer as model_transformer
from core.model.presets import PRESETS
from core.model.transformer import Transformer
from core.numeric import Bools, Numeric
from core.scenario import Scenario

SCHEMA_VERSION = 1


class ModelFacts(TypedDict):
    """One model at one sequence length."""

    schema_version: int
    id: str
    label: str
    source: str
    total_params: int
    active_params: int
    flops_per_token: float
    seq_len: int
    max_seq_len: int | None
    params: dict[str, int]
    dims: dict[str, int | float | bool]


class Presets(TypedDict):
    """Every shipped model."""

    schema_version: int
    seq_len: int
    models: list[ModelFacts]


def model_json(model: NamedModel, *, seq_len: int) -> ModelFacts:
    """Parameters and training FLOPs per token (causal attention once, LM head included)."""
    dims = model.transformer
    flops = model_transformer.train_flops_per_token(dims, float(seq_len))
    return {
        "schema_version": SCHEMA_VERSION,
        "id": model.id,
        "label": model.label,
        "source": model.source,
        "total_params": _whole(model_transformer.total_params(dims)),
        "active_params": _whole(model_transformer.active_params(dims)),
        "flops_per_token": float(flops),
        "seq_len": seq_len,
        "max_seq_len": model.max_seq_len,
        "params": {name: _whole(n) for name, n in _params(dims).items()},
        "dims": {f.name: _dimension(getattr(dims, f.name)) for f in fields(Transformer)},
    }


def presets_json(*, seq_len: int) -> Presets:
    """All presets, in the order of their table."""
    models = [model_of(Scenario(model=name)) for name in PRESETS]
    return {
        "schema_version": SCHEMA_VERSION,
        "seq_len": seq_len,
        "models": [model_json(m, seq_len=seq_len) for m in models],
    }


def _params(dims: Transformer) -> Mapping[str, Numeric]:
    """Parameters by part; the parts add up to total_params."""
    return {
        "layers": model_transformer.layer_params(dims),
        "experts": model_transformer.routed_expert_params(dims),
        "embeddings": model_transformer.embedding_params(dims),
        "head": model_transformer.head_params(dims),
    }


def _whole(x: Numeric) -> int:
    return round(float(x))


def _dimension(x: Numeric | Bools) -> int | float | bool:
    """A dimension as given: a flag, a whole number or (rarely) a fraction."""
    value = np.asarray(x).item()
    if isinstance(value, bool):
        return value
    return int(value) if float(value).is_integer() else float(value)

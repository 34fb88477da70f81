"""Read a parsed Hugging Face config.json as a `Transformer`.

Keys that the published files of a family always have are required; an absent key means the default
of the family's class (core/model/hf_families.py, hf_moe.py, hf_hybrid.py, hf_linear.py, hf_gpt.py).
Nothing is imported or executed: `auto_map`, `trust_remote_code`, `architectures` and all other keys
are ignored. Of a model with a vision tower (`text_config`) only the language part is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields

from core.errors import ModelError, unknown_sentence
from core.model.hf_families import DENSE
from core.model.hf_gpt import UNGATED
from core.model.hf_hybrid import HYBRID, SHARED_WEIGHTS
from core.model.hf_linear import LINEAR
from core.model.hf_moe import EXPERTS
from core.model.hf_reader import MAXIMUM, Config, printed
from core.model.transformer import Transformer, num_attention_layers
from core.numeric import as_float

_SSM = {f.name for f in fields(Transformer) if f.name.startswith("ssm_")}
_LINEAR = {f.name for f in fields(Transformer) if f.name.startswith("linear_")} - {"linear_bias"}
FAMILIES = {**DENSE, **EXPERTS, **HYBRID, **LINEAR, **UNGATED}
# The language part of these has one type, which their text_config may leave out.
LANGUAGE_OF = {"gemma3": "gemma3_text", "llama4": "llama4_text", "mistral3": "mistral",
               "kimi_k25": "deepseek_v3"}  # fmt: skip


def from_config(config: Mapping[str, object]) -> Transformer:
    """Read the dimensions from a parsed config.json.

    >>> from core.model.transformer import total_params
    >>> gpt2 = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12,
    ...     "n_positions": 1024, "vocab_size": 50257}
    >>> int(total_params(from_config(gpt2)))
    124439808
    """
    values = _language_part(config)
    model_type = values.get("model_type")
    if not isinstance(model_type, str):
        given = "lacks model_type" if model_type is None else "has a model_type that is not text"
        raise ModelError(f"The config {given}; these are read: {', '.join(sorted(FAMILIES))}.")
    family = FAMILIES.get(model_type)
    if model_type in SHARED_WEIGHTS:
        raise ModelError(
            f"A {model_type} model cannot be estimated: its layers share the weights of a few "
            "attention blocks, so that its parameters do not say its work."
        )
    if family is None:
        raise ModelError(unknown_sentence("model_type", model_type, FAMILIES))
    model = family(Config(model_type, values))
    for field, most in MAXIMUM.items():  # of derived ones; given ones were checked
        if getattr(model, field) > most:
            raise ModelError(
                f"The {model_type} config makes {field} {getattr(model, field):,}; at most "
                f"{most:,} can be estimated."
            )
    for clause in contradictions(model):
        raise ModelError(f"The {model_type} config cannot be a model: {clause}.")
    return model


def _language_part(config: Mapping[str, object]) -> Mapping[str, object]:
    """The text model of a multi-modal config, which inherits only the tying of embeddings."""
    inner = config.get("text_config")
    if not isinstance(inner, Mapping):
        return config
    for key in ("tie_word_embeddings", "num_hidden_layers", "hidden_size", "num_attention_heads"):
        given, of_text = config.get(key), inner.get(key)
        if given is not None and of_text is not None and given != of_text:
            raise ModelError(
                f"{key}={printed(given)} in the config and {key}={printed(of_text)} in its "
                "text_config contradict each other."
            )
    outer = {k: config[k] for k in ("model_type", "tie_word_embeddings") if k in config}
    model_type = outer.get("model_type")
    if isinstance(model_type, str) and model_type in LANGUAGE_OF:
        outer["model_type"] = LANGUAGE_OF[model_type]
    return {**outer, **inner}


def contradictions(model: Transformer) -> Iterator[str]:
    """Contradictions in the dimensions, as clauses; none for a model that can exist."""
    m = model
    if m.num_attention_heads % m.num_kv_heads:
        yield (
            f"{m.num_kv_heads} KV heads do not divide {m.num_attention_heads} attention heads "
            f"(num_kv_heads={m.num_kv_heads}, num_attention_heads={m.num_attention_heads})"
        )
    if (m.sliding_window > 0) != (m.num_window_layers > 0):
        yield "sliding_window and num_window_layers need each other"
    yield from _layer_contradictions(m)
    if m.num_experts > 0:
        yield from _expert_contradictions(m)
    elif given := _positive(m, "experts_per_token", "num_shared_experts", "moe_ffn_hidden_size",
                            "num_dense_layers"):  # fmt: skip
        yield f"{', '.join(given)} without num_experts"
    of_latent = ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    if m.kv_lora_rank > 0:
        if lacking := set(of_latent) - set(_positive(m, *of_latent)):
            yield f"kv_lora_rank (latent attention) without {', '.join(sorted(lacking))}"
    elif given := _positive(m, "q_lora_rank", *of_latent):
        yield f"{', '.join(given)} without kv_lora_rank"


def _layer_contradictions(m: Transformer) -> Iterator[str]:
    """Contradictions in the types of the layers."""
    other = m.num_mlp_layers + m.num_ssm_layers + m.num_linear_layers
    if other > m.num_layers:
        yield (
            f"num_mlp_layers={m.num_mlp_layers:g}, num_ssm_layers={m.num_ssm_layers:g} and "
            f"num_linear_layers={m.num_linear_layers:g} are more than "
            f"num_layers={m.num_layers:g}"
        )
    elif m.num_window_layers > (attention := as_float(num_attention_layers(m))):
        yield (
            f"num_window_layers={m.num_window_layers:g}: {m.num_window_layers:g} windowed layers "
            f"are more than its {attention:g} layers with attention"
        )
    optional = {"linear_gate_rank", "ssm_dt_rank", "ssm_beside_attention"}
    if m.ssm_dt_rank > 0:
        optional |= {"ssm_num_heads", "ssm_num_groups"}  # of Mamba-2 only
    for count, of_type in (("num_ssm_layers", _SSM), ("num_linear_layers", _LINEAR)):
        given = set(_positive(m, *of_type))
        if getattr(m, count) == 0 and given:
            yield f"{', '.join(sorted(given))} without {count}"
        elif getattr(m, count) > 0 and (lacking := of_type - optional - given):
            yield f"{count} without {', '.join(sorted(lacking))}"
    for heads, groups in (("ssm_num_heads", "ssm_num_groups"),
                          ("linear_num_value_heads", "linear_num_key_heads")):  # fmt: skip
        n, of = getattr(m, heads), getattr(m, groups)
        if of > 0 and n % of:
            yield f"{groups}={of:g} does not divide {heads}={n:g}"


def _expert_contradictions(m: Transformer) -> Iterator[str]:
    if not 0 < m.experts_per_token <= m.num_experts:
        yield (
            f"it routes to {m.experts_per_token:g} of {m.num_experts:g} experts "
            f"(experts_per_token={m.experts_per_token:g}, num_experts={m.num_experts:g})"
        )
    if m.moe_ffn_hidden_size <= 0:
        yield "its experts have no moe_ffn_hidden_size"
    if m.num_dense_layers >= (layers := m.num_mlp_layers or m.num_layers):
        yield (
            f"{m.num_dense_layers} of {layers} layers are dense, so none has experts "
            f"(num_dense_layers={m.num_dense_layers:g}, num_experts={m.num_experts:g})"
        )


def _positive(model: Transformer, *fields: str) -> list[str]:
    return [f for f in fields if getattr(model, f) > 0]

"""Strict reader of the keys of a config.json from outside.

Missing, mistyped and unbelievable values become one sentence each. Values from outside are never
printed whole: a number may have a million digits and a list may be nested.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict, Unpack

from core.errors import ModelError, nearest, shown
from core.model.transformer import Transformer

# The largest value that is accepted: never more than core/scenario/__init__.py allows in a link.
MAXIMUM = {
    "num_layers": 2048,
    "hidden_size": 1_048_576,
    "ffn_hidden_size": 1_048_576,
    "num_attention_heads": 4096,
    "num_kv_heads": 4096,
    "head_dim": 8192,
    "vocab_size": 16_777_216,
    "num_positions": 16_777_216,
    "sliding_window": 16_777_216,
    "num_window_layers": 2048,
    "num_experts": 16_384,
    "experts_per_token": 1024,
    "num_shared_experts": 1024,
    "moe_ffn_hidden_size": 1_048_576,
    "num_dense_layers": 2048,
    "q_lora_rank": 1_048_576,
    "kv_lora_rank": 1_048_576,
    "qk_nope_head_dim": 8192,
    "qk_rope_head_dim": 8192,
    "v_head_dim": 8192,
    "num_mlp_layers": 2048,
    "num_ssm_layers": 2048,
    "ssm_inner_size": 1_048_576,
    "ssm_state_size": 16_384,
    "ssm_num_heads": 16_384,
    "ssm_num_groups": 1024,
    "ssm_conv_size": 64,
    "ssm_dt_rank": 16_384,
    "num_linear_layers": 2048,
    "linear_num_key_heads": 4096,
    "linear_num_value_heads": 4096,
    "linear_key_head_dim": 8192,
    "linear_value_head_dim": 8192,
    "linear_conv_size": 64,
    "linear_gate_rank": 16_384,
}
SEARCHED_KEYS = 500  # a config with more keys than this gets no suggestion
HEADS = ("num_attention_heads", "n_head")
KV_HEADS = "num_key_value_heads"
FULL_ATTENTION = "full_attention"
LINEAR_ATTENTION = "linear_attention"
WINDOWED_ATTENTION = ("sliding_attention", "chunked_attention")


@dataclass(frozen=True, slots=True)
class Config:
    """The keys of one model type."""

    model_type: str
    values: Mapping[str, object]

    def has(self, key: str) -> bool:
        """Whether the key is there and not null."""
        return self.values.get(key) is not None

    def count(self, field: str, *keys: str, default: int | None = None, least: int = 1) -> int:
        """The value of the one of these keys that is not null: a whole number that `field` may
        hold."""
        given = {k: self._whole(k, least, MAXIMUM[field]) for k in keys if self.has(k)}
        if len(set(given.values())) > 1:
            both = " and ".join(f"{k}={v}" for k, v in given.items())
            raise ModelError(f"{both} in the config contradict each other.")
        if given:
            return next(iter(given.values()))
        if default is not None:
            return default
        few = [k for k in list(self.values)[:SEARCHED_KEYS] if self.has(k)]
        guess = nearest(keys[0], [k for k in few if len(k) <= 80 and k.isprintable()])
        hint = f" Its nearest key is {guess!r}." if guess else ""
        raise ModelError(f"The {self.model_type} config lacks {' or '.join(keys)}.{hint}")

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false; the default if absent or null."""
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise ModelError(f"{key}={printed(value)} in the config is not true or false.")
        return value

    def layers(self, key: str) -> frozenset[int] | None:
        """A list of layer indices; None where the key is absent."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or any(type(i) is not int for i in value):
            raise ModelError(f"{key}={printed(value)} in the config is not a list of layers.")
        return frozenset(value)

    def windowed_layers(self, *, num_layers: int, default: int) -> int:
        """Layers with local attention: counted in `layer_types`, else the family's pattern."""
        kinds = self.kinds("layer_types", num_layers, (FULL_ATTENTION, *WINDOWED_ATTENTION))
        if kinds is None:
            return default
        return sum(kind in WINDOWED_ATTENTION for kind in kinds)

    def kinds(self, key: str, num_layers: int, allowed: tuple[str, ...]) -> list[str] | None:
        """A list with the kind of each layer; None where the key is absent."""
        kinds = self.values.get(key)
        if kinds is None:
            return None
        if not isinstance(kinds, list) or len(kinds) != num_layers:
            raise ModelError(
                f"{key}={printed(kinds)} contradicts {num_layers} layers in the config: it is "
                f"not a list of {num_layers} kinds, one for each layer."
            )
        for kind in kinds:
            if kind not in allowed:
                raise ModelError(
                    f"{key} in the config has {printed(kind)}; only {', '.join(allowed[:-1])} "
                    f"and {allowed[-1]} can be estimated."
                )
        return kinds

    def part(self, key: str) -> Config:
        """An object inside the config, as a Config of its own."""
        value = self.values.get(key)
        if value is None:
            raise ModelError(f"The {self.model_type} config lacks {key}.")
        if not isinstance(value, Mapping):
            raise ModelError(f"{key}={printed(value)} in the config is not an object.")
        return Config(self.model_type, value)

    def _whole(self, key: str, least: int, most: int) -> int:
        value = self.values[key]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ModelError(
                f"{key}={printed(value)} in the config is not a whole number from {least:,} to "
                f"{most:,}."
            )
        return value


def printed(value: object) -> str:
    """A value from outside, short and safe to print, however large or deep it is.

    >>> printed(10**1000), printed([[[]]]), printed("32")
    ('a number of 1,001 digits', 'a list of 1', "'32'")
    """
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, int) and value.bit_length() > 128:
        return f"a number of {int(value.bit_length() * 0.30103) + 1:,} digits"
    return str(value) if isinstance(value, (int, float)) else "something that is no number"


class Features(TypedDict, total=False):
    """The fields of `Transformer` that only some families have."""

    gated_mlp: bool
    qkv_bias: bool
    linear_bias: bool
    norm_bias: bool
    qk_norm: bool
    norms_per_layer: int
    num_positions: int
    alibi: bool
    sliding_window: int
    num_window_layers: int
    num_experts: int
    experts_per_token: int
    num_shared_experts: int
    moe_ffn_hidden_size: int
    num_dense_layers: int
    q_lora_rank: int
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    attention_gate: bool
    num_mlp_layers: int
    num_ssm_layers: int
    ssm_inner_size: int
    ssm_state_size: int
    ssm_num_heads: int
    ssm_num_groups: int
    ssm_conv_size: int
    ssm_dt_rank: int
    ssm_beside_attention: bool
    num_linear_layers: int
    linear_num_key_heads: int
    linear_num_value_heads: int
    linear_key_head_dim: int
    linear_value_head_dim: int
    linear_conv_size: int
    linear_gate_rank: int


class Window(TypedDict, total=False):
    """Local attention; empty where there is none."""

    sliding_window: int
    num_window_layers: int


class Experts(TypedDict):
    """Routed experts, and the layers without them."""

    num_experts: int
    experts_per_token: int
    moe_ffn_hidden_size: int
    num_dense_layers: int


def decoder(
    c: Config,
    *,
    ffn: tuple[str, ...] = ("intermediate_size",),
    ffn_default: int | None = None,
    heads_default: int | None = None,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    vocab_default: int | None = None,
    tied: bool = False,
    **features: Unpack[Features],
) -> Transformer:
    """The dimensions that every family has. Without `kv_heads` an absent num_key_value_heads
    means all heads, and without `head_dim` an absent one means hidden size over heads; `tied`
    is what an absent tie_word_embeddings means."""
    size = hidden_size(c)
    heads = c.count("num_attention_heads", *HEADS, default=heads_default)
    if c.has("head_dim"):
        head_dim = c.count("head_dim", "head_dim")
    elif head_dim is None:
        head_dim = _split(size, heads)
    return Transformer(
        num_layers=num_layers(c),
        hidden_size=size,
        ffn_hidden_size=c.count("ffn_hidden_size", *ffn, default=ffn_default),
        num_attention_heads=heads,
        num_kv_heads=kv_heads or c.count("num_kv_heads", KV_HEADS, default=heads),
        head_dim=head_dim,
        vocab_size=c.count("vocab_size", "vocab_size", default=vocab_default),
        tied_embeddings=c.flag("tie_word_embeddings", default=tied),
        **features,
    )


def num_layers(c: Config) -> int:
    """Number of layers, under either key."""
    return c.count("num_layers", "num_hidden_layers", "n_layer")


def hidden_size(c: Config) -> int:
    """Hidden size, under any of its keys."""
    return c.count("hidden_size", "hidden_size", "n_embd", "n_embed")


def required_kv_heads(c: Config) -> int:
    """KV heads that must be given: the default would be that of another size of the family."""
    return c.count("num_kv_heads", KV_HEADS)


def _split(hidden_size: int, heads: int) -> int:
    if hidden_size % heads:
        raise ModelError(
            f"The config has no head_dim, and its hidden size {hidden_size} is not a multiple of "
            f"its {heads} heads."
        )
    return hidden_size // heads


def window(size: int, layers: int) -> Window:
    """Local attention; none where no layer has it."""
    if size == 0 or layers == 0:
        return {}
    return {"sliding_window": size, "num_window_layers": layers}

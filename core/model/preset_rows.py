"""Rows of the tables of named models.

The tables are core/model/presets_dense.py, presets_moe.py and presets_hybrid.py; look a model up in
core/model/presets.py. Each `source` is where the dimensions were read; `published_params` is the
count by the maker or by the index of the published weights, with its source in
tests/golden/published_params.csv and preset_params.csv.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from core.machine.accelerator import Source
from core.model.transformer import Transformer


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One named model. `max_seq_len` is the longest sequence that its configuration allows."""

    id: str
    name: str
    transformer: Transformer
    max_seq_len: int
    published_params: float
    source: Source
    aliases: tuple[str, ...]  # repositories on Hugging Face; their last part is an alias too
    note: str = ""


# Where dimensions were read, with the date of the file.
LITGPT = ("Lightning-AI/litgpt 0.5.13: litgpt/config.py", "2026-06-29")
CONFIGS = ("config.json of the repository, as copied by debaditc/kvfit@bd4ccab", "2026-11-21")
HUB = ("config.json of the repository {0}, as stored by a crawl of its page", "2026-11-21")
BRIDGE = (
    "NVIDIA-NeMo/Megatron-Bridge@160ccccbb: "
    "src/megatron/bridge/models/nemotronh/nemotron_h_provider.py",
    "2026-11-21",
)
NEMO = ("NVIDIA/NeMo@8cfedd72: nemo/collections/llm/gpt/model/nemotron.py", "2026-11-21")
BROWN = ("Brown et al. 2020, arXiv:2005.14165, Table 2.1 and section 2.1", "2020-07-22")


class Dimensions(TypedDict):
    """Dimensions that every decoder has."""

    num_layers: int
    hidden_size: int
    ffn_hidden_size: int
    num_attention_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int


class Experts(TypedDict):
    """Routed experts."""

    num_experts: int
    experts_per_token: int
    moe_ffn_hidden_size: int


def decoder(
    layers: int, hidden: int, ffn: int, heads: int, kv_heads: int, head_dim: int, vocab: int
) -> Dimensions:
    """A decoder from its seven numbers, in the order in which papers print them."""
    return {
        "num_layers": layers,
        "hidden_size": hidden,
        "ffn_hidden_size": ffn,
        "num_attention_heads": heads,
        "num_kv_heads": kv_heads,
        "head_dim": head_dim,
        "vocab_size": vocab,
    }


def experts(number: int, per_token: int, size: int) -> Experts:
    """Routed experts of `size` each, of which a token visits `per_token`."""
    return {
        "num_experts": number,
        "experts_per_token": per_token,
        "moe_ffn_hidden_size": size,
    }


def row(
    id: str,
    name: str,
    read_at: tuple[str, str],
    transformer: Transformer,
    *,
    max_seq_len: int,
    published_params: float,
    aliases: tuple[str, ...],
    note: str = "",
) -> Preset:
    """A preset that was read at (where, date)."""
    t = transformer
    printed = f"{t.num_layers} layers of {t.hidden_size}, {t.num_attention_heads} heads"
    return Preset(
        id=id,
        name=name,
        transformer=transformer,
        max_seq_len=max_seq_len,
        published_params=published_params,
        source=Source(ref=read_at[0], date=read_at[1], printed=printed),
        aliases=aliases,
        note=note,
    )


def hub(repository: str) -> tuple[str, str]:
    """Read in the config.json of this repository on Hugging Face."""
    return HUB[0].format(repository), HUB[1]

"""What backward computes again under the checkpoint policies of MaxText, by name.

A policy of JAX names what is kept of a layer. The rest is computed again but for the last product
of an MLP, which no gradient needs (docs.jax.dev/en/latest/gradient-checkpointing.html). Norms and
activations are no products and always are.

Validity: dense models; AI-Hypercomputer/maxtext@8b8c3990: MaxText/layers/decoders.py,
get_remat_policy. `save_dot_except_logits` and `..._ffn1` are older names of Pax.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from core.memory.activations import share_of_parts
from core.model.transformer import Transformer, is_moe
from core.numeric import as_float
from core.time.repeated import matmul_shares

QKV, OUT, UP, CORE = "queries, keys, values", "output of attention", "first of an MLP", "attention"
PARTS = frozenset({QKV, OUT, UP, CORE})
# Policy: what it computes again.
POLICIES = {
    "minimal": {CORE},
    "minimal_offloaded": {CORE},
    "minimal_flash": set(),
    "save_dot_with_context_except_mlp": {UP},
    "save_dot_except_mlpwi": {UP, CORE},
    "save_dot_except_mlp": {UP, CORE},
    "save_qkv_proj": {OUT, UP, CORE},
    "qkv_proj_offloaded": {OUT, UP, CORE},
    "save_out_proj": {QKV, UP, CORE},
    "save_dot_except_logits": {CORE},
    "save_dot_except_logits_ffn1": {UP, CORE},
}
# Names that a policy of one's own may keep or offload, and the products that they are.
NAMES = {
    QKV: ({"query_proj", "key_proj", "value_proj"}, {"qkv_proj"}),
    OUT: ({"out_proj"},),
    UP: ({"mlpwi_0", "mlpwi_1"}, {"mlpwi"}),
    CORE: ({"context"},),
}
CUSTOM = re.compile(r"custom\b[\s,]*(.*)")  # then PLACE:NAME+NAME or NAME=PLACE, ...
NAMED = re.compile(r"\b(?:device|offload):([\w+, ]+?)(?=$|;|,\s*\w+[:=])")
PLACED = re.compile(r"\b(\w+)=(?:device|offload)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """What of a layer's forward pass is computed again."""

    qkv: bool
    out: bool
    up: bool
    core: bool


def repeated(policy: str) -> Repeated | None:
    """What a policy computes again; None where its name does not say.

    >>> repeated("minimal").core
    True
    >>> repeated("custom") is None
    True
    """
    given = CUSTOM.match(policy)
    if given and (named := _kept_names(given[1])):
        kept = {part for part, sets in NAMES.items() if any(s <= named for s in sets)}
        again: set[str] | None = set(PARTS - kept)
    else:
        again = POLICIES.get(policy)
    if again is None:
        return None
    return Repeated(qkv=QKV in again, out=OUT in again, up=UP in again, core=CORE in again)


def _kept_names(text: str) -> set[str]:
    """The names that a policy of one's own keeps on the device or sends to the host.

    >>> sorted(_kept_names("out_proj=remat, offload:qkv_proj, query_proj"))
    ['qkv_proj', 'query_proj']
    """
    lists = [n for part in NAMED.findall(text) for n in re.split(r"[+,\s]+", part) if n]
    return {*lists, *PLACED.findall(text)}


def offloads(policy: str) -> bool:
    """Whether a policy sends what it keeps to the host.

    >>> offloads("full offload:decoder_layer_input")
    True
    """
    return "offload:" in policy or policy.endswith("_offloaded")


def policy_fields(policy: str, model: Transformer) -> dict[str, Any]:
    """The fields of `Workload` that say what selective recompute keeps and, of a dense model,
    repeats."""
    again = repeated(policy)
    if again is None:
        return {}
    kept = share_of_parts(
        model, qkv=not again.qkv, core=not again.core, out=not again.out, up=not again.up
    )
    fields = {"kept_by_policy": as_float(kept)}
    if is_moe(model):
        return fields
    qkv, out, up = matmul_shares(model)
    share = qkv * again.qkv + out * again.out + up * again.up
    return fields | {"repeated_matmuls": as_float(share), "repeats_core": again.core}

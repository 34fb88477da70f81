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

KEPT = "remat_policy="
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
# Known, and not described by the products of a layer.
WHOLE_POLICIES = tuple(f"{KEPT}{name}" for name in ("full", "custom", "none", "block"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """What of a layer's forward pass is computed again."""

    qkv: bool
    out: bool
    up: bool
    core: bool


def repeated(detail: str) -> Repeated | None:
    """What the policy in a row's `recompute_detail` computes again; None where it does not say.

    >>> repeated("remat_policy=minimal").core
    True
    >>> repeated("remat_policy=custom") is None
    True
    """
    policy = detail.removeprefix(KEPT).strip()
    if policy == detail:
        return None
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


def offloads(detail: str) -> bool:
    """Whether the policy in a row's `recompute_detail` sends what it keeps to the host.

    >>> offloads("remat_policy=full offload:decoder_layer_input")
    True
    """
    policy = detail.removeprefix(KEPT).strip()
    return policy != detail and ("offload:" in policy or policy.endswith("_offloaded"))

"""Parameters that one GPU of a pipeline stage holds before data-parallel sharding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from core.layout.layouts import Layouts, dp
from core.layout.workload import Workload, layers_of_fullest_stage
from core.model.dimensions import num_layers_with_mlp
from core.model.transformer import (
    Transformer,
    attention_output_size,
    embedding_params,
    head_params,
    is_moe,
    layer_params,
    num_moe_layers,
    query_size,
    routed_expert_params,
)
from core.numeric import Bools, Numeric


class Held(NamedTuple):
    """Parameters that one GPU holds."""

    dense: Numeric
    ends: Numeric  # of `dense`
    experts: Numeric

    @property
    def all(self) -> Numeric:
        return self.dense + self.experts


@dataclass(frozen=True, slots=True, kw_only=True)
class StageParams:
    """Parameters that one GPU of a stage holds before data-parallel sharding, by how they are
    sharded: `dense` over dp x cp, `experts` over the ranks that hold copies of them."""

    dense: Numeric
    ends: Numeric  # of `dense`: embeddings and LM head, which are never quantised
    experts: Numeric
    dense_shards: Numeric
    expert_shards: Numeric
    one_layer: Numeric
    largest_unit: Numeric  # parameters of the largest piece that is gathered at once

    def held(self, sharded: Bools) -> Held:
        """What one GPU holds where data parallelism shards it, or does not."""
        shards = np.where(sharded, self.dense_shards, 1.0)
        experts = self.experts / np.where(sharded, self.expert_shards, 1.0)
        return Held(self.dense / shards, self.ends / shards, experts)


def stage_params(work: Workload, lay: Layouts, *, first: bool) -> StageParams:
    """Parameters of the first or the last pipeline stage, per GPU."""
    model = work.model
    share = layers_of_fullest_stage(work, pp=lay.pp) / np.maximum(model.num_layers, 1.0)
    alone = np.asarray(lay.pp) == 1
    ends = embedding_params(model) * (1.0 if first else alone) + head_params(model) * (
        alone if first else 1.0
    )
    # A tied head on another stage than the embedding is a second copy.
    tied_copy = np.where(
        np.asarray(model.tied_embeddings, dtype=bool) & ~alone & (not first),
        np.multiply(model.vocab_size, model.hidden_size),
        0.0,
    )
    in_layers = share * layer_params(model) / lay.tp
    of_experts = _share_of_experts(model, lay, share=share, first=first)
    experts = of_experts * routed_expert_params(model) / np.multiply(lay.ep, lay.etp)
    ranks = np.multiply(np.multiply(lay.dp_shard, lay.cp), 1.0)
    per_stage = np.multiply(np.multiply(dp(lay), lay.cp), lay.tp)
    copies = np.maximum(per_stage / np.multiply(lay.ep, lay.etp), 1.0)
    layers = np.maximum(share * model.num_layers, 1.0)
    one_layer = (in_layers + experts) / layers
    if np.any(work.gathers_by_matrix):
        one = np.minimum(largest_matrix(model, lay), one_layer)
        one_layer = np.where(work.gathers_by_matrix, one, one_layer)
    return StageParams(
        dense=in_layers + (ends + tied_copy) / lay.tp,
        ends=(ends + tied_copy) / lay.tp,
        experts=np.where(is_moe(model), experts, 0.0),
        dense_shards=ranks,
        expert_shards=np.minimum(copies, ranks),
        one_layer=one_layer,
        largest_unit=np.maximum(
            one_layer, np.multiply(model.vocab_size, model.hidden_size) / lay.tp
        ),
    )


def largest_matrix(model: Transformer, lay: Layouts) -> Numeric:
    """Parameters of the largest matrix of a layer on one GPU before data-parallel sharding: of its
    attention, of its MLP, or one of the three of all its experts."""
    hidden = np.asarray(model.hidden_size)
    attention = hidden * np.maximum(query_size(model), attention_output_size(model)) / lay.tp
    dense = hidden * model.ffn_hidden_size / lay.tp
    experts = np.multiply(model.num_experts, hidden) * model.moe_ffn_hidden_size
    return np.maximum(np.maximum(attention, dense), experts / np.multiply(lay.ep, lay.etp))


def _share_of_experts(model: Transformer, lay: Layouts, *, share: Numeric, first: bool) -> Numeric:
    """Share of the routed experts that the layers of a stage hold. Few dense layers of a model with
    experts lead it (DeepSeek-V3's first_k_dense_replace), so that the first of two stages has them,
    and of more stages the second one is as full as the first, with experts in every layer; many
    alternate with the others, as those of Llama 4 do."""
    layers = np.asarray(model.num_layers, dtype=float)
    leading = np.asarray(model.num_dense_layers) < layers / 2
    leading &= np.asarray(num_layers_with_mlp(model)) == layers
    here = share * layers
    if first:
        here = here - np.where(np.asarray(lay.pp) == 2, model.num_dense_layers, 0.0)
    held = np.clip(here / np.maximum(num_moe_layers(model), 1.0), 0.0, 1.0)
    return np.where(leading & (np.asarray(lay.pp) > 1) & is_moe(model), held, share)

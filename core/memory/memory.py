"""Peak memory of the fullest GPU, by part.

The first pipeline stage holds the embedding and the most micro-batches in flight, the last
one the LM head and the logits; the fuller of the two is reported. Where layers do not divide, both
are taken with the layers of the fullest stage, which is at most a tenth more than the worst stage
holds: 61 layers of DeepSeek-V3 on 16 stages 104 GiB for 95, Llama 405B 45 for 42.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.layout.layouts import Layouts
from core.layout.pipeline import microbatches_in_flight, microbatches_on_last_stage
from core.layout.workload import (
    Workload,
    layers_of_fullest_stage,
)
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.memory.activations import LayerKept
from core.memory.counters import settled_bytes
from core.memory.layer_memory import gathered_kv_bytes, kept_of_layers, one_layer
from core.memory.logits import logits_bytes
from core.memory.reserve import reserve_of
from core.memory.stage_params import stage_params
from core.memory.states import (
    communicators,
    makes_gradients_late,
    state_bytes,
    state_copies,
    unsharded_bytes,
)
from core.memory.update import step_temporaries
from core.numeric import Numeric

PARTS = (
    "parameters", "gradients", "optimizer", "activations", "logits", "buffers", "reserve",
)  # fmt: skip


def stage_bytes(
    work: Workload,
    lay: Layouts,
    eff: Efficiency,
    *,
    first: bool,
    layer: LayerKept | None = None,
) -> dict[str, Numeric]:
    """Bytes by part of the first or the last pipeline stage; `layer`, if known, saves a
    computation."""
    layer = one_layer(work, lay, eff) if layer is None else layer
    params = stage_params(work, lay, first=first)
    alone = np.asarray(lay.pp) == 1
    flight, layers = in_flight(work, lay, first=first)
    kept = kept_of_layers(work, lay, layer, flight * layers)
    logits = np.where(alone if first else True, logits_bytes(work, lay, eff), 0.0)
    again = layer.whole - layer.kept  # of the one layer in backward, computed again
    working = 0.5 * layer.whole + gathered_kv_bytes(work, lay)  # its gradients
    # The loss is done when the backward pass of the last layer begins, which reuses its memory: the
    # larger of the two counts.
    for_again = np.minimum(again, logits)
    for_working = np.minimum(working, logits - for_again)
    activations = kept + again - for_again
    buffers = working - for_working + unsharded_bytes(lay, params, work.trained_fraction)
    live = activations + logits + buffers
    gradients = state_bytes(work, lay, params, eff, "gradients")
    copies = state_copies(lay, params, eff, trained=work.trained_fraction, gradients=gradients)
    # Temporaries of the optimizer step reuse the memory of the backward pass.
    temporaries = step_temporaries(work, lay, params, eff)
    step = np.maximum(temporaries - live, 0.0)
    # Gradients that grow while activations shrink: the fullest moment is the loss, the end of
    # backward or the step.
    of_layer = kept_of_layers(work, lay, layer, np.minimum(1.0, flight * layers))
    end = of_layer + again + working + unsharded_bytes(lay, params, work.trained_fraction)
    fullest = np.maximum(live, gradients + np.maximum(np.minimum(end, live), temporaries))
    late = np.where(makes_gradients_late(work, lay), gradients + live + step - fullest, 0.0)
    return {
        "parameters": state_bytes(work, lay, params, eff, "parameters"),
        "gradients": gradients - late,
        "optimizer": state_bytes(work, lay, params, eff, "optimizer"),
        "activations": activations,
        "logits": logits,
        "buffers": buffers + copies + step + communicators(lay) * eff.communicator_bytes,
    }


def in_flight(work: Workload, lay: Layouts, *, first: bool) -> tuple[Numeric, Numeric]:
    """Micro-batches whose activations the first or the last stage holds at its peak, and the
    layers of the largest stage (core/layout/pipeline.py)."""
    held = microbatches_in_flight if first else microbatches_on_last_stage
    flight = held(
        pp=lay.pp,
        virtual_stages=lay.virtual_stages,
        num_microbatches=np.maximum(lay.num_microbatches, 1.0),
        schedule=lay.schedule,
    )
    return flight, layers_of_fullest_stage(work, pp=lay.pp)


def live_bytes(work: Workload, lay: Layouts, eff: Efficiency) -> dict[str, Numeric]:
    """Bytes by part of the fuller end of the pipeline, without `reserve`, which depends on the
    device."""
    layer = one_layer(work, lay, eff)
    ends = [stage_bytes(work, lay, eff, first=first, layer=layer) for first in (True, False)]
    totals = [sum(np.asarray(v, dtype=float) for v in e.values()) for e in ends]
    fuller = np.asarray(totals[0]) >= np.asarray(totals[1])
    return {k: np.where(fuller, ends[0][k], ends[1][k]) for k in ends[0]}


def peak_bytes(
    work: Workload, lay: Layouts, cluster: Cluster, eff: Efficiency
) -> dict[str, NDArray[np.float64]]:
    """Peak bytes by part (`PARTS`), columns of one length."""
    parts = live_bytes(work, lay, eff)
    live: Numeric = sum(np.asarray(v, dtype=float) for v in parts.values())
    live = live - settled_bytes(lay, eff, parts)
    parts["reserve"] = reserve_of(cluster, eff, live=live)
    shape = np.broadcast(*parts.values()).shape
    return {k: np.broadcast_to(v, shape).astype(float) for k, v in parts.items()}

"""Memory over a training step: the parts of `core.memory.memory`, phase by phase.

The peak of `core.memory.memory` is the largest of these phases, to the byte:

    peak = states + copies + communicators + max(gathered weights + activations in flight
           + max(logits, one layer in backward), temporaries of the optimizer) + reserve

[R20] Rajbhandari et al., "ZeRO", arXiv:1910.02054, section 3: model states are held all along,
      activations and temporary buffers ("residual states") come and go.
[K23] Korthikanti et al., arXiv:2205.05198, sections 4 and 5: what forward keeps for backward, and
      that recompute makes one layer of it again.
[N21] Narayanan et al., arXiv:2104.04473, section 2.2: micro-batches in flight in a pipeline.
[Z23] Zhao et al., "PyTorch FSDP", arXiv:2304.11277, section 3: weights are gathered unit by unit
      and freed after use.

Where the peak counts more than exists at one time: gradients are counted as a whole in forward
and backward. With several micro-batches that is so from the second one on, and where a stack keeps
one buffer for all gradients it is always so. With ONE micro-batch, in a stack that frees gradients
after each step, they grow while activations shrink. Where a device trains alone they are counted
so (`core.memory.memory.makes_gradients_late`); elsewhere `late_gradient_bytes` says how much less
the peak would be. The gradients of one gathered unit are counted from forward on, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.layout.layouts import Layouts
from core.layout.workload import Workload
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.memory.activations import LayerKept
from core.memory.counters import settled_bytes
from core.memory.layer_memory import gathered_kv_bytes, kept_of_layers, one_layer
from core.memory.logits import logits_bytes
from core.memory.memory import in_flight, stage_bytes
from core.memory.reserve import reserve_of
from core.memory.stage_params import StageParams, stage_params
from core.memory.states import (
    communicators,
    makes_gradients_late,
    state_bytes,
    state_copies,
    unsharded_bytes,
)
from core.memory.update import step_temporaries
from core.numeric import Numeric

Floats = NDArray[np.float64]
Phases = dict[str, dict[str, Floats]]  # bytes by phase and part

# In the order in which a step passes them; the first and the last lie between steps.
PHASES = ("start", "forward", "backward", "accumulation", "optimizer_step", "checkpoint")
PARTS = (
    "parameters", "gradients", "optimizer", "activations", "logits", "buffers", "temporaries",
    "reserve",
)  # fmt: skip
STATES = ("parameters", "gradients", "optimizer")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """Bytes of one end of the pipeline, from which the phases are composed."""

    states: dict[str, Numeric]
    whole_copies: Numeric  # in addition to the states, with gradient buckets
    lasting_copies: Numeric  # of `copies`, what exists without gradients, too
    groups: Numeric
    kept: Numeric  # activations of all micro-batches in flight
    kept_between: Numeric  # kept activations between a backward and the next forward
    kept_of_layer: Numeric
    again: Numeric  # of the layer in backward, what is recomputed
    working: Numeric  # gradients of that layer's activations, gathered keys and values
    logits: Numeric
    gathered: Numeric  # weights of other ranks, with the gradients of a unit
    gathered_between: Numeric
    temporaries: Numeric  # of the optimizer's step
    late: Numeric  # 1: no gradient exists before backward


def phase_bytes(work: Workload, lay: Layouts, cluster: Cluster, eff: Efficiency) -> Phases:
    """Bytes by phase (`PHASES`) and part (`PARTS`), columns of one length, of the end of the
    pipeline that `core.memory.memory.peak_bytes` reports: the fuller one.

    `work` with what the layouts keep on the host (core.memory.offload.work_on). The largest phase
    is the peak; "buffers" and "temporaries" together are what the peak calls buffers.
    """
    layer = one_layer(work, lay, eff)
    ends = [_phases(_stage(work, lay, eff, layer, first=f)) for f in (True, False)]
    fuller = _first_is_fuller(work, lay, eff, layer)
    found: Phases = {}
    for phase in PHASES:
        parts = {p: np.where(fuller, ends[0][phase][p], ends[1][phase][p]) for p in PARTS[:-1]}
        live: Numeric = sum(np.asarray(v, dtype=float) for v in parts.values())
        parts["reserve"] = np.asarray(
            reserve_of(cluster, eff, live=live - settled_bytes(lay, eff, parts)),
            dtype=float,
        )
        shape = np.broadcast(*parts.values()).shape
        found[phase] = {p: np.broadcast_to(parts[p], shape).astype(float) for p in PARTS}
    return found


def late_gradient_bytes(work: Workload, lay: Layouts, cluster: Cluster, eff: Efficiency) -> Numeric:
    """Bytes by which the peak is lower where gradients are made in backward and freed after the
    step, as PyTorch does (zero_grad(set_to_none=True)); 0 with several micro-batches.

    From layer to layer gradients grow and kept activations shrink in proportion, so the fullest
    moment is the loss, the first layer of backward, its last one, or the optimizer's step.
    """
    layer = one_layer(work, lay, eff)
    after = []
    for first in (True, False):
        s = _stage(work, lay, eff, layer, first=first)
        held = _sum(s.states) + s.groups
        gradients = np.asarray(s.states["gradients"])
        without = held - gradients + s.lasting_copies
        of_layer = s.again + s.working
        moments = (
            without + s.kept + s.gathered + np.maximum(s.logits, of_layer),
            held + s.whole_copies + s.kept_of_layer + s.gathered + of_layer,
            held + s.whole_copies + s.temporaries,
        )
        after.append(np.max(np.stack(np.broadcast_arrays(*moments)), axis=0))
    fuller = _first_is_fuller(work, lay, eff, layer)
    less = np.where(fuller, after[0], after[1])
    parts = phase_bytes(work, lay, cluster, eff)
    live = [np.sum([v for p, v in one.items() if p != "reserve"], axis=0) for one in parts.values()]
    # What the allocator cannot use falls with what is live.
    saved = (np.max(live, axis=0) - less) * (1 + np.asarray(eff.fragmentation))
    return np.where(np.asarray(lay.num_microbatches) > 1, 0.0, np.maximum(saved, 0.0))


def _stage(
    work: Workload, lay: Layouts, eff: Efficiency, layer: LayerKept, *, first: bool
) -> _Stage:
    """The pieces of one end of the pipeline, as `core.memory.memory.stage_bytes` adds them up."""
    params = stage_params(work, lay, first=first)
    states = {what: state_bytes(work, lay, params, eff, what) for what in STATES}
    alone = np.asarray(lay.pp) == 1
    logits = np.where(alone if first else True, logits_bytes(work, lay, eff), 0.0)
    kept, between, of_layer = _kept(work, lay, layer, first=first)
    gathered = unsharded_bytes(lay, params, work.trained_fraction)
    return _Stage(
        states=states,
        whole_copies=_copies(work, lay, params, eff, states["gradients"]),
        lasting_copies=_copies(work, lay, params, eff, 0.0),
        groups=communicators(lay) * eff.communicator_bytes,
        kept=kept,
        kept_between=between,
        kept_of_layer=of_layer,
        again=layer.whole - layer.kept,
        working=0.5 * layer.whole + gathered_kv_bytes(work, lay),
        logits=logits,
        gathered=gathered,
        gathered_between=np.where(alone, 0.0, gathered),  # a pipeline keeps its stage gathered
        temporaries=step_temporaries(work, lay, params, eff),
        late=np.where(makes_gradients_late(work, lay), 1.0, 0.0),
    )


def _copies(
    work: Workload, lay: Layouts, params: StageParams, eff: Efficiency, gradients: Numeric
) -> Numeric:
    return state_copies(lay, params, eff, trained=work.trained_fraction, gradients=gradients)


def _kept(
    work: Workload, lay: Layouts, layer: LayerKept, *, first: bool
) -> tuple[Numeric, Numeric, Numeric]:
    """Activations kept at the peak, between two micro-batches, and by one layer alone. [N21]"""
    flight, layers = in_flight(work, lay, first=first)
    # One chunk of the stage's layers has gone through backward, the next has not begun.
    fewer = np.maximum(flight - 1 / np.asarray(lay.virtual_stages, dtype=float), 0.0)
    alone = np.minimum(1.0, flight * layers)
    at_peak, between, of_layer = (
        kept_of_layers(work, lay, layer, n) for n in (flight * layers, fewer * layers, alone)
    )
    return at_peak, between, of_layer


def _phases(s: _Stage) -> dict[str, dict[str, Numeric]]:
    """The parts that exist in each phase."""
    trained = {**s.states, "buffers": s.whole_copies + s.groups}
    idle = {**s.states, "gradients": 0.0, "buffers": s.lasting_copies + s.groups}
    passing = {**trained, "buffers": trained["buffers"] + s.gathered}
    between = {**trained, "buffers": trained["buffers"] + s.gathered_between}
    gradients = np.asarray(s.states["gradients"])
    # Late gradients and kept activations never are whole at once: the fuller end of backward.
    at_end = np.where(gradients + s.kept_of_layer >= np.asarray(s.kept), s.late, 0.0)
    during = np.where(s.late > at_end, 0.0, gradients)
    kept = np.where(at_end > 0, s.kept_of_layer, s.kept)
    found: dict[str, dict[str, Numeric]] = {
        "start": idle,
        # The loss is at the end of forward: every layer's activations and the logits.
        "forward": {
            **passing,
            "gradients": (1 - s.late) * gradients,
            "activations": s.kept,
            "logits": s.logits,
        },
        # The logits are freed, and one layer is recomputed and differentiated.
        "backward": {
            **passing,
            "gradients": during,
            "activations": kept + s.again,
            "temporaries": s.working,
        },
        "accumulation": {**between, "activations": s.kept_between},
        "optimizer_step": {**trained, "temporaries": s.temporaries},
        "checkpoint": idle,
    }
    return {n: {p: parts.get(p, 0.0) for p in PARTS[:-1]} for n, parts in found.items()}


def _first_is_fuller(
    work: Workload, lay: Layouts, eff: Efficiency, layer: LayerKept
) -> NDArray[np.bool_]:
    """Whether the first stage is the fuller one, by the sums of `peak_bytes`."""
    totals = [_sum(stage_bytes(work, lay, eff, first=f, layer=layer)) for f in (True, False)]
    return np.asarray(np.asarray(totals[0]) >= np.asarray(totals[1]))


def _sum(parts: dict[str, Numeric]) -> Numeric:
    total: Numeric = sum(np.asarray(v, dtype=float) for v in parts.values())
    return total

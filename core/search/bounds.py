"""Lower bound of the step time, in a few operations per row.

The seconds of one layer and one micro-batch depend on tp, cp, ep, etp, micro-batch, recompute and
the machine, not on the pipeline, the strategy or the number of GPUs. `core.time.step` computes them
once for each of these combinations, with a layout of one stage and one micro-batch; stages,
micro-batches and the pipeline's bubble follow by arithmetic. What the bound leaves out - data
parallelism, pipeline and host transfers, the optimizer on the device - is never negative, so a
layout whose bound is above the time of another one cannot win.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.layout.layouts import SCHEDULES, Layouts
from core.layout.pipeline import bubble_fraction
from core.layout.workload import (
    Workload,
    layers_fewer_on_last_stage,
    layers_of_fullest_stage,
)
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.numeric import Numeric
from core.time.step import PARTS, step

NOT_PER_LAYER = (
    "head_loss", "pp_exposed", "dp_exposed", "offload_exposed", "bubble", "optimizer",
)  # fmt: skip
SAFETY = 1e-6  # relative: bound and step add the same terms in another order

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Seconds of one micro-batch: of one layer, and of the LM head."""

    layer_s: Floats
    head_s: Floats


def unit(work: Workload, lay: Layouts, cluster: Cluster, eff: Efficiency) -> Unit:
    """The unit of each layout, from its tp, cp, ep, etp, micro-batch and recompute only."""
    one = np.ones(np.shape(lay.tp))
    alone = Layouts(
        num_gpus=one, pp=one, virtual_stages=one, dp_replicate=one, dp_shard=one, strategy=0 * one,
        num_microbatches=one, schedule=SCHEDULES.index("1f1b") * one, reshard=lay.reshard,
        tp=lay.tp, cp=lay.cp, ep=lay.ep, etp=lay.etp, micro_batch_size=lay.micro_batch_size,
        recompute=lay.recompute, sequence_parallel=lay.sequence_parallel,
        context_method=lay.context_method,
    )  # fmt: skip
    parts = step(work, alone, cluster, eff).parts
    layers_s = sum((parts[p] for p in PARTS if p not in NOT_PER_LAYER), np.zeros(len(one)))
    layers_s = np.maximum(layers_s - eff.step_s, 0.0)
    return Unit(
        layer_s=layers_s / np.maximum(work.model.num_layers, 1.0), head_s=parts["head_loss"]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """How often a step runs the unit: columns that depend on layout and batch only."""

    microbatches: Floats
    layers: Floats  # of the largest stage
    fewer: Floats  # layers that the last stage has less
    waiting: Floats  # length of the bubble, in passes of the whole model


def pipeline(work: Workload, lay: Layouts) -> Pipeline:
    """The pipeline of each layout. A zero-bubble schedule fills at most the whole bubble
    (core/layout/pipeline.py)."""
    m = np.asarray(lay.num_microbatches, dtype=float)
    layers = np.asarray(layers_of_fullest_stage(work, pp=lay.pp))
    bubble = bubble_fraction(
        pp=lay.pp,
        virtual_stages=lay.virtual_stages,
        num_microbatches=m,
        schedule=lay.schedule,
        weight_gradient_share=0.5,
    )
    return Pipeline(
        microbatches=m,
        layers=layers,
        fewer=np.asarray(layers_fewer_on_last_stage(work, pp=lay.pp), dtype=float),
        waiting=m * bubble / lay.pp,
    )


def straggling(cluster: Cluster, num_gpus: Numeric, eff: Efficiency) -> Numeric:
    """Factor on the step for waiting for the slowest node."""
    nodes = np.maximum(np.divide(num_gpus, cluster.gpus_per_node), 1.0)
    return 1 + eff.straggler * np.log2(nodes)


def least_step_s(
    one: Unit, of: Pipeline, *, num_layers: float, host_s: Floats, factor: Floats, step_s: float
) -> Floats:
    """Lower bound of the seconds of a step. The last stage also runs the head; where layers divide
    unevenly it holds fewer. `host_s` and `step_s` are added once to each step, and `factor`
    multiplies all of it."""
    head = np.maximum(one.head_s - of.fewer * one.layer_s, 0.0)
    busy = of.microbatches * (of.layers * one.layer_s + head)
    idle = of.waiting * (num_layers * one.layer_s + one.head_s)
    return (busy + idle + host_s + step_s) * factor * (1 - SAFETY)

"""Pipeline schedules: the bubble, the slowest stage, the micro-batches in flight.

[Q23] Qi et al., "Zero Bubble Pipeline Parallelism", arXiv:2401.10241.
[N21] Narayanan et al., arXiv:2104.04473, section 2.2: 1F1B and interleaved 1F1B.

Symbols: p pp, v virtual_stages, m num_microbatches, L num_layers.
"""

from __future__ import annotations

import numpy as np

from core.layout.layouts import SCHEDULES
from core.numeric import Numeric

NAIVE, GPIPE, ZERO_BUBBLE = (float(SCHEDULES.index(n)) for n in ("naive", "gpipe", "zero_bubble"))


def bubble_fraction(
    *,
    pp: Numeric,
    virtual_stages: Numeric,
    num_microbatches: Numeric,
    schedule: Numeric = 2.0,
    weight_gradient_share: Numeric = 1 / 3,
) -> Numeric:
    """Idle time over ideal time. `schedule` is an index into core.layout.layouts.SCHEDULES.

    GPipe and 1F1B: (p - 1)/m; interleaved: (p - 1)/(v m) [N21, section 2.2.2]; zero bubble
    (ZB-H1) fills the weight gradients W into it, (p - 1)(F + B - W)/m where 1F1B has
    (p - 1)(F + B + W)/m, B the input gradients [Q23, table 1]: a third where all are equally
    long. Fewer micro-batches than stages fill less: (p - m) W more is idle (as simulated, exactly).
    Naive model parallelism works on one stage at a time: p - 1.

    >>> float(bubble_fraction(pp=8.0, virtual_stages=2.0, num_microbatches=64.0))
    0.0546875
    """
    kind = np.asarray(schedule)
    plain = np.subtract(pp, 1.0) / np.multiply(virtual_stages, num_microbatches)
    share = np.clip(weight_gradient_share, 0.0, 0.5)
    few = np.maximum(np.subtract(pp, num_microbatches), 0.0) / num_microbatches
    zero = plain * (1 - 2 * share) + few * share
    split = np.where(kind == ZERO_BUBBLE, zero, plain)
    return np.where(kind == NAIVE, np.subtract(pp, 1.0), split)


def layers_of_largest_stage(*, num_layers: Numeric, pp: Numeric) -> Numeric:
    """Layers of the stage that holds most, dealt as evenly as they divide.

    Layers need not divide by p; published runs place 126 layers on 8 stages.
    """
    return np.minimum(np.ceil(np.divide(num_layers, pp)), num_layers)


def layers_of_first_stage_by_cost(
    *, num_layers: Numeric, pp: Numeric, head_layers: Numeric
) -> Numeric:
    """Layers of the first stage where each stage takes layers until it has more than its share of
    all matrices, of which the LM head has as many as `head_layers` layers (huggingface/nanotron@
    2411b022: src/nanotron/models/base.py, thresholds; src/nanotron/models/llama.py,
    get_block_compute_costs). It has the most.

    >>> float(layers_of_first_stage_by_cost(num_layers=24.0, pp=8.0, head_layers=2.5))
    4.0
    """
    share = np.add(num_layers, head_layers) / pp
    return np.where(np.asarray(pp) > 1, np.minimum(np.floor(share) + 1, num_layers), num_layers)


def layers_less_on_last_stage(*, num_layers: Numeric, pp: Numeric) -> Numeric:
    """Layers that the last stage has fewer than the fullest, for the LM head that it also runs.

    A list of layers by stage (Megatron-Core's --pipeline-model-parallel-layout) gives the head a
    layer's place first, then the embedding, then the head a second one: as published, Llama 405B
    places 126 layers on 16 stages with one fewer on both ends (arXiv:2407.21783, section 3.3.2).

    >>> [float(layers_less_on_last_stage(num_layers=n, pp=16.0)) for n in (64.0, 63.0, 62.0, 61.0)]
    [0.0, 1.0, 1.0, 2.0]
    """
    largest = layers_of_largest_stage(num_layers=num_layers, pp=pp)
    free = largest * pp - num_layers
    return np.minimum(np.where(free >= 3, 2.0, np.minimum(free, 1.0)), largest)


def microbatches_in_flight(
    *, pp: Numeric, virtual_stages: Numeric, num_microbatches: Numeric, schedule: Numeric = 2.0
) -> Numeric:
    """Micro-batches whose activations the first stage holds at its peak. [N21]

    1F1B and ZB-H1: min(p, m). Interleaved: p + (p - 1)/v of the stage's chunks, at most m.
    GPipe: all m. Naive: one.
    """
    p, v, kind = pp, virtual_stages, np.asarray(schedule)
    interleaved = np.where(np.asarray(v) > 1, np.add(p, np.subtract(p, 1) / v), p)
    held = np.minimum(interleaved, num_microbatches)
    return np.where(kind == NAIVE, 1.0, np.where(kind == GPIPE, num_microbatches, held))


def microbatches_on_last_stage(
    *, pp: Numeric, virtual_stages: Numeric, num_microbatches: Numeric, schedule: Numeric = 2.0
) -> Numeric:
    """Micro-batches whose activations the last stage holds at its peak. [N21]

    1F1B: 1. Interleaving warms it up with (v - 1) p chunks of 1/v of its layers. GPipe: all m.
    """
    p, v = pp, virtual_stages
    held = np.minimum((np.subtract(v, 1) * p + 1) / v, num_microbatches)
    return np.where(np.asarray(schedule) == GPIPE, num_microbatches, held)

"""How unevenly a router loads the ranks that hold its experts, and what they have room for.

[W24] Wang et al., "Auxiliary-Loss-Free Load Balancing Strategy for Mixture-of-Experts",
      arXiv:2408.15664, table 2: MaxVio, the busiest expert's tokens over the mean, less one.
"""

from __future__ import annotations

import numpy as np

from core.numeric import Numeric

# Mean of the largest of 1, 2, 4, ..., 4096 standard normal numbers.
LARGEST_OF = (
    0.0, 0.5642, 1.0294, 1.4237, 1.7661, 2.0698, 2.3439, 2.5948, 2.8271, 3.0442, 3.2486, 3.4422,
    3.6266,
)  # fmt: skip
MAX_VIO = (0.72 + 0.52) / 2  # with an auxiliary loss, of 64 experts of which a token takes 6 [W24]
MAX_VIO_OF_BIAS = 0.04  # with a bias for each expert in place of the loss, both models of [W24]
MEASURED_EXPERTS, MEASURED_TAKEN = 64, 6
KINDS_OF_FILLER = 2  # a word over and over, and the padding behind it


def largest_of(count: Numeric) -> Numeric:
    """Mean of the largest of `count` standard normal numbers, 1 to 4,096 of them.

    >>> round(float(largest_of(64)), 3)
    2.344
    """
    return np.interp(np.log2(np.maximum(count, 1.0)), np.arange(len(LARGEST_OF)), LARGEST_OF)


def max_vio_of_alike(kinds: float = KINDS_OF_FILLER) -> float:
    """`max_vio` of `natural_load` where all tokens of a batch are of that many kinds and those of a
    kind take the same experts: a kind is a group that routes alike. Data that only fill sequences
    are such (whitecircle/halo: tests/common/datasets.py, create_benchmark_dataset).

    >>> busy = max_vio_of_alike(1)
    >>> round(float(natural_load(num_experts=32, experts_per_token=4, ep=8, max_vio=busy)), 2)
    2.88
    """
    variance = (MEASURED_EXPERTS / MEASURED_TAKEN - 1) / kinds
    return float(np.sqrt(variance) * largest_of(MEASURED_EXPERTS))


def natural_load(
    *,
    num_experts: Numeric,
    experts_per_token: Numeric,
    ep: Numeric,
    max_vio: Numeric = MAX_VIO,
) -> Numeric:
    """Tokens of the busiest rank over the mean where nothing forces the router: the mean of the
    largest of `ep` ranks that hold num_experts / ep experts each. 1 with a single rank.

    An expert's share of tokens varies as if tokens came in independent groups that route alike:
    its variance over the mean squared is proportional to num_experts / experts_per_token - 1.
    Experts are taken as independent, so that a rank's own average out, and as near normal. The
    factor `max_vio` is that of routers trained on 100 to 200 billion tokens [W24]; where a bias
    for each expert balances them, of whole batches: one micro-batch is less even.
    Benchmarks of untrained routers find 1.07 (Mixtral 8x22B, 8 ranks) and 1.5 (Qwen3 235B, 8 ranks)
    where this says 1.21 and 1.12: expect no better than half of the excess.

    >>> round(float(natural_load(num_experts=256, experts_per_token=8, ep=64)), 3)
    1.555
    """
    spread = np.divide(max_vio, largest_of(MEASURED_EXPERTS))  # standard deviation over the mean
    idle = np.divide(num_experts, np.maximum(experts_per_token, 1.0)) - 1
    each = spread * np.sqrt(np.maximum(idle, 0.0) / (MEASURED_EXPERTS / MEASURED_TAKEN - 1))
    held = np.maximum(np.divide(num_experts, ep), 1.0)
    return 1 + largest_of(ep) * each / np.sqrt(held)


def worst_load(*, num_experts: Numeric, experts_per_token: Numeric, ep: Numeric) -> Numeric:
    """Rows that a rank has room for over the mean where none may ever be dropped and shapes are
    fixed before it runs: all tokens of `ep` ranks, as many times as it holds experts of theirs
    (AI-Hypercomputer/maxtext@e591f30c: src/maxtext/layers/moe.py, get_ragged_buffer_size).

    >>> float(worst_load(num_experts=256, experts_per_token=8, ep=128))
    32.0
    """
    taken = np.divide(num_experts, np.maximum(experts_per_token, 1.0))
    return np.maximum(np.minimum(ep, taken), 1.0)

"""Calibrated machines: measured rates joined with what was assumed before.

Every constant is the log of measured over assumed, normal around 0 before the measurement; a
measurement has an error of its own, from spread, drift and leave-one-out. Both are joined by their
precisions (conjugate normal: Gelman et al., "Bayesian Data Analysis", 3rd edition, section 2.5).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from core.machine.cluster import Cluster
from core.numeric import Numeric

# Prior deviation of a constant of a machine from its assumed value, a log ratio.
PRIOR_SIGMA = {
    "matmul": 0.15,
    "matmul_fp8": 0.15,
    "attention": 0.2,
    "memory": 0.15,
    "elementwise": 0.4,
    "host_link": 0.3,
    "scale_up": 0.3,
    "scale_up_hop": 0.7,
    "scale_out": 0.5,
    "scale_out_hop": 0.7,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """Factors on a machine's rates and times; 1 is what was assumed."""

    matmul: float = 1.0
    matmul_fp8: float = 1.0  # of the speed-up over 16 bits
    attention: float = 1.0
    memory: float = 1.0
    elementwise: float = 1.0  # of a time
    host_link: float = 1.0
    scale_up: float = 1.0
    scale_up_hop: float = 1.0  # of a time
    scale_out: float = 1.0
    scale_out_hop: float = 1.0  # of a time
    matmul_at: tuple[tuple[float, float, float], ...] = ()
    matmul_weights: tuple[float, ...] = ()


def posterior(
    *, log_ratio: Numeric, sigma: Numeric, prior_sigma: Numeric
) -> tuple[Numeric, Numeric]:
    """Mean and deviation of a log ratio after a measurement of it.

    >>> [round(float(x), 3) for x in posterior(log_ratio=0.2, sigma=0.1, prior_sigma=0.1)]
    [0.1, 0.071]
    """
    trust = np.square(prior_sigma) / (np.square(prior_sigma) + np.square(sigma))
    return trust * log_ratio, np.sqrt(trust) * np.asarray(sigma)


def applied(cluster: Cluster, found: Calibrated) -> Cluster:
    """The machine with its measured rates; `Calibrated()` leaves it as it is."""
    return replace(
        cluster,
        ceiling=cluster.ceiling * found.matmul,
        fp8_ratio=cluster.fp8_ratio * found.matmul_fp8,
        memory_bytes_per_s=cluster.memory_bytes_per_s * found.memory,
        scale_up_bytes_per_s=cluster.scale_up_bytes_per_s * found.scale_up,
        scale_out_bytes_per_s=cluster.scale_out_bytes_per_s * found.scale_out,
        scale_up_hop_s=cluster.scale_up_hop_s * found.scale_up_hop,
        scale_out_hop_s=cluster.scale_out_hop_s * found.scale_out_hop,
        host_link_bytes_per_s=cluster.host_link_bytes_per_s * found.host_link,
        attention_factor=cluster.attention_factor * found.attention,
        elementwise_factor=cluster.elementwise_factor * found.elementwise,
        matmul_at=found.matmul_at,
        matmul_weights=found.matmul_weights,
    )

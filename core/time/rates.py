"""Rates that one GPU achieves: peaks times the fractions that software reaches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.layout.precision import matmul_speedup
from core.layout.workload import Workload
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.numeric import Numeric
from core.time.software import software_factor


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Achieved rates of one GPU."""

    linear_flops_per_s: Numeric  # matmuls of linear layers, at the recipe's precision
    head_flops_per_s: Numeric  # 16-bit matmul: LM head, router
    attention_flops_per_s: Numeric
    bytes_per_s: Numeric


def rates(work: Workload, cluster: Cluster, eff: Efficiency) -> Rates:
    """Peak times ceiling times the fraction that software reaches. NaN: precision not supported."""
    peak = np.asarray(cluster.peak_flops_per_s)
    software = software_factor(work.software_year, eff.software_per_year)
    power = np.asarray(cluster.power_share) ** eff.power_exponent
    sixteen = peak * cluster.ceiling * eff.matmul * software * power
    speedup = matmul_speedup(
        matmul_bits=work.matmul_bits,
        fp8_ratio=cluster.fp8_ratio,
        fp4_ratio=cluster.fp4_ratio,
        fp8_fraction=eff.fp8_of_peak_ratio,
        fp4_fraction=eff.fp4_of_peak_ratio,
    )
    return Rates(
        linear_flops_per_s=sixteen * speedup,
        head_flops_per_s=sixteen,
        attention_flops_per_s=peak
        * (eff.attention_forward * eff.attention_in_step * software * power)
        * (1 + eff.fast_exponentials * np.asarray(cluster.fast_exponentials))
        * np.where(work.flash2, eff.flash2 ** np.asarray(cluster.newer_than_flash2), 1.0)
        * np.asarray(cluster.attention_factor),
        bytes_per_s=np.asarray(cluster.memory_bytes_per_s) * eff.memory * software,
    )

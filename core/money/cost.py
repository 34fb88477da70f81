"""Hours and dollars of a run. Clouds rent whole instances, so GPU-hours are of whole instances.

[EC2] AWS, "Amazon EC2 On-Demand Pricing" (2026): an instance is billed by the second from its
      launch to its end, for 60 seconds at least. Sellers differ in the least that they bill only
      (hardware/supply.csv).
"""

from __future__ import annotations

import numpy as np

from core.numeric import Numeric, ceil_div
from core.units import HOUR_S


def num_steps(*, num_tokens: Numeric, seq_len: Numeric, global_batch_size: Numeric) -> Numeric:
    """Optimizer steps that see the tokens; the last one is whole.

    >>> float(num_steps(num_tokens=1e6, seq_len=1000.0, global_batch_size=10.0))
    100.0
    """
    return ceil_div(num_tokens, np.multiply(seq_len, global_batch_size))


def wall_clock_hours(*, num_steps: Numeric, step_s: Numeric) -> Numeric:
    """Hours of computing, without failures and waiting (core/failures/reliability.py)."""
    return num_steps * step_s / HOUR_S


def billed_hours(*, run_hours: Numeric, startup_hours: Numeric, least_hours: Numeric) -> Numeric:
    """Hours that are paid: start-up and run, or the seller's least. [EC2] Instances are taken to be
    paid from the request on, as if none waited to boot for nothing; bills by the hour are not
    rounded up.

    >>> float(billed_hours(run_hours=0.05, startup_hours=0.25, least_hours=1.0))
    1.0
    >>> float(billed_hours(run_hours=10.0, startup_hours=0.25, least_hours=1.0))
    10.25
    """
    return np.maximum(np.add(startup_hours, run_hours), least_hours)


def num_instances(*, num_gpus: Numeric, gpus_per_instance: Numeric) -> Numeric:
    """Whole instances that hold the GPUs."""
    return ceil_div(num_gpus, gpus_per_instance)


def gpu_hours(
    *, wall_clock_hours: Numeric, num_instances: Numeric, gpus_per_instance: Numeric
) -> Numeric:
    """GPU-hours that are paid: every GPU of every instance, busy or not."""
    return wall_clock_hours * num_instances * gpus_per_instance


def run_usd(
    *, wall_clock_hours: Numeric, num_instances: Numeric, usd_per_instance_hour: Numeric
) -> Numeric:
    """Dollars of the whole run.

    >>> run_usd(wall_clock_hours=10.0, num_instances=8.0, usd_per_instance_hour=24.0)
    1920.0
    """
    return wall_clock_hours * num_instances * usd_per_instance_hour

"""Hours and dollars of a run. Clouds rent whole instances, so GPU-hours are of whole instances."""

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

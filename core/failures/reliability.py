"""Failures to first order, for comparison: exact times are in core/failures/goodput.py.

[Y74] Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974.
"""

from __future__ import annotations

import numpy as np

from core.numeric import Numeric


def young_interval_s(*, checkpoint_s: Numeric, mean_time_to_failure_s: Numeric) -> Numeric:
    """Seconds between checkpoints that minimise the lost time: sqrt(2 C M). [Y74] Validity: C << M.

    >>> float(young_interval_s(checkpoint_s=50.0, mean_time_to_failure_s=10_000.0))
    1000.0
    """
    return np.sqrt(2 * np.multiply(checkpoint_s, mean_time_to_failure_s))

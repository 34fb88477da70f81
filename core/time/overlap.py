"""Overlap: communication hidden behind computation, and the slowdown of both meanwhile.

[M22] Miao et al., "Galvatron", VLDB 2022, arXiv:2211.13878, section 3.4: computation and
      communication slow one another down while they overlap.
"""

from __future__ import annotations

import numpy as np

from core.numeric import Numeric


def hidden_s(
    *,
    communication_s: Numeric,
    computation_s: Numeric,
    always_exposed: Numeric,
    window: Numeric,
) -> Numeric:
    """Seconds of communication that run during computation: at most `window` of it.

    >>> float(hidden_s(communication_s=2.0, computation_s=10.0, always_exposed=0.5, window=1.0))
    1.0
    """
    hideable = (1 - np.asarray(always_exposed)) * communication_s
    return np.minimum(hideable, window * np.maximum(computation_s, 0.0))


def exposed_s(*, communication_s: Numeric, hidden_s: Numeric, slowdown: Numeric) -> Numeric:
    """Seconds that communication adds to computation. [M22]

    The part that is not hidden, and `slowdown` of the hidden time, by which both get longer.

    >>> float(exposed_s(communication_s=2.0, hidden_s=2.0, slowdown=0.0))
    0.0
    """
    return communication_s - hidden_s + np.multiply(slowdown, hidden_s)

"""Dollars of a run other than its instances: storage, traffic and credits.

A GB is 10^9 bytes and a month 730 hours, as price lists count them.
"""

from __future__ import annotations

import numpy as np

from core.numeric import Numeric

MONTH_H = 730.0
GB = 1e9
# A checkpoint from which training resumes: 16-bit weights, their fp32 master copy, and the states
# of the optimizer: Rajbhandari et al., "ZeRO", arXiv:1910.02054, section 3.1, without gradients.
WEIGHT_AND_MASTER_BYTES = 6.0


def checkpoint_bytes(*, parameters: Numeric, optimizer_state_bytes: Numeric) -> Numeric:
    """Bytes of one checkpoint: 14 a trained parameter with AdamW.

    >>> checkpoint_bytes(parameters=8e9, optimizer_state_bytes=8.0)
    112000000000.0
    """
    return parameters * (WEIGHT_AND_MASTER_BYTES + optimizer_state_bytes)


def storage_usd(*, stored_bytes: Numeric, usd_per_gb_month: Numeric, hours: Numeric) -> Numeric:
    """Dollars to keep bytes for so many hours, by the share of a month.

    >>> storage_usd(stored_bytes=1e12, usd_per_gb_month=0.02, hours=365.0)
    10.0
    """
    return stored_bytes / GB * usd_per_gb_month * hours / MONTH_H


def egress_usd(*, moved_bytes: Numeric, usd_per_gb: Numeric) -> Numeric:
    """Dollars to move bytes out of a cloud once.

    >>> egress_usd(moved_bytes=2e12, usd_per_gb=0.09)
    180.0
    """
    return moved_bytes / GB * usd_per_gb


def run_total_usd(
    *,
    instances_usd: Numeric,
    storage_usd_per_hour: Numeric,
    hours: Numeric,
    egress_usd: Numeric,
    credit_usd: Numeric,
) -> Numeric:
    """Everything that a run costs.

    >>> float(run_total_usd(instances_usd=100.0, storage_usd_per_hour=1.0, hours=10.0,
    ...     egress_usd=5.0, credit_usd=15.0))
    100.0
    """
    usd = instances_usd + storage_usd_per_hour * hours + egress_usd
    return after_credit_usd(usd=usd, credit_usd=credit_usd)


def after_credit_usd(*, usd: Numeric, credit_usd: Numeric) -> Numeric:
    """Dollars left to pay: a credit larger than the bill is not paid out.

    >>> float(after_credit_usd(usd=100.0, credit_usd=30.0))
    70.0
    """
    return np.maximum(usd - credit_usd, 0.0)

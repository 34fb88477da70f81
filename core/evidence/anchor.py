"""Anchoring: a measurement of the user's own rescales the forecast and narrows its interval.

The log ratio of measured over predicted throughput is normal with mean 0, for every configuration
of one user; two configurations have correlated errors, the more the more alike they are. A
measurement of one shifts the mean of the other and reduces its variance (conditional normal
distribution). A measurement is itself one draw: repeated, it scatters by NOISE_SIGMA.

Measured on the 807 throughput rows of hardware/measured_runs.csv: correlation of the log errors
of two runs of the same source and framework, each source weighted by the root of its number of
pairs. On the same accelerator with the same model also of the same sequence length and precision.

    accelerator   model   layout   GPUs    sources   pairs   correlation      used
    same          same    same     same    14          362   0.80             1 (other releases)
    same          same    same     other   14        1,106   0.77             0.8
    same          same    other    any     11        1,894   0.61 to 0.63     0.6
    other         same    any      any      6        2,060   0.24 to 0.32     0.3
    same          other   any      any     16       17,329   0.30 to 0.44     0.4
    other         other   any      any      9       11,246   -0.06 to 0.15    0.1

Validity: one stack, one user; the errors of the forecast before any calibration.
"""

from __future__ import annotations

import numpy as np

from core.errors import ScenarioError
from core.numeric import Bools, Numeric

# Standard deviation of the log throughput of one configuration across the releases of one stack:
# median over the repeated configurations of hardware/measured_runs.csv (P90 is 0.145).
NOISE_SIGMA = 0.027
HIGHEST_MFU = 1.0  # of the fastest peak that the accelerator has

SAME_RUN, OTHER_GPUS, OTHER_LAYOUT, OTHER_MACHINE, OTHER_MODEL, OTHER_BOTH = (
    1.0, 0.8, 0.6, 0.3, 0.4, 0.1
)  # fmt: skip


def correlation(
    *, same_accelerator: Bools, same_model: Bools, same_layout: Bools, same_num_gpus: Bools
) -> Numeric:
    """Correlation of the forecast errors of two configurations; see the module's table.

    >>> float(correlation(same_accelerator=True, same_model=True, same_layout=False,
    ...     same_num_gpus=True))
    0.6
    """
    on_one_machine = np.where(
        same_layout, np.where(same_num_gpus, SAME_RUN, OTHER_GPUS), OTHER_LAYOUT
    )
    one_model = np.where(same_accelerator, on_one_machine, OTHER_MACHINE)
    return np.where(same_model, one_model, np.where(same_accelerator, OTHER_MODEL, OTHER_BOTH))


def anchored(
    *,
    predicted_anchor: Numeric,
    measured: Numeric | None,
    sigma_shared: Numeric,
    sigma_own: Numeric,
    same_accelerator: Bools,
    same_model: Bools,
    same_layout: Bools,
    same_num_gpus: Bools,
) -> tuple[Numeric, Numeric]:
    """What to add to the log of a forecast, and its width after the measurement.

    `sigma_shared` is the width of the anchor's forecast, which the target has too; `sigma_own` is
    what only the target assumes (an accelerator that was never measured, a guessed network). Both
    contain the scatter of measuring, which two configurations do not share:

        c   = correlation x (variance of the anchor - n^2)        n = NOISE_SIGMA
        add   c / (variance of the anchor) x ln(measured / predicted)
        left  variance of the target - c^2 / (variance of the anchor)

    `measured` None leaves the forecast as it is.
    """
    anchor_variance = np.square(sigma_shared)
    target_variance = anchor_variance + np.square(sigma_own)
    if measured is None:
        return np.zeros_like(target_variance), np.sqrt(target_variance)
    near = correlation(
        same_accelerator=same_accelerator,
        same_model=same_model,
        same_layout=same_layout,
        same_num_gpus=same_num_gpus,
    )
    common = near * np.maximum(anchor_variance - NOISE_SIGMA**2, 0.0)
    shift = common / anchor_variance * np.log(np.divide(measured, predicted_anchor))
    return shift, np.sqrt(target_variance - np.square(common) / anchor_variance)


def check_measured(
    *, tokens_per_s_per_gpu: float, flops_per_token: float, fastest_flops_per_s: float
) -> None:
    """Refuse a measurement that the accelerator cannot reach: ScenarioError.

    `flops_per_token` are the model FLOPs of training (with frozen weights, the caller's reduced
    count); `fastest_flops_per_s` is the highest dense peak that the accelerator has.
    """
    mfu = tokens_per_s_per_gpu * flops_per_token / fastest_flops_per_s
    if mfu > HIGHEST_MFU:
        most = fastest_flops_per_s / flops_per_token
        raise ScenarioError(
            f"anchor_tokens_per_s_per_gpu={tokens_per_s_per_gpu:,.6g} is {mfu:.3g} times what the "
            f"fastest arithmetic of this accelerator allows: at most {most:,.3g} tokens/s per GPU; "
            "tokens/s of the whole job must be divided by its GPUs."
        )

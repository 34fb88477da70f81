"""Fit of a calibration: constants of a machine, joined with their priors, with errors.

Each constant is the log of measured over forecast, joined with its prior
(core/machine/calibration.py). Its error is the largest of the spread of its samples, the drift of
the control operation and the leave-one-out error. The held-out training step is not used in any
fit: forecasts of it with and without the constants show what they are worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from core.errors import FactError
from core.machine.accelerator import Accelerator
from core.machine.calibration import PRIOR_SIGMA, Calibrated, applied, posterior
from core.machine.cluster import Cluster, cluster_of
from core.machine.efficiency import Efficiency
from core.numeric import Z_90, as_float
from runners.calibration import fit_compute, fit_links, held_out
from runners.calibration.fit_compute import Matmuls, Measured
from runners.calibration.fit_links import Link
from runners.calibration.held_out import HeldOut
from runners.calibration.result import CalibResult
from runners.calibration.validity import control_drift

LEAST_SIGMA = 0.01  # no constant is known better than to one percent
TYPED_SIGMA = 1.5  # of a custom accelerator: its figures are not measured
UNMEASURED_SIGMA = 0.25  # of matmuls on an accelerator without measurements
# A factor beyond this is a mistake in the result or in the figures of the machine.
FARTHEST = 50.0
FARTHEST_HOP = 1e4  # processes of a CPU take a thousand times as long to meet as GPUs do


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """One constant of the machine, as a factor on what was assumed."""

    name: str  # of core.machine.calibration.Calibrated
    unit: str  # of `assumed` and of `measured`
    assumed: float
    measured: float
    factor: float  # that the forecast uses
    low: float  # P10 and P90 of the factor
    high: float
    num_measured: int
    left_out_error: float | None  # median relative error of left-out points
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The calibrated machine of one result."""

    factors: Calibrated
    constants: tuple[Constant, ...]
    links: tuple[Link, ...]
    held_out: HeldOut | None
    checkpoint_bytes_per_s: float | None  # by all ranks of one machine together
    missing: tuple[str, ...]  # constants without a measurement


def machine_of(accelerator: Accelerator) -> Cluster:
    """The usual machine of an accelerator, as assumed before it is measured."""
    domain = max(accelerator.scale_up_domain, 1)
    return cluster_of(
        accelerator,
        gpus_per_node=accelerator.gpus_per_node,
        scale_up_domain=domain,
        scale_out_bytes_per_s=accelerator.scale_out_bytes_per_s or float("nan"),
    )


def fitted(result: CalibResult, accelerator: Accelerator, eff: Efficiency) -> Fitted:
    """The constants of a result that was judged usable. `eff` is the generic software profile, by
    which a forecast multiplies these rates."""
    drift = max(LEAST_SIGMA, (control_drift(result) or 0.0) / 2)
    prior = prior_sigma(accelerator)
    assumed = machine_of(accelerator)
    learned = _Learned(prior, drift)
    learned.take("memory", fit_compute.memory(result, assumed, eff))
    matmuls = fit_compute.matmuls(
        result, learned.of(assumed), eff, prior_sigma=prior["matmul"], least_sigma=drift
    )
    if matmuls is not None:
        learned.take("matmul", matmuls.constant)
        learned.shapes = matmuls
        learned.take("matmul_fp8", fit_compute.fp8(result, learned.of(assumed), eff))
    learned.take("attention", fit_compute.attention_rate(result, assumed, eff))
    learned.take("elementwise", held_out.elementwise(result, learned.of(assumed), eff))
    learned.take("host_link", fit_compute.host_link(result, assumed, eff))
    links = fit_links.links(result)
    for name, found in fit_links.rates(links, assumed, eff).items():
        learned.take(name, found)
    return Fitted(
        factors=learned.factors(),
        constants=tuple(learned.constants),
        links=links,
        held_out=held_out.held_out(result, assumed, learned.of(assumed), eff),
        checkpoint_bytes_per_s=fit_compute.checkpoint_bytes_per_s(result),
        missing=tuple(n for n in PRIOR_SIGMA if n not in {c.name for c in learned.constants}),
    )


class _Learned:
    """The constants so far: later ones are measured against a machine with the earlier ones."""

    def __init__(self, prior_sigma: Mapping[str, float], drift: float) -> None:
        self.constants: list[Constant] = []
        self.shapes: Matmuls | None = None
        self._prior_sigma, self._drift = prior_sigma, drift

    def take(self, name: str, found: Measured | None) -> None:
        """Join a measurement with its prior; None changes nothing."""
        if found is not None:
            sigma = self._prior_sigma[name]
            one = constant(name, found, prior_sigma=sigma, drift=self._drift)
            self.constants.append(one)

    def factors(self) -> Calibrated:
        shapes = self.shapes
        return Calibrated(
            **{c.name: c.factor for c in self.constants},
            matmul_at=() if shapes is None else shapes.at,
            matmul_weights=() if shapes is None else shapes.weights,
        )

    def of(self, cluster: Cluster) -> Cluster:
        """The machine with the constants so far."""
        return applied(cluster, self.factors())


def prior_sigma(accelerator: Accelerator) -> dict[str, float]:
    """Prior deviation of the log of each constant."""
    if accelerator.vendor == "custom":
        return dict.fromkeys(PRIOR_SIGMA, TYPED_SIGMA)
    known = accelerator.matmul_flops_per_s is not None
    return {**PRIOR_SIGMA, **({} if known else {"matmul": UNMEASURED_SIGMA})}


def constant(name: str, found: Measured, *, prior_sigma: float, drift: float) -> Constant:
    """The measurement joined with its prior; FactError where it is implausibly far from the
    assumption."""
    ratio = found.measured / found.assumed
    farthest = FARTHEST_HOP if name.endswith("_hop") else FARTHEST
    if not 1 / farthest <= ratio <= farthest:
        raise FactError(
            f"{name} was measured at {found.measured:.3g} {found.unit} where {found.assumed:.3g} "
            "is assumed: the result is of another machine, or its figures are wrong."
        )
    if found.is_posterior:
        mean, left = float(np.log(ratio)), found.sigma
    else:
        sigma = max(found.sigma, drift, found.left_out_error or 0.0)
        joined = posterior(log_ratio=np.log(ratio), sigma=sigma, prior_sigma=prior_sigma)
        mean, left = map(as_float, joined)
    return Constant(
        name=name,
        unit=found.unit,
        assumed=found.assumed,
        measured=found.measured,
        factor=float(np.exp(mean)),
        low=float(np.exp(mean - Z_90 * left)),
        high=float(np.exp(mean + Z_90 * left)),
        num_measured=found.num_measured,
        left_out_error=found.left_out_error,
        note=found.note,
    )

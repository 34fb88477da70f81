"""Width of a forecast: a log-normal around the P50 that widens with what is assumed.

Widths are standard deviations of the log ratio of measured and predicted; independent causes
add in quadrature. hardware/efficiency.csv says what each was estimated on.

Speeds are skewed: much can make a run slower than its parts and little makes it faster, so the
P10 is further from the P50 than the P90 is. The distribution of times that has these two quantiles
is that of core/failures/time_factor.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from core.machine.efficiency import Efficiency
from core.numeric import Z_90, Numeric

LARGEST_RUN = 16384.0  # GPUs; a test ties it to hardware/measured_runs.csv
# Parts of a step that wait for the host, and that pass over memory; the others are matmuls,
# attention and communication.
WAITING = ("overhead",)
OVER_MEMORY = ("memory_bound", "head_loss", "optimizer")
# Widths of the model itself, which measured runs that are alike narrow.
OF_MODEL = ("throughput_sigma", "host_time_sigma", "bandwidth_sigma")
OF_STEP = ("waits_for_host", "passes_over_memory", "at_half_network")  # of Circumstances


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What widens the interval of a forecast. Numbers or columns; flags are 0 or 1."""

    num_inferred: Numeric = 0.0  # of recompute, precision, schedule, degrees, network, batch...
    num_inferred_of_memory: Numeric = 0.0  # of recompute, degrees, sharding, micro-batch
    unknown_stack: Numeric = 0.0  # no profile
    unmeasured: Numeric = 0.0  # no matmul was ever measured on the accelerator
    unseen_accelerator: Numeric = 0.0  # no published run on the accelerator was fitted
    doublings: Numeric = 0.0  # of GPUs, beyond `LARGEST_RUN`
    network_guessed: Numeric = 0.0
    waits_for_host: Numeric = 0.0  # share of the step
    passes_over_memory: Numeric = 0.0  # share of the step
    at_half_network: Numeric = 0.0  # log of the step at half of a guessed network over the step
    experts: Numeric = 0.0
    adapters: Numeric = 0.0


def doublings(num_gpus: Numeric) -> Numeric:
    """Doublings beyond the largest run that was fitted.

    >>> float(doublings(65_536))
    2.0
    """
    return np.log2(np.maximum(np.divide(num_gpus, LARGEST_RUN), 1.0))


def unknown(known: Circumstances) -> Circumstances:
    """These circumstances for a stack without a profile."""
    return replace(known, unknown_stack=np.ones(np.shape(known.num_inferred)))


def of_step(
    known: Circumstances,
    *,
    parts_s: Mapping[str, Numeric],
    at_half_network: Numeric = 0.0,
) -> Circumstances:
    """These circumstances with what the parts of the step add: how long software waits for its host
    and passes over memory is known less well than how long matmuls take.

    >>> found = of_step(Circumstances(), parts_s={"matmul": 6.0, "overhead": 3.0, "optimizer": 1.0})
    >>> float(found.waits_for_host), float(found.passes_over_memory)
    (0.3, 0.1)
    """

    def share(names: tuple[str, ...]) -> Numeric:
        return np.divide(sum(np.asarray(parts_s.get(n, 0.0), dtype=float) for n in names), whole)

    whole = sum(np.asarray(v, dtype=float) for v in parts_s.values())
    return replace(
        known,
        waits_for_host=share(WAITING),
        passes_over_memory=share(OVER_MEMORY),
        at_half_network=at_half_network,
    )


def narrowed(eff: Efficiency, variance_left: Numeric) -> Efficiency:
    """The widths of the model itself where this share of its variance remains."""
    left = np.sqrt(variance_left)
    return replace(eff, **{name: np.multiply(getattr(eff, name), left) for name in OF_MODEL})


def throughput_sigma(eff: Efficiency, known: Circumstances) -> Numeric:
    """Width of a forecast of tokens per second."""
    return _width(eff, throughput_terms(known))


def throughput_terms(known: Circumstances) -> dict[str, Numeric]:
    """Fields of `Efficiency` whose squares add up for throughput, and what multiplies each."""
    return {
        "throughput_sigma": 1.0 + 0.0 * np.asarray(known.num_inferred),
        "inferred_sigma": np.sqrt(known.num_inferred),
        "unknown_stack_sigma": np.asarray(known.unknown_stack),
        "unmeasured_sigma": np.asarray(known.unmeasured),
        "unseen_accelerator_sigma": np.asarray(known.unseen_accelerator),
        "scale_sigma": np.asarray(known.doublings),
        "network_sigma": np.asarray(known.network_guessed),
        "experts_sigma": np.asarray(known.experts),
        "adapters_sigma": np.asarray(known.adapters),
        "host_time_sigma": np.asarray(known.waits_for_host),
        "bandwidth_sigma": np.asarray(known.passes_over_memory),
        "half_network_sigma": np.asarray(known.at_half_network),
    }


def memory_sigma(eff: Efficiency, known: Circumstances) -> Numeric:
    """Width of a forecast of bytes."""
    return _width(eff, memory_terms(known))


def memory_terms(known: Circumstances) -> dict[str, Numeric]:
    """Fields of `Efficiency` whose squares add up for memory, and what multiplies each."""
    return {
        "memory_sigma": 1.0 + 0.0 * np.asarray(known.num_inferred),
        "memory_inferred_sigma": np.sqrt(known.num_inferred_of_memory),
        "memory_unknown_stack_sigma": np.asarray(known.unknown_stack),
    }


def _width(eff: Efficiency, terms: dict[str, Numeric]) -> Numeric:
    return quadrature(*(np.multiply(getattr(eff, name), t) for name, t in terms.items()))


def quadrature(*sigmas: Numeric) -> Numeric:
    """Width of independent causes together: the root of the sum of squares."""
    return np.sqrt(sum(np.square(s) for s in sigmas))


def p10(p50: Numeric, sigma: Numeric, skew: Numeric = 0.0) -> Numeric:
    """Value that nine of ten outcomes exceed. `skew`: part by which the lower side is wider."""
    return p50 * np.exp(-Z_90 * np.multiply(sigma, np.add(1.0, skew)))


def p90(p50: Numeric, sigma: Numeric, skew: Numeric = 0.0) -> Numeric:
    """Value that one of ten outcomes exceeds. `skew`: part by which the upper side is narrower.

    >>> low, high = (float(f(100.0, 0.2, 0.5)) for f in (p10, p90))
    >>> round(low, 1), round(high, 1)
    (68.1, 113.7)
    """
    return p50 * np.exp(Z_90 * np.multiply(sigma, np.subtract(1.0, skew)))


def probability_above(limit: Numeric, *, p50: Numeric, sigma: Numeric) -> Numeric:
    """Probability that a log-normal outcome exceeds a limit.

    >>> float(probability_above(2.0, p50=2.0, sigma=0.1))
    0.5
    """
    z = np.log(np.asarray(limit) / p50) / sigma
    return 0.5 * _erfc(z / math.sqrt(2))


def _erfc(x: Numeric) -> Numeric:
    """Complementary error function; numpy has none."""
    return np.vectorize(math.erfc, otypes=[float])(x)

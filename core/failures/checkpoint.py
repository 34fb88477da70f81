"""Checkpoints: how long one takes, and the best interval between two of them.

Every machine writes and reads its own share, so that the bandwidth grows with the machines until
the storage gives no more. Asynchronous: training stops only while states are copied to the host.

Failures are exponential at a rate lambda (per second of uptime); C is how long a checkpoint stops
training, S how long its upload goes on behind training before it can be reloaded.

[Y74] Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974:
      core/failures/reliability.py.
[D06] Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future
      Generation Computer Systems 22(3), 2006: the higher order estimate.
[B11] Bougeret et al., "Checkpointing strategies for parallel jobs", SC 2011: the exact optimum for
      exponential failures, with Lambert's W.
[C96] Corless et al., "On the Lambert W function", Advances in Computational Mathematics 5, 1996:
      the series at the branch point, and Halley's iteration.
"""

from __future__ import annotations

import numpy as np

from core.numeric import Numeric

HALLEY_STEPS = 2  # Halley steps: each triples the digits, from two or more to all of them
NEAR_BRANCH = 0.5
BELOW_ONE = 1 - float(np.finfo(float).epsneg)


def one_plus_lambert_w0(y: Numeric) -> Numeric:
    """1 + W0(-exp(-1 - y)) for y >= 0, on the principal branch. [C96]

    Solved as log(1 - u) + u + y = 0 for u in [0, 1): near the branch point W itself would lose
    half of its digits, and u = 1 + W is what an interval is made of.

    >>> float(one_plus_lambert_w0(0.0)), round(float(one_plus_lambert_w0(0.1)), 6)
    (0.0, 0.383183)
    """
    y = np.asarray(y, dtype=float)
    p = np.sqrt(-2 * np.expm1(-np.minimum(y, NEAR_BRANCH)))
    x = -np.exp(-1 - y)
    u = np.where(
        y < NEAR_BRANCH,
        p - p**2 / 3 + 11 / 72 * p**3 - 43 / 540 * p**4,
        np.minimum(1 + x - x**2 + 1.5 * x**3, BELOW_ONE),
    )
    for _ in range(HALLEY_STEPS):
        left = 1 - u
        f = np.log1p(-u) + u + y
        slope = -u / left
        below = 2 * slope**2 + f / left**2
        u = u - np.divide(2 * f * slope, below, out=np.zeros_like(u), where=below > 0)
        u = np.clip(u, 0.0, BELOW_ONE)
    return u[()]


def best_interval_s(
    *, failures_per_s: Numeric, checkpoint_s: Numeric, least_s: Numeric = 0.0
) -> Numeric:
    """Seconds of work between checkpoints that minimise the expected time. Exact for exponential
    failures, whatever detection, reload and upload take: (1 + W0(-exp(-lambda C - 1))) / lambda.
    [B11]. Infinite without failures.

    `least_s`: the shortest allowed interval: a step, and with an upload of S seconds S - C.

    >>> round(float(best_interval_s(failures_per_s=1 / 11_135, checkpoint_s=10.0)), 1)
    465.3
    """
    rate = np.asarray(failures_per_s, dtype=float)
    exact = np.divide(
        one_plus_lambert_w0(rate * checkpoint_s),
        rate,
        out=np.full(np.broadcast_shapes(rate.shape, np.shape(checkpoint_s)), np.inf),
        where=rate > 0,
    )
    return np.maximum(exact, least_s)


def daly_interval_s(*, failures_per_s: Numeric, checkpoint_s: Numeric) -> Numeric:
    """Daly's estimate of the best interval: sqrt(2 C M) (1 + sqrt(C/2M)/3 + (C/2M)/9) - C
    where C < 2 M, else M; M is the mean time to failure. [D06]. Infinite without failures.

    >>> round(float(daly_interval_s(failures_per_s=1 / 11_135, checkpoint_s=10.0)), 1)
    465.3
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_s = np.divide(1.0, failures_per_s)
        ratio = np.multiply(checkpoint_s, failures_per_s) / 2
        estimate = (
            np.sqrt(2 * checkpoint_s * mean_s) * (1 + np.sqrt(ratio) / 3 + ratio / 9) - checkpoint_s
        )
        return np.where(ratio < 1, np.where(np.isinf(mean_s), np.inf, estimate), mean_s)


def write_s(*, size_bytes: Numeric, bytes_per_s: Numeric) -> Numeric:
    """Seconds to write, or to copy, one checkpoint at this rate; latency is neglected.

    >>> write_s(size_bytes=1e12, bytes_per_s=2.5e9)
    400.0
    """
    return size_bytes / bytes_per_s


def cluster_bytes_per_s(
    *, num_machines: Numeric, machine_bytes_per_s: Numeric, storage_bytes_per_s: Numeric
) -> Numeric:
    """Bandwidth of a whole job to its storage: min(machines x per machine, the storage's own).

    A machine is eight GPUs, as published rates count them; less than one has the link of one.

    >>> float(cluster_bytes_per_s(
    ...     num_machines=48.0, machine_bytes_per_s=1.2e9, storage_bytes_per_s=2e12)) / 1e9
    57.6
    """
    return np.minimum(np.maximum(num_machines, 1.0) * machine_bytes_per_s, storage_bytes_per_s)


def async_stop_s(*, blocked_s: Numeric, copy_s: Numeric, write_s: Numeric) -> Numeric:
    """Seconds that a checkpoint saved behind training stops it: what the stack blocks besides the
    copy to the host, and never longer than writing it at once.

    >>> float(async_stop_s(blocked_s=6.3, copy_s=0.2, write_s=120.0))
    6.5
    """
    return np.minimum(np.add(blocked_s, copy_s), write_s)


def restart_s(
    *, start_s: Numeric, join_s_per_gpu: Numeric, num_gpus: Numeric, load_s: Numeric
) -> Numeric:
    """Seconds from starting a job again until it trains: its processes, the communicators of all
    GPUs, which take turns, and reading the checkpoint.

    >>> float(restart_s(start_s=300.0, join_s_per_gpu=3e-3, num_gpus=10_000.0, load_s=10.0))
    340.0
    """
    return start_s + join_s_per_gpu * num_gpus + load_s

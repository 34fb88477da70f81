"""Failure rates of a job, waits for machines, and slowdown by straggling nodes.

A node here is eight GPUs, as published rates count them: an instance of four GPUs is half of one.
Failures are exponential and independent from node to node, except for shocks that stop the whole
job (software, maintenance, one power feed): [MO67] Marshall and Olkin, "A multivariate exponential
distribution", JASA 62(317), 1967, whose minimum is exponential at the sum of the rates.
[F57] Feller, "An Introduction to Probability Theory and Its Applications", vol. 1, VI.6 (Poisson).
[R53] Renyi, "On the theory of order statistics", 1953: the mean of the largest of N exponentials.
[P58] Palm's theorem: spares out for repair are Poisson, whatever the repair time's distribution.
"""

from __future__ import annotations

import numpy as np

from core.numeric import Numeric
from core.units import DAY_S

GPUS_PER_COUNTED_NODE = 8.0
EULER_GAMMA = 0.5772156649015329


def job_failures_per_s(
    *, num_gpus: Numeric, failures_per_node_day: Numeric, job_failures_per_day: Numeric = 0.0
) -> Numeric:
    """Rate at which a job that needs all of its GPUs is stopped: rates of nodes and shocks add up.
    [MO67]

    >>> rate = job_failures_per_s(num_gpus=16384.0, failures_per_node_day=3.79e-3)
    >>> round(1 / rate / 3600, 2)  # hours between failures; Llama 3 printed 419 in 54 days
    3.09
    """
    nodes = num_gpus / GPUS_PER_COUNTED_NODE
    return (nodes * failures_per_node_day + job_failures_per_day) / DAY_S


def exhausted_probability(*, failures_per_s: Numeric, repair_s: Numeric, spares: int) -> Numeric:
    """Probability that a node fails while every spare is out for repair: P(Poisson(lambda t) >= s).
    [P58], [F57]. Without spares it is 1.

    >>> round(float(exhausted_probability(failures_per_s=1e-5, repair_s=1e5, spares=2)), 4)
    0.2642
    """
    out_mean = np.asarray(np.multiply(failures_per_s, repair_s), dtype=float)
    term = np.exp(-out_mean)
    enough = np.zeros_like(out_mean)
    for n in range(spares):
        enough = enough + term
        term = term * out_mean / (n + 1)
    return np.clip(1 - enough, 0.0, 1.0)


def mean_wait_s(*, replacement_s: Numeric, exhausted_probability: Numeric) -> Numeric:
    """Mean wait for a node after a failure: a spare takes over at once, another machine does not.

    >>> float(mean_wait_s(replacement_s=3600.0, exhausted_probability=0.25))
    900.0
    """
    return np.multiply(replacement_s, exhausted_probability)


def elastic_wait_s(
    *, wait_s: Numeric, num_nodes: Numeric, min_nodes: Numeric, rejoin_s: Numeric
) -> Numeric:
    """Work that waiting for a machine costs a job that goes on with the others, at their share of
    its speed, and takes `rejoin_s` to start with all of them again; never more than to wait. A job
    that would be left with fewer than `min_nodes` waits.

    >>> float(elastic_wait_s(wait_s=7200.0, num_nodes=32, min_nodes=31, rejoin_s=300.0))
    525.0
    """
    less = np.divide(wait_s, num_nodes) + rejoin_s
    return np.where(np.subtract(num_nodes, 1) >= min_nodes, np.minimum(wait_s, less), wait_s)


def gang_start_s(*, num_nodes: Numeric, mean_start_s: Numeric) -> Numeric:
    """Mean time until the last of N nodes is up, each with an independent exponential start time:
    the harmonic number H_N times the mean. [R53]. H_N to nine digits by its asymptotic series.

    >>> round(float(gang_start_s(num_nodes=2.0, mean_start_s=60.0)), 4)
    90.0
    """
    shift = 9.0  # the series is used from N + 9 on, where it is exact to nine digits
    n = np.add(num_nodes, shift)
    series = np.log(n) + EULER_GAMMA + 1 / (2 * n) - 1 / (12 * n**2) + 1 / (120 * n**4)
    beyond = sum(1 / np.add(num_nodes, k) for k in range(1, int(shift) + 1))
    return (series - beyond) * mean_start_s


def straggler_slowdown(
    *, num_nodes: Numeric, slow_probability: Numeric, slow_fraction: Numeric
) -> Numeric:
    """Mean factor on the time of a synchronous step, where each node independently is slow by
    `slow_fraction` with probability `slow_probability`: one slow node slows all of them.

    >>> float(straggler_slowdown(num_nodes=1, slow_probability=0.5, slow_fraction=0.25))
    1.125
    """
    with np.errstate(divide="ignore"):
        any_slow = -np.expm1(np.multiply(num_nodes, np.log1p(-np.asarray(slow_probability))))
    return 1 + slow_fraction * any_slow

"""Spot machines in closed form: hazards, fleets, cost of a useful hour and break-even.

A job runs on capacity that is alternately up for Exp(lambda) and down for Exp(1/o), o the mean
outage. It pays a restart r whenever it starts anew, cuts its work into intervals tau, each followed
by a checkpoint C (a = tau + C), and loses what the last checkpoint does not hold. While spot is
down it waits, or falls back to on-demand after w of waiting, and goes back, with a checkpoint, when
spot returns. Renewal reward [R96], per cycle of one uptime and one outage, with the probabilities

    e  = 1 - e^(-lambda C (1 - C/2a))  spot goes again while the checkpoint of a return is written
                                       (which may have been begun)
    P  = e^(-(w+r)/o)                  on-demand gets to work before an outage ends
    h  = P e / (1 - e + P e)           a machine is still held when an outage starts
    P' = (1 - h) P + h                 any machine gets to work

gives the seconds of a cycle:

    useful    = tau e^(-lambda r) / (e^(lambda a) - 1) (1 - P' e)
                + P' o (1 - e^(-tau/o)) / (1 - e^(-a/o))
    spot      = (1 - P' e) / lambda
    on-demand = ((1 - h) e^(-w/o) + h) o + P' e / lambda
    time      = 1 / lambda + o

Validity: long runs, of many cycles, in which no start is free; spot that goes and comes back within
one checkpoint is neglected. core/failures/policies.py simulates this spell by spell (spot_only and
switch) on any trace.

[R96] Ross, "Stochastic Processes", 2nd ed., 1996, section 3.6: renewal reward.
[MO67] Marshall and Olkin, "A multivariate exponential distribution", JASA 62(317), 1967.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from core.errors import ScenarioError
from core.failures.checkpoint import best_interval_s
from core.failures.goodput import Job
from core.numeric import Numeric

HALVINGS = 60
ENDLESS = 1e12  # seconds of an outage, or preemptions per second, that count as infinite
TINY = float(np.finfo(float).tiny)
MOST_PER_S = 1.0  # spot that still pays at one preemption per second always pays


def hazard_per_s(*, interrupted_fraction: Numeric, period_s: Numeric) -> Numeric:
    """Constant rate at which this fraction is interrupted within the period: -ln(1 - f) / period.
    Infinite for a fraction of 1.

    >>> round(float(hazard_per_s(interrupted_fraction=0.05, period_s=30 * 86400.0)) * 86400, 5)
    0.00171
    """
    fraction = np.asarray(interrupted_fraction, dtype=float)
    if not ((fraction >= 0) & (fraction <= 1)).all():
        raise ScenarioError(
            "An interrupted fraction is a number between 0 and 1, not a percentage."
        )
    with np.errstate(divide="ignore"):
        return (-np.log1p(-fraction) / period_s)[()]


def band_hazards_per_s(
    *, low_fraction: float, high_fraction: float, period_s: float
) -> tuple[float, float, float]:
    """Hazards at the low end, the middle and the high end of a band of interrupted fractions. A
    band that is open above (20% to 100%) has an infinite high end.

    >>> low, middle, high = band_hazards_per_s(
    ...     low_fraction=0.05, high_fraction=0.1, period_s=30 * 86400.0)
    >>> [round(x * 86400, 5) for x in (low, middle, high)]
    [0.00171, 0.0026, 0.00351]
    """
    if low_fraction > high_fraction:
        raise ScenarioError("The low end of a band of interruptions is not above its high end.")
    ends = (low_fraction, (low_fraction + high_fraction) / 2, high_fraction)
    low, middle, high = (
        float(hazard_per_s(interrupted_fraction=f, period_s=period_s)) for f in ends
    )
    return low, middle, high


def fleet_preemptions_per_s(
    *, num_instances: Numeric, preemptions_per_s: Numeric, common_fraction: Numeric
) -> Numeric:
    """Rate at which a job that needs all N instances is stopped: lambda (c + (1 - c) N). [MO67]

    Each instance is preempted at lambda; a share c of these preemptions takes the whole fleet at
    once.

    >>> rate = fleet_preemptions_per_s(
    ...     num_instances=16, preemptions_per_s=1.0, common_fraction=0.95)
    >>> round(float(rate), 2)
    1.75
    """
    alone = np.subtract(1.0, common_fraction)
    return np.multiply(preemptions_per_s, np.add(common_fraction, alone * num_instances))


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotJob:
    """One long job on spot, or a column of them, with the symbols of the module."""

    preemptions_per_s: Numeric  # lambda of the fleet
    outage_s: Numeric  # o: mean time until spot is there again
    interval_s: Numeric  # tau: work between checkpoints
    checkpoint_s: Numeric  # C
    restart_s: Numeric  # r: until the job trains again, paid
    fall_back_after_s: Numeric = np.inf  # w: 0 at once, infinite: spot only


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Fractions of the elapsed time; spot, on-demand and waiting sum to 1."""

    useful: Numeric  # work that is kept
    spot: Numeric  # paid
    on_demand: Numeric  # paid
    waiting: Numeric  # not paid


def shares(job: SpotJob) -> Shares:
    """Where the time of a long run goes. [R96]

    >>> s = shares(SpotJob(preemptions_per_s=1 / 28_800, outage_s=7200.0, interval_s=900.0,
    ...     checkpoint_s=60.0, restart_s=480.0))
    >>> round(float(s.useful), 4), round(float(s.spot), 2)
    (0.7254, 0.8)
    """
    # Everything per 1/lambda, so that a rate of 0 is no case of its own; nor is an infinite one.
    rate = np.minimum(job.preemptions_per_s, ENDLESS)
    outage = np.minimum(job.outage_s, ENDLESS)
    a = np.add(job.interval_s, job.checkpoint_s)
    last_s = np.multiply(job.checkpoint_s, 1 - np.divide(job.checkpoint_s, 2 * a))
    eaten = -np.expm1(-rate * last_s)
    anew = _still_down(outage, np.add(job.fall_back_after_s, job.restart_s))
    held = anew * eaten / np.maximum(1 - eaten + anew * eaten, TINY)
    works = (1 - held) * anew + held
    falls_back = (1 - held) * _still_down(outage, job.fall_back_after_s) + held
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        working = np.expm1(-job.interval_s / outage) / np.expm1(-a / outage)
    down = rate * outage
    spot = 1 - works * eaten
    on_demand = down * falls_back + works * eaten
    useful = kept_share(job) * spot + down * works * np.where(outage > 0, working, 0.0)
    time = 1 + down
    return Shares(
        useful=(useful / time)[()],
        spot=(spot / time)[()],
        on_demand=(on_demand / time)[()],
        waiting=(down * (1 - falls_back) / time)[()],
    )


def also_preempted(
    job: Job,
    *,
    preemptions_per_s: Numeric,
    outage_s: Numeric,
    gang_start_s: Numeric,
    zones: Numeric = 1,
) -> tuple[Job, Job]:
    """A job that fails and is preempted, too, on spot alone; and the part of it that is paid, in
    which an outage takes no time.

    After a stop a preempted job waits for an outage, exponential, and a failed one for its
    repair: the stops are mixed, with the mean and the variance of the mixture. The fixed part of
    it is negative where the mixture is wider than an exponential. Then every machine starts.

    `zones`: independent zones, each with these preemptions and outages. A preempted job waits only
    if no other zone is up, and then for the first outage to end: an exponential of o / zones. The
    share of preemptions that find none up is that of a birth-death process of zones that are up.
    """
    rate = np.add(job.failures_per_s, preemptions_per_s)
    share = np.divide(preemptions_per_s, rate, out=np.zeros_like(rate), where=rate > 0)
    fixed, wait = job.down_s, job.wait_s
    both = replace(job, failures_per_s=rate, reload_s=np.add(job.reload_s, gang_start_s))
    up = 1 / (1 + np.multiply(preemptions_per_s, outage_s))
    last_up = zones * np.power(1 - up, np.subtract(zones, 1)) * up
    none_up = last_up / (1 - np.power(1 - up, zones))

    def stopped(outage: Numeric) -> Job:
        mean = share * none_up * outage + (1 - share) * np.add(fixed, wait)
        square = share * none_up * 2 * np.square(outage) + (1 - share) * (
            np.square(np.add(fixed, wait)) + np.square(wait)
        )
        deviation = np.sqrt(np.maximum(square - np.square(mean), 0.0))
        return replace(both, down_s=mean - deviation, wait_s=deviation)

    return stopped(np.divide(outage_s, zones)), stopped(0.0)


def kept_share(job: SpotJob) -> Numeric:
    """Share of an uptime on spot that is work and is kept: lambda tau e^(-lambda r) /
    (e^(lambda a) - 1). 1 - C/a without preemptions, towards 0 with more of them."""
    rate = np.minimum(job.preemptions_per_s, ENDLESS)
    a = np.add(job.interval_s, job.checkpoint_s)
    x = rate * a
    with np.errstate(over="ignore", invalid="ignore"):
        intervals = np.where(x > 0, x / np.expm1(x), 1.0)
        return np.exp(-rate * job.restart_s) * intervals * (job.interval_s / a)


def break_even_preemptions_per_s(
    *,
    spot_usd_per_hour: Numeric,
    on_demand_usd_per_hour: Numeric,
    checkpoint_s: Numeric,
    restart_s: Numeric,
    interval_s: Numeric | None = None,
) -> Numeric:
    """Preemptions per second above which a useful hour on spot alone costs more than on-demand.

    Spot is paid while it is up, and waiting is free, so the length of outages does not matter.
    `interval_s`: work between checkpoints on both; None: on spot the best at each rate, on
    on-demand, which is not preempted, none. Infinite: spot always pays (it is free). 0: never.

    >>> rate = break_even_preemptions_per_s(spot_usd_per_hour=1.0, on_demand_usd_per_hour=3.0,
    ...     interval_s=900.0, checkpoint_s=60.0, restart_s=480.0)
    >>> round(float(rate) * 86400)
    95
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.divide(spot_usd_per_hour, on_demand_usd_per_hour)

    def pays(rate: Numeric) -> Numeric:
        tau = interval_s
        if tau is None:
            tau = best_interval_s(failures_per_s=rate, checkpoint_s=checkpoint_s, least_s=1.0)
        job = SpotJob(
            preemptions_per_s=rate,
            outage_s=0.0,
            interval_s=tau,
            checkpoint_s=checkpoint_s,
            restart_s=restart_s,
        )
        on_demand = 1.0 if interval_s is None else np.divide(tau, np.add(tau, checkpoint_s))
        return kept_share(job) > ratio * on_demand

    low, high = np.zeros_like(ratio, dtype=float), np.full_like(ratio, MOST_PER_S, dtype=float)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        cheaper = pays(middle)
        low, high = np.where(cheaper, middle, low), np.where(cheaper, high, middle)
    found = np.where(low > MOST_PER_S * (1 - 1e-9), np.inf, low)
    dearer = np.greater_equal(spot_usd_per_hour, on_demand_usd_per_hour)
    return np.where(np.equal(spot_usd_per_hour, 0), np.inf, np.where(dearer, 0.0, found))[()]


def _still_down(outage_s: Numeric, after_s: Numeric) -> Numeric:
    """Probability that an outage lasts longer; none outlasts an infinite wait."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(
            np.isinf(after_s) | np.equal(outage_s, 0), 0.0, np.exp(-np.divide(after_s, outage_s))
        )

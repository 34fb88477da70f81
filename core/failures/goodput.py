"""Time of a job that fails and restarts: its mean, its variance and its lost parts, exactly.

W seconds of work are cut into n segments of tau = W/n, each followed by a checkpoint that stops
training for C; its upload takes S more behind training (0: the checkpoint blocks until it is
safe). Uptimes are exponential at the rate lambda, renewed at each restart. A failure costs D (to
notice it and to start again: no failure counts during it), a wait for a machine (exponential of
mean V) and a reload of R, which failures may hit, too; work goes on from the last checkpoint whose
upload had ended. With a = tau + C,

    E[uptime] = (n e^(lambda (R+S)) (e^(lambda a) - 1) + e^(lambda R) (e^(lambda S) - 1)) / lambda
    E[failures] = lambda E[uptime],    E[T] = E[uptime] + E[failures] (D + V)

For S = 0 this is [B11] and, with D = V = 0, [D06]. S enters as a reload does, because k checkpoints
are safe once an uptime exceeds R + S + k a (derived here, tested by core/failures/monte_carlo.py).
Validity: an upload ends before the next starts (S <= a). The last segment carries a checkpoint,
too.

[D06] Daly, Future Generation Computer Systems 22(3), 2006. [B11] Bougeret et al., "Checkpointing
strategies for parallel jobs", SC 2011. [W45] Wald's identity: each failure ends
one exponential uptime, so that failures are lambda times uptime. [ML] Google, "Introducing ML
Productivity Goodput", 2024: the buckets of badput.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from core.failures.checkpoint import best_interval_s
from core.numeric import Numeric

SMALL = 0.05  # of lambda x, below which moments are summed as series


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job, or a column of jobs."""

    work_s: Numeric  # W: in steady state, at the real speed
    interval_s: Numeric  # tau: work between checkpoints; infinite: one at the end
    checkpoint_s: Numeric  # C
    failures_per_s: Numeric  # lambda of the whole job
    upload_s: Numeric = 0.0  # S
    down_s: Numeric = 0.0  # D: detection and start
    wait_s: Numeric = 0.0  # V: mean wait for a machine
    reload_s: Numeric = 0.0  # R: initialisation, and reading the checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Badput:
    """Expected seconds that are not work; with the work they add up to the expected time. [ML]"""

    checkpoint_s: Numeric  # stopped to write checkpoints that were kept
    rework_s: Numeric  # work, and its checkpoints, that a failure undid
    restart_s: Numeric  # noticing, starting and reloading
    waiting_s: Numeric  # for a machine


def num_segments(job: Job) -> Numeric:
    """n: whole segments, at least one."""
    return np.maximum(np.ceil(np.divide(job.work_s, job.interval_s) - 1e-9), 1.0)


def segment_s(job: Job) -> Numeric:
    """a: one segment with its checkpoint."""
    return job.work_s / num_segments(job) + job.checkpoint_s


def failure_free_s(job: Job) -> Numeric:
    """Seconds without any failure: work, checkpoints, the last upload."""
    return num_segments(job) * segment_s(job) + job.upload_s


def no_failure_probability(job: Job) -> Numeric:
    """Probability that no failure happens at all."""
    return np.exp(-np.multiply(job.failures_per_s, failure_free_s(job)))


def attempt_probability(job: Job) -> Numeric:
    """Probability that an attempt from a reload reaches its next checkpoint."""
    return np.exp(-np.multiply(job.failures_per_s, job.reload_s + job.upload_s + segment_s(job)))


def uptime_s(job: Job) -> Numeric:
    """Expected seconds that the machines compute, write or reload. Infinite: never finishes.

    >>> round(uptime_s(Job(work_s=1e4, interval_s=1e4, checkpoint_s=0.0, failures_per_s=1e-4)))
    17183
    """
    rate = job.failures_per_s
    with np.errstate(over="ignore"):
        chain = np.exp(np.multiply(rate, np.add(job.reload_s, job.upload_s)))
        first = np.exp(np.multiply(rate, job.reload_s))
        segments = num_segments(job) * _growth_s(rate, segment_s(job))
        return _product(chain, segments) + _product(first, _growth_s(rate, job.upload_s))


def expected_failures(job: Job) -> Numeric:
    """Mean number of failures, those during a reload included. [W45]"""
    return np.multiply(job.failures_per_s, uptime_s(job))


def expected_s(job: Job) -> Numeric:
    """E[T], mean seconds from the start of training to the last checkpoint.

    >>> hour = 3600.0
    >>> job = Job(work_s=24 * hour, interval_s=465.0, checkpoint_s=10.0, down_s=300.0,
    ...     reload_s=300.0, failures_per_s=1 / (3.093 * hour))
    >>> round(float(expected_s(job)) / hour, 2)
    26.42
    """
    up = uptime_s(job)
    down = np.add(job.down_s, job.wait_s)
    return up + _product(np.multiply(job.failures_per_s, up), down)


def goodput(job: Job) -> Numeric:
    """Share of the expected time that is work and was kept: 1 without failures or checkpoints."""
    return job.work_s / expected_s(job)


def at_best_interval(job: Job, *, least_s: Numeric) -> Job:
    """The job with the interval that minimises its expected time, as whole segments: the time is
    convex in their number, so the best is one of the two whole numbers around the ideal. [B11]

    `least_s`: the shortest allowed interval in seconds of work, above 0: a step; S - C.
    """
    ideal = best_interval_s(
        failures_per_s=job.failures_per_s, checkpoint_s=job.checkpoint_s, least_s=least_s
    )
    most = np.maximum(np.floor(np.divide(job.work_s, least_s) + 1e-9), 1.0)
    fewer = np.clip(np.floor(np.divide(job.work_s, ideal)), 1.0, most)
    more = np.minimum(fewer + 1, most)
    low, high = (replace(job, interval_s=job.work_s / n) for n in (fewer, more))
    best = np.where(uptime_s(low) <= uptime_s(high), low.interval_s, high.interval_s)
    return replace(job, interval_s=best[()])


def variance_s2(job: Job) -> Numeric:
    """Variance of the time, in square seconds.

    A segment takes a, and for each of its K failures (geometric) F of uptime, exponential but
    shorter than a, and G until the next reload has ended: K, F and G are independent.
    """
    rate, reload = job.failures_per_s, np.add(job.reload_s, job.upload_s)
    down, wait = job.down_s, job.wait_s
    with np.errstate(over="ignore", invalid="ignore"):
        lost_mean, lost_var = _cut_short(rate, reload)
        again = np.expm1(np.multiply(rate, reload))  # mean failures of one reload
        g_mean = again * (down + wait + lost_mean) + down + wait + reload
        g_var = (
            again * (wait**2 + lost_var)
            + again * (1 + again) * (down + wait + lost_mean) ** 2
            + wait**2
        )
        f_mean, f_var = _cut_short(rate, segment_s(job))
        fails = np.expm1(np.multiply(rate, segment_s(job)))
        of_segment = fails * (f_var + g_var) + fails * (1 + fails) * (f_mean + g_mean) ** 2
        found = num_segments(job) * of_segment + _first_upload_s2(job, g_mean, g_var)
    return np.where(np.isfinite(uptime_s(job)), found, np.inf)[()]


def badput(job: Job) -> Badput:
    """What the expected time goes to apart from work. Finite only where the expected time is."""
    up, failures = uptime_s(job), expected_failures(job)
    checkpoints = num_segments(job) * job.checkpoint_s + job.upload_s
    # A failure starts one reload, which the next failure may cut short.
    rate = np.asarray(job.failures_per_s)
    reload = failures * _decay_s(rate, job.reload_s)
    return Badput(
        checkpoint_s=checkpoints,
        rework_s=np.maximum(up - job.work_s - checkpoints - reload, 0.0),
        restart_s=reload + failures * job.down_s,
        waiting_s=failures * job.wait_s,
    )


def _first_upload_s2(job: Job, g_mean: Numeric, g_var: Numeric) -> Numeric:
    """Variance of the last upload, which no segment hides: it succeeds or is restarted once."""
    rate, upload = job.failures_per_s, job.upload_s
    f_mean, f_var = _cut_short(rate, upload)
    fails = -np.expm1(-np.multiply(rate, upload))
    more = f_mean + g_mean - upload
    return fails * (f_var + g_var) + fails * (1 - fails) * more**2


def _growth_s(rate: Numeric, x: Numeric) -> Numeric:
    """(e^(lambda x) - 1) / lambda, which is x where lambda is 0."""
    return _per_rate(np.expm1(np.multiply(rate, x)), rate, x)


def _decay_s(rate: Numeric, x: Numeric) -> Numeric:
    """(1 - e^(-lambda x)) / lambda: the mean uptime up to x."""
    return _per_rate(-np.expm1(-np.multiply(rate, x)), rate, x)


def _per_rate(value: Numeric, rate: Numeric, at_zero: Numeric) -> Numeric:
    value, rate, at_zero = np.broadcast_arrays(value, np.asarray(rate, dtype=float), at_zero)
    return np.divide(value, rate, out=np.array(at_zero, dtype=float), where=rate > 0)[()]


def _product(many: Numeric, seconds: Numeric) -> Numeric:
    """A product in which zero times infinity is zero."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(np.asarray(seconds) == 0, 0.0, np.multiply(many, seconds))[()]


def _cut_short(rate: Numeric, x: Numeric) -> tuple[Numeric, Numeric]:
    """Mean and variance of an exponential uptime that ended before x:
    x (1/z - 1/(e^z - 1)) and x^2 (1/z^2 - 1/(4 sinh^2(z/2))), z = lambda x."""
    z = np.asarray(np.multiply(rate, x), dtype=float)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        safe = np.where(z < SMALL, 1.0, z)
        mean = np.where(
            z < SMALL, 0.5 - z / 12 + z**3 / 720 - z**5 / 30240, 1 / safe - 1 / np.expm1(safe)
        )
        var = np.where(
            z < SMALL,
            1 / 12 - z**2 / 240 + z**4 / 6048,
            1 / safe**2 - 1 / (4 * np.sinh(safe / 2) ** 2),
        )
    return mean * x, var * np.square(x)

"""What a run takes and costs: hours, dollars by term, and what has to be paid for it.

A run is a start-up and its training (core/cost/training.py), which takes an uncertain factor longer
than forecast. Machines are paid from their request to the end of the run, and at least for the
seller's least; the price may have moved since it was seen. Storage and power follow the hours,
traffic is paid once, credits pay at most for everything. The means of the terms add up to the mean
of the total; their quantiles do not, since not everything goes badly at once.

A commitment is signed for as a whole: every term of a reservation that the run begins, the whole
window of a capacity block. `total` is the run's own share of a reservation, `paid` the commitment.
A reservation whose utilisation is given is shared: others bear the rest of it.

Validity: tests/core/cost/test_run_cost.py states how far this is from a simulation of the events. A
mean above the P90 is possible only where fewer than one run in ten fails, at a cost beyond all
other uncertainty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.cost.distribution import (
    Column,
    Cumulants,
    ShiftedLogNormal,
    at_uncertain_price,
    at_uncertain_speed,
    fitted,
    normal_below,
    sure,
)
from core.cost.training import CAUSES, LOST_TO_FAILURES, Training
from core.cost.uncertain import Uncertain, Value, certain, number_of_row
from core.failures.goodput import Job
from core.failures.time_factor import factor_at, factor_cumulants
from core.money.purchase import block_hours, num_terms
from core.numeric import Z_90, Numeric, as_float
from core.units import HOUR_S

# The terms of a cost, in the order of a bill. Only credits are negative.
TERMS = (
    "compute", "checkpoints", "failures", "waiting", "preemption", "startup", "commitment",
    "checkpoint_storage", "data_storage", "egress", "experiments", "electricity", "credits",
)  # fmt: skip
OF_MACHINES = TERMS[:6]  # what the machines cost while the run has them
MOST_TERMS = 6  # terms of a reservation whose chance is told apart
Z_OF = (-Z_90, 0.0, Z_90)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTerms:
    """What turns a training into a whole run: of one run, or columns of many."""

    startup_hours: Numeric
    least_billed_hours: Numeric
    usd_per_hour: Numeric  # of all machines; NaN: no price
    sigma: Numeric  # of the logarithm of the speed
    price_sigma: Numeric  # of the logarithm of the price
    skew: Numeric = 0.0  # part by which `sigma` is more towards slower, and less towards faster
    correction: Numeric = 1.0  # factor on time for choosing the fastest forecast of several
    checkpoint_usd_per_hour: Numeric = 0.0  # storage
    data_usd_per_hour: Numeric = 0.0  # storage
    egress_usd: Numeric = 0.0
    credit_usd: Numeric = 0.0
    power_usd_per_hour: Numeric = 0.0  # of owned machines while they train
    idle_power_usd_per_hour: Numeric = 0.0  # while they wait
    experiment_share: float = 0.0  # GPU-hours of failed runs and ablations over those of the run
    term_hours: Numeric = 0.0  # of a reservation; 0: none
    utilisation: float | None = None  # share of a reservation that is used; None: only by this run
    is_block: Numeric = False  # a capacity block, which is paid whole
    block_days: float | None = None  # its window; None: the shortest that holds the P90
    deadline_hours: float | None = None
    budget_usd: float | None = None

    def take(self, rows: NDArray[np.intp]) -> RunTerms:
        """These rows of columns."""
        columns: dict[str, Any] = {}
        for field in fields(RunTerms):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray) and value.ndim:
                columns[field.name] = value[rows]
        return replace(self, **columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostBasis:
    """What a cost follows from: of one run, or of a column of runs."""

    job: Job  # with machine failures alone, at the interval between checkpoints in use
    stopped: Job  # the same with preemptions of spot
    training: Training
    run: RunTerms

    def take(self, rows: NDArray[np.intp]) -> CostBasis:
        """These rows of a column of runs."""
        return CostBasis(
            job=job_rows(self.job, rows), stopped=job_rows(self.stopped, rows),
            training=self.training.take(rows), run=self.run.take(rows),
        )  # fmt: skip

    def cost(self, *, with_terms: bool = False) -> RunCost:
        """The cost of the runs; `with_terms`: dollars by term, too."""
        return run_cost(self.training, self.run, with_terms=with_terms)


def job_rows(job: Job, rows: NDArray[np.intp]) -> Job:
    """These rows of a column of jobs."""
    columns = {f.name: np.asarray(getattr(job, f.name), dtype=float) for f in fields(Job)}
    return Job(**{name: x[rows] if x.ndim else x for name, x in columns.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCost:
    """Hours and dollars of one run, or of a column of runs."""

    hours: Uncertain  # from the request of the machines to the end
    total: Uncertain  # USD of the run; NaN: no price
    paid: Uncertain  # USD that are signed for: whole terms of a reservation, whole blocks
    chance_on_time: Value  # NaN: no deadline
    chance_in_budget: Value  # that `paid` keeps to the budget; NaN: no budget or no price
    failure_free_hours: Uncertain
    failure_free: Uncertain  # USD without failures, at the price as seen
    failures_only_hours: Value  # mean with failures, at the forecast speed
    failures_only_usd: Value  # and at the price as seen
    uncorrected_hours: Value  # mean before the correction for choosing the fastest forecast
    uncorrected_usd: Value
    paid_hours: Value  # mean hours of each machine that are paid
    committed_usd: Value  # mean of whole terms or of the block, machines alone; 0: none
    num_terms: Value  # of a reservation; 0: none
    window_hours: Value  # of a capacity block; 0: none
    goodput: Value  # share of the mean time with failures that is work at the forecast speed
    failures: Value  # expected number
    hour_terms: Mapping[str, Value]  # mean hours by cause; they add up to hours.mean
    finish: ShiftedLogNormal  # hours of the training, start-up not included
    terms: Mapping[str, Uncertain] | None = None  # USD by term of `TERMS`; None: not asked for

    @property
    def has_price(self) -> bool:
        """Whether the machines have a price."""
        return not bool(np.isnan(self.total.mean).any())

    @property
    def commits(self) -> bool:
        """Whether more is signed for than the run uses."""
        return self.has_price and as_float(self.paid.mean) > as_float(self.total.mean) * (1 + 1e-9)

    def row(self, number: int) -> RunCost:
        """The cost of one run of a column, as plain numbers."""

        def of_row(value: Any) -> Any:
            if isinstance(value, Uncertain):
                return value.row(number)
            if isinstance(value, ShiftedLogNormal):
                return _fit_of_row(value, number)
            if isinstance(value, Mapping):
                return {name: of_row(x) for name, x in value.items()}
            return None if value is None else number_of_row(value, number)

        return RunCost(**{f.name: of_row(getattr(self, f.name)) for f in fields(RunCost)})

    def done_within(self, hours: Numeric) -> Column:
        """Chance that a run ends within these hours of the request of its machines."""
        started = np.subtract(hours, self.hour_terms["startup"])
        chance = self.finish.below(started)
        free = np.subtract(self.failure_free_hours.p10, self.hour_terms["startup"])
        return np.where(started < np.minimum(free, self.finish.shift), 0.0, chance)


@np.errstate(invalid="ignore", divide="ignore", over="ignore")
def run_cost(training: Training, run: RunTerms, *, with_terms: bool = False) -> RunCost:
    """The cost of a run, or of a column of runs; `with_terms`: dollars by term, too.

    >>> from core.cost.training import training_of_job
    >>> from core.failures.goodput import Job
    >>> job = Job(work_s=36e5, interval_s=36e5, checkpoint_s=0.0, failures_per_s=0.0)
    >>> training = training_of_job(work_s=36e5, job=job, paid=job, failing=job)
    >>> cost = run_cost(training, RunTerms(startup_hours=1.0, least_billed_hours=0.0,
    ...     usd_per_hour=2.0, sigma=0.1, price_sigma=0.0, deadline_hours=1001.0))
    >>> [round(float(x), 1) for x in (cost.hours.p50, cost.hours.mean, cost.total.p50)]
    [1001.0, 1006.0, 2002.0]
    >>> round(float(cost.chance_on_time), 3)
    0.5
    """
    start = np.asarray(run.startup_hours, dtype=float)
    finish = fitted(_stretched(training.elapsed, run))
    free_hours = _failure_free_hours(training, run, start)
    hours = _hours(finish, start, training, run)
    billed = finish
    if training.paid is not training.elapsed:
        billed = fitted(_stretched(training.paid, run))
    rented = billed.at_least(start, np.asarray(run.least_billed_hours, dtype=float))
    hour_terms = _hour_terms(training, run, start)
    window_hours = np.where(run.is_block, _window_hours(hours, run), 0.0)
    machines = _machines(rented, window_hours, run)
    follow = _following(finish, hours, hour_terms, run)
    total, whole = _total(machines, follow, run, start)
    num_of_terms = _num_terms(hours.mean, run)
    paid = _paid(total, hours, whole.once_usd, run)
    days, budget = run.deadline_hours, run.budget_usd
    cost = RunCost(
        hours=hours,
        total=total,
        paid=paid,
        chance_on_time=np.nan if days is None else finish.below(days - start),
        chance_in_budget=np.nan
        if budget is None
        else _in_budget(budget, whole, finish, start, run),
        failure_free_hours=free_hours,
        failure_free=_usd_at(free_hours, run),
        failures_only_hours=start + np.asarray(training.failing.mean) / HOUR_S,
        failures_only_usd=_usd_at(
            certain(start + np.asarray(training.failing.mean) / HOUR_S), run
        ).mean,
        uncorrected_hours=hours.mean,
        uncorrected_usd=total.mean,
        paid_hours=np.where(run.is_block, window_hours, rented.mean),
        committed_usd=_committed_usd(num_of_terms, window_hours, run),
        num_terms=num_of_terms,
        window_hours=window_hours,
        goodput=np.where(
            np.isfinite(training.failing.mean),
            training.parts_s["training"] / training.failing.mean,
            0.0,
        ),
        failures=training.failures,
        hour_terms=hour_terms,
        finish=finish,
        terms=_terms(training, run, rented, machines, follow, hour_terms) if with_terms else None,
    )
    if np.any(np.asarray(run.correction) != 1.0):
        before = run_cost(training, replace(run, correction=1.0))
        return replace(cost, uncorrected_hours=before.hours.mean, uncorrected_usd=before.total.mean)
    return cost


def failure_free_usd(hours: Numeric, run: RunTerms) -> Numeric:
    """Dollars of a run that takes these hours, start-up included, at the price as seen."""
    machines = np.multiply(run.usd_per_hour, np.maximum(hours, run.least_billed_hours))
    stored = np.add(run.checkpoint_usd_per_hour, run.data_usd_per_hour)
    usd = machines + np.multiply(stored, hours) + run.egress_usd
    return np.maximum(usd - run.credit_usd, 0.0)


def _stretched(seconds: Cumulants, run: RunTerms) -> Cumulants:
    """Hours at the uncertain speed."""
    return at_uncertain_speed(
        seconds, sigma=run.sigma, skew=run.skew, correction=run.correction
    ).times(1 / HOUR_S)


def _mean_factor(run: RunTerms) -> Numeric:
    """Mean of how much longer than forecast the work takes."""
    return run.correction * factor_cumulants(run.sigma, run.skew)[0]


def _failure_free_hours(training: Training, run: RunTerms, start: Column) -> Uncertain:
    work = np.multiply(training.parts_s["training"], run.correction) / HOUR_S
    p10, p50, p90 = (start + work * factor_at(z, run.sigma, run.skew) for z in Z_OF)
    mean = start + work * factor_cumulants(run.sigma, run.skew)[0]
    return Uncertain(mean=mean, p10=p10, p50=p50, p90=p90)


def _hours(finish: ShiftedLogNormal, start: Column, training: Training, run: RunTerms) -> Uncertain:
    """Hours of the whole run: no quantile is below that of a run without failures."""
    free = np.multiply(training.failure_free_s, run.correction) / HOUR_S
    p10, p50, p90 = (start + free * factor_at(z, run.sigma, run.skew) for z in Z_OF)
    return finish.uncertain(start).at_least(Uncertain(mean=0.0, p10=p10, p50=p50, p90=p90))


def _hour_terms(training: Training, run: RunTerms, start: Column) -> dict[str, Numeric]:
    longer = _mean_factor(run) / HOUR_S
    parts = {cause: np.multiply(training.parts_s[cause], longer) for cause in CAUSES}
    return parts | {"startup": start}


def _window_hours(hours: Uncertain, run: RunTerms) -> Numeric:
    if run.block_days is not None:
        return run.block_days * 24.0
    return block_hours(run_hours=hours.p90)


def _machines(rented: Cumulants, window_hours: Numeric, run: RunTerms) -> Cumulants:
    """Dollars of the machines while the run has them, or of the whole block."""
    share = 1.0 if run.utilisation is None else 1.0 / run.utilisation
    shared = np.where(np.asarray(run.term_hours) > 0, share, 1.0)
    hours = rented.times(shared)
    block = sure(window_hours)
    rows = np.asarray(run.is_block, dtype=bool)
    if rows.any():
        hours = Cumulants(
            mean=np.where(rows, block.mean, hours.mean),
            variance=np.where(rows, 0.0, hours.variance),
            third=np.where(rows, 0.0, hours.third),
        )
    return at_uncertain_price(hours, sigma=run.price_sigma, price=run.usd_per_hour)


def _following(
    finish: ShiftedLogNormal, hours: Uncertain, hour_terms: Mapping[str, Numeric], run: RunTerms
) -> Cumulants:
    """Dollars that follow the hours of the run: storage and power."""
    stored = np.add(run.checkpoint_usd_per_hour, run.data_usd_per_hour)
    idle = np.add(hour_terms["waiting"], hour_terms["startup"])
    power = np.multiply(run.power_usd_per_hour, np.maximum(hours.mean - idle, 0.0))
    power = power + np.multiply(run.idle_power_usd_per_hour, idle)
    mean = np.multiply(stored, hours.mean) + power * (1 + run.experiment_share)
    rate = np.where(np.isfinite(hours.mean) & (mean > 0), mean / hours.mean, 0.0)
    spread = finish.cumulants.times(rate)
    return Cumulants(mean=mean, variance=spread.variance, third=spread.third)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Whole:
    """The distribution of the dollars of a run, less a certain part."""

    usd: ShiftedLogNormal
    once_usd: Numeric  # mean of everything but the machines, credits included


def _total(
    machines: Cumulants, follow: Cumulants, run: RunTerms, start: Column
) -> tuple[Uncertain, _Whole]:
    """Dollars of the whole run; nobody pays less than the seller's least, nor less than nothing."""
    of_machines = machines.times(1 + run.experiment_share)
    both = of_machines
    if np.any(np.asarray(follow.mean) > 0):
        both = of_machines.with_comonotone(follow)
    usd = fitted(both)
    once = np.subtract(run.egress_usd, run.credit_usd)
    least = np.maximum(np.asarray(run.least_billed_hours, dtype=float), start)
    p10, p50, p90 = (
        run.usd_per_hour * least * np.exp(z * np.asarray(run.price_sigma)) + once for z in Z_OF
    )
    total = usd.uncertain(once).at_least(Uncertain(mean=0.0, p10=p10, p50=p50, p90=p90))
    return total.at_least(certain(0.0)), _Whole(usd=usd, once_usd=np.add(follow.mean, once))


def _num_terms(hours: Numeric, run: RunTerms) -> Numeric:
    """Terms of a reservation that a run of these hours begins; 0: none is bought."""
    term = np.asarray(run.term_hours, dtype=float)
    terms = num_terms(run_hours=hours, term_hours=np.where(term > 0, term, np.inf))
    return np.where(term > 0, terms, 0.0)


def _committed_usd(terms: Numeric, window_hours: Numeric, run: RunTerms) -> Numeric:
    hours = terms * np.asarray(run.term_hours, dtype=float) + window_hours
    price = run.usd_per_hour * np.exp(np.square(run.price_sigma) / 2)
    return np.where(hours > 0, hours * price, 0.0)


def _is_committed(run: RunTerms) -> NDArray[np.bool_]:
    """Which runs sign for whole terms that nobody else uses."""
    return (np.asarray(run.term_hours) > 0) & (run.utilisation is None)


def _paid(total: Uncertain, hours: Uncertain, once: Numeric, run: RunTerms) -> Uncertain:
    """Dollars that are signed for: whole terms where a reservation is this run's alone."""
    rows = _is_committed(run)
    if not rows.any():
        return total
    term_usd = np.multiply(run.usd_per_hour, run.term_hours)
    sigma = np.asarray(run.price_sigma)

    def usd(at_hours: Numeric, moved: Numeric) -> Numeric:
        return np.maximum(_num_terms(at_hours, run) * term_usd * moved + once, 0.0)

    whole = Uncertain(
        mean=usd(hours.mean, np.exp(np.square(sigma) / 2)),
        p10=usd(hours.p10, np.exp(-Z_90 * sigma)),
        p50=usd(hours.p50, 1.0),
        p90=usd(hours.p90, np.exp(Z_90 * sigma)),
    )
    return whole.where(rows, total)


def _in_budget(
    budget_usd: float, whole: _Whole, finish: ShiftedLogNormal, start: Column, run: RunTerms
) -> Numeric:
    """Chance that what is paid keeps to a budget; NaN without a price."""
    once = np.subtract(run.egress_usd, run.credit_usd)
    chance = np.where(
        np.isnan(whole.usd.cumulants.mean), np.nan, whole.usd.below(budget_usd - once)
    )
    # A cost that nothing makes uncertain has no width.
    is_sure = np.asarray(whole.usd.scale) == 0
    kept = np.asarray(whole.usd.cumulants.mean + once <= budget_usd, dtype=float)
    chance = np.where(is_sure, kept, chance)
    rows = _is_committed(run)
    if not rows.any():
        return chance
    term = np.asarray(run.term_hours, dtype=float)
    left = budget_usd - whole.once_usd
    committed: Numeric = 0.0
    ended: Numeric = 0.0
    for number in range(1, MOST_TERMS + 1):
        within = finish.below(number * term - start)
        term_usd = number * term * np.asarray(run.usd_per_hour)
        sigma = np.asarray(run.price_sigma, dtype=float)
        z = np.log(np.maximum(left, 0.0) / term_usd) / np.where(sigma > 0, sigma, 1e-12)
        committed = committed + np.maximum(within - ended, 0.0) * normal_below(z)
        ended = within
    return np.where(rows, committed, chance)


def _usd_at(hours: Uncertain, run: RunTerms) -> Uncertain:
    return Uncertain(
        mean=failure_free_usd(hours.mean, run), p10=failure_free_usd(hours.p10, run),
        p50=failure_free_usd(hours.p50, run), p90=failure_free_usd(hours.p90, run),
    )  # fmt: skip


def _terms(
    training: Training, run: RunTerms, rented: Cumulants, machines: Cumulants, follow: Cumulants,
    hour_terms: Mapping[str, Numeric],
) -> dict[str, Uncertain]:  # fmt: skip
    """Dollars by term: means add up to the mean of the total."""

    def of_seconds(seconds: Cumulants) -> Uncertain:
        hours = _stretched(seconds, run)
        usd = at_uncertain_price(hours, sigma=run.price_sigma, price=run.usd_per_hour)
        return fitted(usd).uncertain().at_least(certain(0.0))

    parts = training.parts_s
    lost = sum(np.asarray(parts[cause]) for cause in LOST_TO_FAILURES)
    share = np.where(lost > 0, parts["waiting"] / np.where(lost > 0, lost, 1.0), 0.0)
    failing = Cumulants(mean=lost, variance=training.failing.variance, third=training.failing.third)
    others = sum(np.asarray(s) for cause, s in parts.items() if cause != "preemption")
    preempted = np.subtract(training.paid.mean, others)
    more = np.maximum(np.subtract(training.paid.variance, training.failing.variance), 0.0)
    longer = np.maximum(np.subtract(training.paid.third, training.failing.third), 0.0)
    terms = {
        "compute": of_seconds(sure(parts["training"])),
        "checkpoints": of_seconds(sure(np.add(parts["slow_nodes"], parts["checkpoint"]))),
        "failures": of_seconds(failing.times(1 - share)),
        "waiting": of_seconds(failing.times(share)),
        "preemption": of_seconds(Cumulants(mean=preempted, variance=more, third=longer)),
    }
    price = run.usd_per_hour * np.exp(np.square(run.price_sigma) / 2)
    trained = _stretched(training.paid, run).mean
    terms["startup"] = certain(price * np.maximum(np.subtract(rented.mean, trained), 0.0))
    used = sum(np.asarray(terms[name].mean) for name in OF_MACHINES)
    terms["commitment"] = certain(np.where(_has_commitment(run), machines.mean - used, 0.0))
    hours = fitted(_stretched(training.elapsed, run)).uncertain(run.startup_hours)
    terms["checkpoint_storage"] = hours.times(run.checkpoint_usd_per_hour)
    terms["data_storage"] = hours.times(run.data_usd_per_hour)
    terms["egress"] = certain(np.asarray(run.egress_usd, dtype=float))
    idle = np.add(hour_terms["waiting"], hour_terms["startup"])
    power = np.multiply(run.power_usd_per_hour, np.maximum(hours.mean - idle, 0.0))
    power = power + np.multiply(run.idle_power_usd_per_hour, idle)
    of_machines = fitted(machines).uncertain()
    terms["experiments"] = of_machines.times(run.experiment_share)
    terms["electricity"] = hours.times(
        np.where(np.asarray(power) > 0, power / hours.mean, 0.0) * (1 + run.experiment_share)
    )
    before = sum(np.asarray(terms[name].mean) for name in TERMS if name in terms)
    terms["credits"] = certain(-np.minimum(run.credit_usd, before))
    return {name: terms[name] for name in TERMS}


def _has_commitment(run: RunTerms) -> NDArray[np.bool_]:
    """Which runs bear hours that they do not use: of a block, or a reservation that is shared."""
    shared = (np.asarray(run.term_hours) > 0) & (run.utilisation is not None)
    return np.asarray(run.is_block, dtype=bool) | shared


def _fit_of_row(fit: ShiftedLogNormal, number: int) -> ShiftedLogNormal:
    def of_row(values: Numeric) -> Column:
        column = np.asarray(values, dtype=float)
        return column[number] if column.ndim else column

    k = fit.cumulants
    return ShiftedLogNormal(
        cumulants=Cumulants(
            mean=of_row(k.mean), variance=of_row(k.variance), third=of_row(k.third)
        ),
        shift=of_row(fit.shift),
        scale=of_row(fit.scale),
        width=of_row(fit.width),
    )

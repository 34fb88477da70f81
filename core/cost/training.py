"""The training of a run at its forecast speed: seconds with every stop, and by cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.cost.distribution import GIVEN_UP, Cumulants, training_cumulants
from core.failures.goodput import Job, badput, expected_failures, expected_s, failure_free_s
from core.numeric import Numeric

# What the seconds of a run go to. Start-up comes before the training.
CAUSES = ("training", "slow_nodes", "checkpoint", "rework", "restart", "waiting", "preemption")
LOST_TO_FAILURES = ("rework", "restart", "waiting")


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Seconds of the training of one run, or of a column of runs, at the forecast speed."""

    elapsed: Cumulants  # with every stop
    paid: Cumulants  # without outages of spot
    parts_s: Mapping[str, Numeric]  # mean by cause of `CAUSES`; they add up to elapsed.mean
    failing: Cumulants  # with machine failures alone, without preemptions
    failure_free_s: Numeric  # work, slow nodes and checkpoints
    failures: Numeric  # expected number, without preemptions

    def take(self, rows: NDArray[np.intp]) -> Training:
        """These rows of a column of runs."""
        return Training(
            elapsed=self.elapsed.take(rows),
            paid=self.paid.take(rows),
            parts_s={cause: _taken(s, rows) for cause, s in self.parts_s.items()},
            failing=self.failing.take(rows),
            failure_free_s=_taken(self.failure_free_s, rows),
            failures=_taken(self.failures, rows),
        )

    def repeated(self, count: Numeric) -> Training:
        """The training with so many times the tokens."""
        return Training(
            elapsed=self.elapsed.repeated(count),
            paid=self.paid.repeated(count),
            parts_s={cause: np.multiply(s, count) for cause, s in self.parts_s.items()},
            failing=self.failing.repeated(count),
            failure_free_s=np.multiply(self.failure_free_s, count),
            failures=np.multiply(self.failures, count),
        )


def training_of_job(*, work_s: Numeric, job: Job, paid: Job, failing: Job) -> Training:
    """The training of a job that fails.

    Args:
        work_s: seconds of work at the forecast speed, without slow nodes.
        job: the work with slow nodes and every stop.
        paid: of it what is paid; the job itself if it is not on spot.
        failing: the job without preemptions; the job itself if it is not on spot.
    """
    elapsed = training_cumulants(job)
    alone = elapsed if failing is job else training_cumulants(failing)
    with np.errstate(invalid="ignore", over="ignore"):
        ends = np.asarray(expected_s(job)) < GIVEN_UP * np.asarray(job.work_s)
        lost = badput(failing)
        parts = {
            "training": np.asarray(work_s, dtype=float),
            "slow_nodes": np.subtract(job.work_s, work_s),
            "checkpoint": np.asarray(lost.checkpoint_s),
            "rework": np.asarray(lost.rework_s),
            "restart": np.asarray(lost.restart_s),
            "waiting": np.asarray(lost.waiting_s),
        }
        more = np.subtract(elapsed.mean, sum(parts.values()))
        parts["preemption"] = np.zeros_like(more) if failing is job else more
    return Training(
        elapsed=elapsed,
        paid=elapsed if paid is job else training_cumulants(paid),
        # The work itself is known also where the run never ends.
        parts_s={
            cause: s if cause == "training" else np.where(ends, s, np.inf)
            for cause, s in parts.items()
        },
        failing=alone,
        failure_free_s=failure_free_s(failing),
        failures=expected_failures(failing),
    )


def joined_trainings(trainings: Sequence[Training]) -> Training:
    """Trainings one after the other: their failures are independent, so that cumulants add up."""
    first, *others = trainings
    elapsed, paid, failing = first.elapsed, first.paid, first.failing
    parts = dict(first.parts_s)
    free_s, failures = first.failure_free_s, first.failures
    for training in others:
        elapsed = elapsed.with_independent(training.elapsed)
        paid = paid.with_independent(training.paid)
        failing = failing.with_independent(training.failing)
        parts = {cause: np.add(s, training.parts_s[cause]) for cause, s in parts.items()}
        free_s = np.add(free_s, training.failure_free_s)
        failures = np.add(failures, training.failures)
    return Training(
        elapsed=elapsed, paid=paid, parts_s=parts, failing=failing, failure_free_s=free_s,
        failures=failures,
    )  # fmt: skip


def _taken(values: Numeric, rows: NDArray[np.intp]) -> Numeric:
    column = np.asarray(values, dtype=float)
    return column[rows] if column.ndim else column

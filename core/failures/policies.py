"""Simulation of a job on spot capacity under a purchase policy, on traces, spell by spell.

The policies are those of [W24], with R the time to the deadline, C what the rest of the job takes
on on-demand, and d the restart:

    on_demand         on-demand from start to end
    spot_only         spot while there is some, else wait; knows no deadline
    switch            spot while there is some, else on-demand (after a wait of w, 0 if not given),
                      and back when spot returns; knows no deadline
    greedy            spot_only until the safety net
    safety_net        switch until the safety net: our own; [W24] has the rule but no such policy
    uniform_progress  spot while there is some, else wait while progress is not behind the line from
                      nothing at the start to all at the deadline, else on-demand, and back to spot
                      only when progress is where the line is 2 d later; until the safety net

The safety net: a job that is not on spot goes to on-demand, to the end, when R < C + 2 d + a. In
[W24] it is C + 2 d, where a preemption loses no work. Here it loses up to one interval tau with its
checkpoint, a; with a in the net a deadline that on-demand meets is always met (see `play`).

Every start but the first takes d. Work is cut into intervals that begin anew at each start; a
preemption undoes what the last checkpoint does not hold. A job moves away from on-demand only with
a checkpoint. Spot and on-demand are paid from the start of a machine on; waiting is not paid.

[W24] Wu et al., "Can't Be Late: Optimizing Spot Instance Savings under Deadlines", NSDI 2024.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from core.errors import ScenarioError, unknown_name
from core.failures.availability import Capacity, Trace

Column = NDArray[np.float64]
Mask = NDArray[np.bool_]
Policy = Literal["on_demand", "spot_only", "switch", "greedy", "uniform_progress", "safety_net"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
WITH_NET = ("greedy", "uniform_progress", "safety_net")

# Limits at which a job is given up because it never ends:
MOST_WORK = 50.0  # times its work have passed,
MOST_LAPS = 10.0  # laps of the longest trace have kept no work, and no notice could,
MOST_STEPS = 200_000  # or so many spells.
ROUNDING_S = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTrials:
    """One row per start, in seconds; infinite where the job was given up. Time is spot, on-demand
    and waiting; spot and on-demand are work, rework, restarts and checkpoints."""

    total_s: Column
    spot_s: Column  # paid
    on_demand_s: Column  # paid
    waiting_s: Column
    rework_s: Column  # work and checkpoints that a preemption undid
    restart_s: Column
    checkpoint_s: Column  # of checkpoints that were kept
    preemptions: NDArray[np.int64]


def play(
    policy: Policy,
    *,
    work_s: float,
    interval_s: float,
    checkpoint_s: float,
    restart_s: float,
    traces: Sequence[Trace],
    starts_s: Column,
    deadline_s: float | None = None,
    fall_back_after_s: float = 0.0,
    notice_probability: float = 0.0,
    seed: int = 0,
) -> PolicyTrials:
    """Simulate one job from each of `starts_s`, offsets into the traces, which are circles.

    A trace is a zone: the job is in one at a time, and a preempted one moves to the first in the
    list that is up. `deadline_s` after the start is what greedy, uniform_progress and safety_net
    plan for; they meet it where work and checkpoints alone take no longer. `fall_back_after_s`: w,
    of switch and safety_net. `notice_probability`: that a last checkpoint succeeds within the
    notice before a preemption (drawn with `seed`); it takes no extra time.
    """
    job = _checked(
        policy, traces, deadline_s, work_s=work_s, interval_s=interval_s,
        checkpoint_s=checkpoint_s, restart_s=restart_s, fall_back_after_s=fall_back_after_s,
        notice_probability=notice_probability,
    )  # fmt: skip
    game = _Game(job, Capacity(traces), np.asarray(starts_s, dtype=float))
    random = np.random.default_rng(seed)
    patience_s = MOST_LAPS * max(trace.length_s for trace in traces)
    for _ in range(MOST_STEPS):
        if not game.rows.size:
            break
        game.step(random)
        game.give_up(patience_s)
    game.give_up(-np.inf)
    return game.trials()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    policy: Policy
    work_s: float
    interval_s: float  # tau, adjusted so that the work is a whole number of intervals
    checkpoint_s: float
    restart_s: float
    deadline_s: float  # infinite: none
    fall_back_after_s: float
    notice_probability: float

    @property
    def cycle_s(self) -> float:
        return self.interval_s + self.checkpoint_s

    @property
    def margin_s(self) -> float:
        """Slack below which the safety net takes effect."""
        return 2 * self.restart_s + self.cycle_s

    def needed_s(self, left_s: Column) -> Column:
        """Seconds of a machine that has started until so much work is done and written."""
        return left_s + np.ceil(left_s / self.interval_s - 1e-9) * self.checkpoint_s


def _checked(
    policy: Policy, traces: Sequence[Trace], deadline_s: float | None, **given: float
) -> _Job:
    if policy not in POLICIES:
        raise unknown_name("policy", policy, POLICIES)
    if not traces:
        raise ScenarioError("A policy is played on at least one trace of spot capacity.")
    if policy in WITH_NET and deadline_s is None:
        raise ScenarioError(f"The policy {policy} plans for a deadline: give one.")
    if deadline_s is not None and not deadline_s > 0:
        raise ScenarioError(f"A deadline of {deadline_s:g} s is not a time after the start.")
    for name, value in given.items():
        above = name in ("work_s", "interval_s")
        if not (value > 0 if above else value >= 0) or (
            np.isinf(value) and name not in ("interval_s", "fall_back_after_s")
        ):
            raise ScenarioError(f"{name} is {value:g}: it is {'above' if above else 'at least'} 0.")
    if given["notice_probability"] > 1:
        raise ScenarioError("The probability that a notice is enough is a number from 0 to 1.")
    work_s = given["work_s"]
    intervals = max(1.0, float(np.ceil(work_s / given["interval_s"] - 1e-9)))
    limit = np.inf if deadline_s is None or policy not in WITH_NET else deadline_s
    return _Job(policy=policy, deadline_s=limit, **{**given, "interval_s": work_s / intervals})


class _Game:
    """All trials that are not done, each at a moment of decision."""

    def __init__(self, job: _Job, capacity: Capacity, starts_s: Column) -> None:
        self.job, self.capacity, self.starts_s = job, capacity, starts_s
        count = starts_s.size
        times = [f.name for f in fields(PolicyTrials) if f.name != "preemptions"]
        self.sums = {name: np.zeros(count) for name in times}
        self.preemptions = np.zeros(count, dtype=np.int64)
        self.rows = np.arange(count)  # trials not done; the columns below have these rows
        self.now_s, self.left_s = np.zeros(count), np.full(count, job.work_s)
        self.last_kept_s = np.zeros(count)  # when work was kept last
        self.started = np.zeros(count, dtype=bool)
        self.on_demand = np.zeros(count, dtype=bool)  # holds a machine that just checkpointed

    def trials(self) -> PolicyTrials:
        return PolicyTrials(preemptions=self.preemptions, **self.sums)

    def step(self, random: np.random.Generator) -> None:
        """One decision of every trial, and its consequences."""
        job = self.job
        up_s, wait_s = self.capacity.at(self.starts_s[self.rows] + self.now_s)
        slack_s = job.deadline_s - self.now_s - job.needed_s(self.left_s)
        # The safety net; without a deadline slack is infinite.
        bound = (slack_s < job.margin_s) | (job.policy == "on_demand")
        before_s = np.where(bound | self.on_demand, 0.0, self._patience_s(slack_s))
        on_spot = (up_s > 0) & ~bound
        waits = ~on_spot & ~bound & (wait_s <= before_s)
        falls_back = ~(on_spot | waits)
        idle = np.where(waits, wait_s, np.where(falls_back, before_s, 0.0))
        self._add("waiting_s", idle, slice(None))
        self.now_s = self.now_s + idle
        if (some := np.flatnonzero(falls_back)).size:
            waited_s = before_s[some]
            self._on_demand(some, bound[some], wait_s[some] - waited_s, slack_s[some] - waited_s)
        if (some := np.flatnonzero(on_spot)).size:
            self._on_spot(some, up_s[some], random)
        self._drop(self.left_s <= 0, np.nan)

    def _patience_s(self, slack_s: Column) -> Column:
        """How long a job without a machine waits for spot before it falls back."""
        job = self.job
        if job.policy == "spot_only":
            return np.full(slack_s.shape, np.inf)
        until_net = np.maximum(slack_s - job.margin_s, 0.0)
        if job.policy == "greedy":
            return until_net
        if job.policy == "uniform_progress":
            done_s = job.work_s - self.left_s
            behind_at_s = done_s / job.work_s * job.deadline_s
            return np.minimum(until_net, np.maximum(behind_at_s - self.now_s, 0.0))
        return np.minimum(until_net, job.fall_back_after_s)

    def _on_spot(self, some: NDArray[np.int64], up: Column, random: np.random.Generator) -> None:
        """A spell on spot, to its preemption or to the end of the job."""
        job, left = self.job, self.left_s[some]
        restart = np.where(self.started[some], job.restart_s, 0.0)
        needed = restart + job.needed_s(left)
        ends = up >= needed - ROUNDING_S
        trained = np.where(ends, 0.0, np.maximum(up - restart, 0.0))
        whole = np.floor(trained / job.cycle_s + 1e-9)
        inside = np.clip(trained - whole * job.cycle_s, 0.0, job.interval_s)
        noticed = np.zeros(some.size, dtype=bool)
        if job.notice_probability:
            noticed = random.random(some.size) < job.notice_probability
        kept = whole * job.interval_s + np.where(noticed, inside, 0.0)
        kept = np.where(ends, left, np.minimum(kept, left))
        spent = np.where(ends, needed, up)
        restarting = np.minimum(spent, restart)
        written = np.where(ends, needed - restart - left, whole * job.checkpoint_s)
        self._spend(some, "spot_s", spent, kept, restarting, written)
        self._add("rework_s", np.maximum(spent - restarting - written - kept, 0.0), some)
        self.preemptions[self.rows[some[~ends]]] += 1
        self.on_demand[some] = False

    def _on_demand(
        self, some: NDArray[np.int64], bound: Mask, spot_in_s: Column, slack_s: Column
    ) -> None:
        """A spell on on-demand, to a move to spot (with a checkpoint) or to the end of the job."""
        job, left = self.job, self.left_s[some]
        held = self.on_demand[some] | ~self.started[some]
        restart = np.where(held, 0.0, job.restart_s)
        needed = restart + job.needed_s(left)
        # Slack does not change while on-demand runs: it may leave at any time or never.
        may_leave = ~bound & (slack_s - restart >= job.margin_s + job.checkpoint_s)
        if job.policy in ("on_demand", "greedy"):
            may_leave[:] = False
        leaves_after = np.where(may_leave, spot_in_s, np.inf)
        if job.policy == "uniform_progress" and may_leave.any():
            leaves_after[may_leave] = self._ahead_after_s(some[may_leave], restart[may_leave])
        trained = np.maximum(leaves_after - restart, 0.0)
        ends = ~(trained < job.needed_s(left) - job.checkpoint_s)
        trained = np.where(ends, 0.0, trained)
        whole = np.floor(trained / job.cycle_s + 1e-9)
        inside = np.maximum(trained - whole * job.cycle_s, 0.0)
        begun = inside > ROUNDING_S
        writing = inside > job.interval_s  # a checkpoint, which it ends
        last = np.where(writing, job.cycle_s - inside, np.where(begun, job.checkpoint_s, 0.0))
        kept = whole * job.interval_s + np.where(begun, np.minimum(inside, job.interval_s), 0.0)
        kept = np.where(ends, left, np.minimum(kept, left))
        spent = np.where(ends, needed, leaves_after + last)
        restarting = np.minimum(spent, restart)
        self._spend(some, "on_demand_s", spent, kept, restarting, spent - restarting - kept)
        self.on_demand[some] = True

    def _ahead_after_s(self, some: NDArray[np.int64], restart_s: Column) -> Column:
        """Seconds on on-demand until progress is where the line is 2 d later, and spot is there."""
        job, now = self.job, self.now_s[some]
        slope = job.work_s / job.deadline_s  # of the line; below 1, or the net would hold it
        ahead = job.work_s - self.left_s[some] - slope * (now + restart_s + 2 * job.restart_s)
        # Each interval gains tau - slope a, the first part of it (1 - slope) a second.
        gain = job.interval_s - slope * job.cycle_s
        whole = np.ceil(np.maximum(-ahead - (1 - slope) * job.interval_s, 0.0) / gain)
        inside = np.maximum(-(ahead + whole * gain) / (1 - slope), 0.0)
        after = restart_s + whole * job.cycle_s + np.where(ahead >= 0, 0.0, inside)
        up_s, wait_s = self.capacity.at(self.starts_s[self.rows[some]] + now + after)
        return after + np.where(up_s > 0, 0.0, wait_s)

    def _spend(
        self, some: NDArray[np.int64], what: str, spent: Column, kept: Column,
        restarting: Column, written: Column,
    ) -> None:  # fmt: skip
        self._add(what, spent, some)
        self._add("restart_s", restarting, some)
        self._add("checkpoint_s", np.maximum(written, 0.0), some)  # rounding
        self.now_s[some] += spent
        left = self.left_s[some] - kept
        self.left_s[some] = np.where(left > ROUNDING_S, left, 0.0)
        self.last_kept_s[some] = np.where(kept > 0, self.now_s[some], self.last_kept_s[some])
        self.started[some] = True

    def _add(self, name: str, seconds: Column, some: NDArray[np.int64] | slice) -> None:
        self.sums[name][self.rows[some]] += seconds

    def give_up(self, patience_s: float) -> None:
        """Mark trials that can never end as infinite."""
        stuck = self.now_s - self.last_kept_s > patience_s
        if self.job.notice_probability and patience_s > 0:
            stuck[:] = False
        self._drop(stuck | (self.now_s > MOST_WORK * self.job.work_s), np.inf)

    def _drop(self, some: Mask, total_s: float) -> None:
        """Remove trials, with NaN for the time that they took."""
        if not some.any():
            return
        rows = self.rows[some]
        if np.isinf(total_s):
            for column in self.sums.values():
                column[rows] = np.inf
        else:
            self.sums["total_s"][rows] = (
                self.sums["spot_s"][rows]
                + self.sums["on_demand_s"][rows]
                + self.sums["waiting_s"][rows]
            )
        for name in ("rows", "now_s", "left_s", "last_kept_s", "started", "on_demand"):
            setattr(self, name, getattr(self, name)[~some])

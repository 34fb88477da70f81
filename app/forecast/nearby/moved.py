"""The runs that are like each row of a search, and its step after them.

Asked after the search, for the best layout of each job only. A machine that the user calibrated is
forecast from what was measured on it, so published runs say nothing about it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, reduce

import numpy as np
from numpy.typing import NDArray

from core.evidence.measured_runs import MeasuredRuns, Traits
from core.evidence.residual import Learned, learned, sentence, weighted_runs
from core.evidence.traits import traits
from core.layout.layouts import Layouts
from core.layout.workload import Workload
from core.scenario import Scenario
from core.search.best import Best, Job
from core.search.plan import NearbyRuns
from core.time.step import Step
from hardware.efficiency import GENERIC
from hardware.habits.built_on import stack_named
from hardware.residuals.table import residuals

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What measured runs say about each row of a search."""

    of: Traits
    said: Learned
    shift: Numbers  # of the log of the throughput
    variance_left: Numbers  # share of the forecast's own variance

    def user_sentence(self, row: int, *, shift: float, variance_left: float) -> str:
        """What the user's measurement did, of a row's shift and remaining variance; '' without."""
        own, left = shift - float(self.shift[row]), variance_left / float(self.variance_left[row])
        if left >= 1:
            return ""
        return (
            f"Your measurement moves this forecast by {np.expm1(own):+.0%} and leaves "
            f"{left**0.5:.0%} of the width of its interval."
        )

    def of_row(self, row: int, *, shift: float, variance_left: float) -> NearbyRuns:
        """The runs near one row; the shift and the variance are those of the row after all that
        was measured, by the user too."""
        is_used = bool(self.variance_left[row] < 1)
        return NearbyRuns(
            moved_log=shift,
            variance_left=variance_left,
            moved_by_runs=float(np.expm1(self.shift[row])),
            explained=float(self.said.explained[row]) if is_used else 0.0,
            distance=float(self.said.distance[row]),
            sentence=sentence(self.said, residuals(), row) if is_used else "",
            runs=weighted_runs(self.said, self.of, residuals(), row) if is_used else (),
        )


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question to the runs, equal to another of the same content: an edit of the tokens, the
    deadline or the order asks about the very layouts of before."""

    content: tuple[object, ...]
    of: Traits = field(compare=False)
    runs: MeasuredRuns = field(compare=False)

    @classmethod
    def about(cls, of: Traits) -> _Asked:
        columns = [getattr(of, f.name) for f in fields(of)]
        runs = residuals()
        content = (id(runs), *((c.dtype.str, c.tobytes()) for c in columns))
        return cls(content=content, of=of, runs=runs)


@lru_cache(maxsize=16)
def what_runs_say(asked: _Asked) -> Learned:
    """What runs say about some forecasts; kept for who asks about the same ones again."""
    return learned(asked.of, asked.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Layouts of jobs, each for one of several variants of a scenario."""

    job: NDArray[np.intp]
    asked: NDArray[np.intp]  # the number of the variant
    layouts: Layouts


def moved_by_runs(
    best: Best | Rows,
    jobs: Sequence[Job],
    asked: Sequence[tuple[Scenario, Workload]],
    calibrated: Collection[str] = (),
) -> Moved:
    """What measured runs say about each row of `best`; `asked` are the variants of the scenario
    with their work, in the order of `best.asked`."""
    compared: list[Traits] = []
    order: list[NDArray[np.intp]] = []
    names = np.array([j.accelerator for j in jobs], dtype=np.str_)
    peaks = np.array([float(np.asarray(j.cluster.peak_flops_per_s)) for j in jobs])
    for number, (variant, work) in enumerate(asked):
        mine = np.flatnonzero(np.asarray(best.asked) == number)
        if not len(mine):
            continue
        job = np.asarray(best.job)[mine]
        known = variant.stack != GENERIC
        same = {
            "family": stack_named(variant.stack).family if known else "",
            "stack": stack_named(variant.stack).name if known else "",
            "precision": variant.precision,
            "task": variant.task,
        }
        compared.append(
            traits(
                work,
                best.layouts.take(mine),
                replace(jobs[int(job[0])].cluster, peak_flops_per_s=peaks[job]),
                accelerator=names[job],
                **{name: np.full(len(mine), text) for name, text in same.items()},
            )
        )
        order.append(mine)
    none = np.zeros(0, dtype=np.intp)
    back = np.argsort(np.concatenate([*order, none]), kind="stable")
    of = reduce(Traits.joined, compared, residuals().traits.take(none)).take(back)
    said = what_runs_say(_Asked.about(of))
    own = np.isin(names[np.asarray(best.job)], list(calibrated))
    return Moved(
        of=of,
        said=said,
        shift=np.where(own, 0.0, said.shift),
        variance_left=np.where(own, 1.0, said.variance_left),
    )


def scaled(best: Best, shift: Numbers) -> Best:
    """The search result with each row's throughput moved by a shift of its logarithm."""
    faster, step = np.exp(shift), best.step
    return replace(
        best,
        step=Step(
            parts={k: v / faster for k, v in step.parts.items()},
            step_s=step.step_s / faster,
            tokens_per_s=step.tokens_per_s * faster,
            tokens_per_s_per_gpu=step.tokens_per_s_per_gpu * faster,
            mfu=step.mfu * faster,
            hfu=step.hfu * faster,
        ),
    )

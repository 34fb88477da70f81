"""One stage searched over all offers: its best layout at every offer and count, as columns."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.forecast import excluded, nearest_fit
from app.forecast.answer import MOST_LEGAL, SEARCH_S
from app.forecast.choice import choice_of, jobs_of
from app.forecast.costs import jobs_and_training
from app.forecast.failure_inputs import given_numbers
from app.forecast.failure_times import times_of
from app.forecast.points import priced
from app.forecast.rows.row import Row, rows_of
from app.forecast.search import Found, searched
from app.forecast.search_memory import SearchMemory
from app.forecast.training import num_steps_of
from app.programme.stages import StageRun
from core.cost.run_cost import RunTerms
from core.programme.total import Leg, joined
from core.scenario import Scenario
from core.search.recommended import complexity
from core.units import HOUR_S

# What of a layout says where each weight lies: a stage that differs in it re-shards its checkpoint.
PLACED = (
    "tp", "pp", "virtual_stages", "ep", "etp", "dp_replicate", "dp_shard", "strategy",
)  # fmt: skip
Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """A stage at every offer and count that it fits, one row each; `steps` has the search of each
    step of its ramp, with the row of it that each row stands on."""

    run: StageRun
    rows: tuple[Row, ...]  # of the last step
    found: Found  # of the last step
    points: Columns  # of the last step
    terms: RunTerms  # of the machines of each row
    leg: Leg  # of all its steps and runs; without what comes before it
    steady_hours: NDArray[np.float64]  # of all its steps and runs, without failures
    probability_oom: NDArray[np.float64]  # the worst of its steps
    complexity: NDArray[np.float64]
    placed: NDArray[np.float64]  # by row, what PLACED names
    read_hours: NDArray[np.float64]  # a checkpoint of what it trains, from storage
    write_hours: NDArray[np.float64]
    ids: tuple[str, ...]
    nothing_fits: str  # why there is no row; '' if there is one

    def take(self, at: NDArray[np.intp]) -> Searched:
        """These rows, in this order."""
        numbers = at.tolist()
        return Searched(
            run=self.run,
            rows=tuple(self.rows[n] for n in numbers),
            found=self.found,
            points={name: column[at] for name, column in self.points.items()},
            terms=self.terms.take(at),
            leg=self.leg.take(at),
            steady_hours=self.steady_hours[at],
            probability_oom=self.probability_oom[at],
            complexity=self.complexity[at],
            placed=self.placed[at],
            read_hours=self.read_hours[at],
            write_hours=self.write_hours[at],
            ids=tuple(self.ids[n] for n in numbers),
            nothing_fits=self.nothing_fits,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    scenario: Scenario
    found: Found
    rows: list[Row]
    points: Columns
    terms: RunTerms
    nothing_fits: str


def stage_searched(run: StageRun, *, flops: float, memory: SearchMemory | None) -> Searched:
    """The stage over all offers, at the GPU counts that suit a programme of so many FLOPs."""
    steps = [_searched(s, flops=flops, memory=memory) for s in run.steps]
    last = steps[-1]
    at_id = [{r.id: n for n, r in enumerate(s.rows)} for s in steps]
    shared = [r.id for r in last.rows if all(r.id in known for known in at_id)]
    if not shared:
        return _nothing(run, last, next((s.nothing_fits for s in steps if s.nothing_fits), ""))
    at = [np.array([known[i] for i in shared], dtype=np.intp) for known in at_id]
    legs: list[Leg] = []
    steady, oom = np.zeros(len(shared)), np.zeros(len(shared))
    for step, mine in zip(steps, at, strict=True):
        points = {name: column[mine] for name, column in step.points.items()}
        num_steps = step.rows[0].num_steps
        training = jobs_and_training(step.scenario, points, num_steps=num_steps)["training"]
        legs.append(Leg(training=training, sigma=points["sigma"], skew=points["skew"]))
        steady = steady + points["wall_clock_hours"]
        oom = np.maximum(oom, points["probability_oom"])
    mine = at[-1]
    points = {name: column[mine] for name, column in last.points.items()}
    rows = tuple(last.rows[n] for n in mine.tolist())
    layouts = last.found.best.layouts.take(np.array([r.best_row for r in rows], dtype=np.intp))
    rented = points["num_nodes"] * points["gpus_per_node"]
    times = times_of(
        last.scenario, given_numbers(last.scenario), num_gpus=points["num_gpus"],
        rented_gpus=rented, link_bytes_per_s=1.0,
    )  # fmt: skip
    shape = np.ones(len(rows))
    return Searched(
        run=run,
        rows=rows,
        found=last.found,
        points=points,
        terms=last.terms.take(mine),
        leg=joined(legs).times(run.stage.count),
        steady_hours=steady * run.stage.count,
        probability_oom=oom,
        complexity=np.asarray(complexity(layouts)) * shape,
        placed=np.stack([np.asarray(getattr(layouts, n)) * shape for n in PLACED], axis=1),
        read_hours=shape * times.size_bytes / times.read_bytes_per_s / HOUR_S,
        write_hours=shape * times.size_bytes / times.write_bytes_per_s / HOUR_S,
        ids=tuple(shared),
        nothing_fits="",
    )


def _searched(scenario: Scenario, *, flops: float, memory: SearchMemory | None) -> _Step:
    choice = choice_of(scenario)
    jobs, pairs, skipped = jobs_of(scenario, choice.machines, flops)
    over = time.monotonic() + SEARCH_S
    found = searched(
        scenario, jobs, most_rows=MOST_LEGAL, stop=lambda: time.monotonic() > over, memory=memory
    )
    row_of = {int(job): n for n, job in enumerate(found.best.job)}
    kept = [(m, row_of[job]) for m, job in pairs if job in row_of]
    rows = rows_of(kept, found, num_steps=num_steps_of(scenario))
    nothing = ""
    if not rows:
        nothing = nearest_fit.sentence(
            scenario, found, jobs,
            without_precision=excluded.total(choice.left_out, "precision"),
            not_clusters=excluded.total(skipped, "not_a_cluster"),
            apart=excluded.sold_apart(choice.machines),
        )  # fmt: skip
    table = priced(scenario, rows, found)
    return _Step(
        scenario=scenario, found=found, rows=rows, points=table.points, terms=table.costs.basis.run,
        nothing_fits=nothing,
    )  # fmt: skip


def _nothing(run: StageRun, last: _Step, why: str) -> Searched:
    none = np.zeros(0)
    nothing = jobs_and_training(last.scenario, dict.fromkeys(last.points, none), num_steps=1.0)[
        "training"
    ]
    return Searched(
        run=run,
        rows=(),
        found=last.found,
        points={},
        terms=last.terms,
        leg=Leg(training=nothing, sigma=none),
        steady_hours=none,
        probability_oom=none,
        complexity=none,
        placed=none.reshape(0, len(PLACED)),
        read_hours=none,
        write_hours=none,
        ids=(),
        nothing_fits=why or "No plan: no machine takes every step of its batch ramp.",
    )


def shared_rows(stages: Sequence[Searched]) -> list[Searched]:
    """The stages at the offers and counts that all of them have, in one order."""
    known = [{i: n for n, i in enumerate(s.ids)} for s in stages]
    shared = [i for i in stages[0].ids if all(i in k for k in known)]
    return [
        s.take(np.array([k[i] for i in shared], dtype=np.intp))
        for s, k in zip(stages, known, strict=True)
    ]

"""Join facts and prices with core: takes a scenario, returns an answer."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from app.forecast import excluded, nearest_fit, price_book, stack_limits, standing
from app.forecast.choice import choice_of, jobs_of
from app.forecast.choosing import launchable
from app.forecast.excluded import LEAST_MFU, LONGEST_DAYS
from app.forecast.plans import plans_of
from app.forecast.points import priced, within_limits
from app.forecast.rows.row import Row, rows_of
from app.forecast.search import Found, searched
from app.forecast.search_memory import SearchMemory
from app.forecast.training import num_steps_of, tokens_of
from app.log import search_log
from app.scenario.model import model_of
from core.model.transformer import train_flops_per_token
from core.numeric import as_float
from core.scenario import Scenario
from core.search import ranking, recommended
from core.search.best import Best, Ints, Job
from core.search.job import Machine
from core.search.plan import Answer, Gate, Recommendation
from core.units import HOUR_S

# Limits of one search. When one is reached, the largest GPU counts have not been searched.
SEARCH_S = 20.0
MOST_LEGAL = 30_000_000  # legal layouts


@search_log.logged
def answer(
    scenario: Scenario,
    top: int = 50,
    *,
    with_frontier: bool = False,
    memory: SearchMemory | None = None,
) -> Answer:
    """The ranked plans of a resolved scenario, and what was left out and why.

    Plans after the first `top` are included only if the scenario selects or pins them or, with
    `with_frontier`, if they are on the frontier. Layouts found in `memory` are not searched again.
    """
    model = model_of(scenario)
    choice = choice_of(scenario)
    flops = as_float(train_flops_per_token(model.transformer, float(scenario.seq_len)))
    jobs, pairs, skipped = jobs_of(scenario, choice.machines, flops * tokens_of(scenario))
    over = time.monotonic() + SEARCH_S
    found = searched(
        scenario,
        jobs,
        most_rows=MOST_LEGAL,
        stop=lambda: time.monotonic() > over,
        memory=memory,
    )
    best = found.best
    rows, unwanted = _rows(scenario, pairs, found)
    day = price_book.price_day(scenario)
    against = [standing.against(scenario, r, day) for r in rows]
    faults = np.array([len(reasons) for reasons in against], dtype=np.intp)
    apart = excluded.sold_apart(choice.machines)
    without = choice.left_out + skipped + unwanted + excluded.without_layout(pairs, best)
    table = priced(scenario, rows, found)
    points = table.points
    usd, hours = points["paid_usd"], points["expected_hours"]
    on_time, in_budget = within_limits(scenario, points)
    best_first = ranking.order(
        usd=usd, hours=hours, meets_limits=on_time & in_budget, faults=faults,
        by=scenario.rank_by,
    )  # fmt: skip
    no_launch = launchable.refusals(found, [(r.best_row, r.machine) for r in rows])
    gates = standing.gates(scenario, points, against, no_launch)
    first = recommended.recommended(
        usd=usd, hours=hours, gates=gates, by=scenario.rank_by,
        complexity=recommended.complexity(best.layouts)[[r.best_row for r in rows]],
    )  # fmt: skip
    if first is not None:
        best_first = ranking.with_first(best_first, first.row)
    reasons = np.array([" ".join(words) for words in against], dtype=object)
    worse = standing.worse_than(against[best_first[0]] if rows else (), reasons)
    points |= {
        "meets_deadline": on_time,
        "meets_budget": in_budget,
        "frontier": ranking.frontier(ranking.standing(usd, in_doubt=worse), hours),
        "in_doubt": faults > 0,
        "against": reasons,
    }
    points = {name: column[best_first] for name, column in points.items()}
    points["rank"] = np.arange(1, len(rows) + 1)
    named = {scenario.plan, *scenario.pinned}
    wanted = np.isin(points["id"], list(named)) | (points["frontier"] & with_frontier)
    wanted[:top] = True
    listed = np.flatnonzero(wanted).tolist()
    order = best_first[np.array(listed, dtype=np.intp)]
    shown = [
        replace(
            rows[row], rank=n + 1,
            meets_deadline=bool(points["meets_deadline"][n]),
            meets_budget=bool(points["meets_budget"][n]),
            frontier=bool(points["frontier"][n]), against=against[row],
            no_launch=no_launch[row], chosen_correction=table.corrections.basis.get(int(row)),
        )
        for n, row in zip(listed, order.tolist(), strict=True)
    ]  # fmt: skip
    return Answer(
        plans=plans_of(
            shown,
            found,
            {name: column[listed] for name, column in points.items()},
            table.costs.take(order),
        ),
        num_plans=len(rows),
        points=points,
        num_candidates=best.counts.candidates,
        counts=best.counts,
        not_searched=_not_searched(jobs, best),
        excluded=excluded.exclusions(
            without,
            best,
            num_without_price=int(np.isnan(usd).sum()),
            apart=apart,
            stacks=stack_limits.not_taking(scenario),
        ),
        left_out_at=excluded.by_pair(without),
        recommendation=None if first is None else _recommendation(first, gates, best_first),
        nothing_fits=None
        if rows
        else nearest_fit.sentence(
            scenario,
            found,
            jobs,
            without_precision=excluded.total(choice.left_out, "precision"),
            not_clusters=excluded.total(skipped, "not_a_cluster"),
            apart=apart,
        ),
    )


def _recommendation(
    found: recommended.Recommended, gates: Mapping[str, NDArray[np.float64]], ranked: Ints
) -> Recommendation:
    """The recommendation with its rows in ranked order."""
    place = np.empty(len(ranked), dtype=np.intp)
    place[ranked] = np.arange(len(ranked))
    return Recommendation(
        base=int(place[found.base]),
        cheapest=int(place[found.cheapest]),
        num_passing=found.num_passing,
        failed=found.failed,
        gates=tuple(
            Gate(
                name=name,
                num_passing=int((shortfall <= 0).sum()),
                is_empty=name in found.empty,
            )
            for name, shortfall in gates.items()
        ),
    )


def _rows(
    scenario: Scenario, pairs: list[tuple[Machine, int]], found: Found
) -> tuple[list[Row], Counter[excluded.Key]]:
    """One row per machine and count that has a layout, and counts of those left out because they
    take too long or waste the GPUs. Nothing is left out if the scenario gives the number of
    GPUs."""
    best = found.best
    row_of = {int(job): n for n, job in enumerate(best.job)}
    steps = num_steps_of(scenario)
    hours = steps * best.step.step_s / HOUR_S
    longest = max(LONGEST_DAYS, 2 * (scenario.deadline_days or 0.0)) * 24.0
    kept: list[tuple[Machine, int]] = []
    unwanted: Counter[excluded.Key] = Counter()
    for m, job in pairs:
        if job not in row_of:
            continue
        n = row_of[job]
        if not scenario.num_gpus and hours[n] > longest:
            unwanted[excluded.reason_at("too_slow", m.offer)] += 1
            continue
        if not scenario.num_gpus and best.step.mfu[n] < LEAST_MFU:
            unwanted[excluded.reason_at("wasteful", m.offer)] += 1
            continue
        kept.append((m, n))
    return rows_of(kept, found, num_steps=steps), unwanted


def _not_searched(jobs: Sequence[Job], best: Best) -> str:
    """Describe what was not searched because the search reached its limits."""
    counts = sorted({jobs[n].num_gpus for n in best.jobs_cut})
    found = []
    if counts:
        found.append(
            f"The search ended after {SEARCH_S:.0f} seconds or {MOST_LEGAL:,} legal layouts; not "
            f"looked at: {', '.join(f'{n:,}' for n in counts)} GPUs."
        )
    if best.counts.cut:
        found.append(
            f"{best.counts.cut:,} layouts of GPU counts with very many divisors were not looked "
            "at: powers of two and small model-parallel groups came first."
        )
    return " ".join(found)

"""Build the plan that one row of an answer shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.forecast.costs import Costs
from app.forecast.half_network import is_guessed
from app.forecast.rows.assumptions import assumptions, on_the_host
from app.forecast.rows.row import Row
from app.forecast.search import Found, plan_job
from app.forecast.training import habits_of
from core.cost.distribution import uncertain_speed
from core.cost.run_cost import failure_free_usd
from core.evidence import uncertainty
from core.machine.cluster import as_columns
from core.memory.counters import COUNTERS, counted_bytes
from core.numeric import as_float
from core.search.job import Machine
from core.search.plan import AtHalfNetwork, Plan, PlanNetwork, PlanSupply
from core.search.recommended import MOST_PROBABILITY_OOM
from hardware.measured import measured_accelerators

# What a calibration measures of a device that published runs would also show.
WHOLE_DEVICE = frozenset({"matmul", "attention", "memory", "elementwise"})


def sigmas(
    rows: Sequence[Row], found: Found, half_network: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Width of the forecast of tokens per second of each row. `half_network`: the step at half its
    network over the step."""
    at = np.array([r.best_row for r in rows], dtype=np.intp)
    asked = found.best.asked[at]
    left = np.asarray(found.variance_left, dtype=float)[at]
    gaps = {id(m): _gaps(m) for m in {id(r.machine): r.machine for r in rows}.values()}
    unmeasured, unseen, guessed = np.array([gaps[id(r.machine)] for r in rows], dtype=float).T
    known = uncertainty.Circumstances(
        unmeasured=unmeasured,
        unseen_accelerator=unseen,
        doublings=uncertainty.doublings(np.array([r.num_gpus for r in rows], dtype=float)),
        network_guessed=guessed * np.array([r.num_nodes > 1 for r in rows]),
    )
    parts_s = {p: np.asarray(v)[at] for p, v in found.best.step.parts.items()}
    known = uncertainty.of_step(known, parts_s=parts_s, at_half_network=np.log(half_network))
    widths = np.zeros(at.shape)
    for number in np.unique(asked).tolist():
        eff = found.questions[number].eff
        of_stack = uncertainty.throughput_sigma(uncertainty.narrowed(eff, left), known)
        widths = np.where(asked == number, of_stack, widths)
    return widths


def skews(rows: Sequence[Row], found: Found) -> NDArray[np.float64]:
    """Part by which each of these widths is more towards slower."""
    of_question = np.array([as_float(q.eff.throughput_skew) for q in found.questions])
    return of_question[found.best.asked[[r.best_row for r in rows]]]


def plans_of(
    rows: Sequence[Row], found: Found, points: Mapping[str, NDArray[Any]], costs: Costs
) -> tuple[Plan, ...]:
    """Everything the page shows of these rows, with their columns and the dollars of each term."""
    counted = _counted(rows, found, peak=points["peak_memory_bytes"])
    return tuple(
        _plan_of(
            row,
            found,
            costs,
            number,
            half_network=float(points["half_network"][number]),
            gpu_hours=float(points["gpu_hours"][number]),
            counted={name: column[number] for name, column in counted.items()},
        )
        for number, row in enumerate(rows)
    )


def _counted(
    rows: Sequence[Row], found: Found, *, peak: NDArray[np.float64]
) -> dict[str, list[float]]:
    """The peak memory of each row as each counter reads it."""
    best = found.best
    at = np.array([r.best_row for r in rows], dtype=np.intp)
    reserve = best.memory["reserve"][at]
    read = {name: np.empty(len(rows)) for name in COUNTERS}
    for number in np.unique(best.asked[at]).tolist():
        some = np.flatnonzero(best.asked[at] == number)
        counted = counted_bytes(
            best.layouts.take(at[some]),
            as_columns([rows[n].machine.cluster for n in some.tolist()]),
            found.questions[number].eff,
            peak=peak[some],
            reserve=reserve[some],
        )
        for name, column in counted.items():
            read[name][some] = column
    return {name: column.tolist() for name, column in read.items()}


def _plan_of(
    row: Row, found: Found, costs: Costs, number: int, *, half_network: float, gpu_hours: float,
    counted: Mapping[str, float],
) -> Plan:  # fmt: skip
    best, cost = found.best, costs.cost.row(number)
    m, n = row.machine, row.best_row
    shift, variance_left = float(found.shift[n]), float(found.variance_left[n])
    at = np.array([number], dtype=np.intp)
    basis = costs.basis.take(at)
    run = basis.run
    has_price, start = cost.has_price, m.supply.startup_hours
    layout = found.layout_of(n)
    nearby = found.runs.of_row(n, shift=shift, variance_left=variance_left)
    own = found.runs.user_sentence(n, shift=shift, variance_left=variance_left)
    return Plan(
        id=row.id,
        rank=row.rank,
        job=plan_job(
            found.variant_of(n),
            found.question_of(n),
            m,
            row.num_gpus,
            measured_factor=math.exp(-shift),
            is_sure=bool(best.probability_oom[n] <= MOST_PROBABILITY_OOM),
        ),
        offer=m.offer,
        num_gpus=row.num_gpus,
        num_nodes=row.num_nodes,
        layout=layout,
        stack=row.stack,
        precision=found.variant_of(n).precision,
        compiled=bool(found.question_of(n).work.compiled),
        cuda_graphs=bool(found.question_of(n).work.cuda_graphs),
        tokens_per_s=uncertain_speed(row.tokens_per_s, sigma=run.sigma, skew=run.skew).row(0),
        throughput_sigma=as_float(run.sigma),
        tokens_per_s_per_gpu=float(best.step.tokens_per_s_per_gpu[n]),
        mfu=float(best.step.mfu[n]),
        hfu=float(best.step.hfu[n]),
        model_flops_per_s_per_gpu=float(best.step.mfu[n] * m.cluster.peak_flops_per_s),
        step_s={p: float(v[n]) for p, v in best.step.parts.items() if v[n] > 0},
        memory_bytes={p: float(v[n]) for p, v in best.memory.items()},
        memory_capacity_bytes=m.accelerator.memory_bytes,
        memory_counted_bytes=counted,
        probability_oom=float(best.probability_oom[n]),
        num_steps=row.num_steps,
        gpu_hours=gpu_hours,
        wall_clock_hours=row.run_hours,
        usd_per_hour=as_float(run.usd_per_hour) if has_price else None,
        usd_per_gpu_hour=_usd_per_gpu_hour(m),
        cost=cost,
        cost_basis=basis,
        meets_deadline=row.meets_deadline,
        meets_budget=row.meets_budget,
        frontier=row.frontier,
        calibration=m.calibration,
        against=row.against,
        no_launch=row.no_launch,
        chosen_correction=row.chosen_correction,
        network=_network_of(m) if row.num_nodes > 1 else None,
        supply=_supply_of(m),
        startup_hours=m.supply.startup_hours,
        least_billed_hours=m.supply.least_billed_hours,
        at_half_network=None
        if not is_guessed(row)
        else AtHalfNetwork(
            step_factor=half_network,
            tokens_per_s=row.tokens_per_s / half_network,
            wall_clock_hours=row.run_hours * half_network,
            usd=as_float(failure_free_usd(start + row.run_hours * half_network, run))
            if has_price
            else None,
        ),
        nearby=nearby,
        assumptions=(
            *assumptions(row, cost, moved=own),
            *filter(None, (nearby.sentence,)),
            *on_the_host(m, layout, float(best.host_bytes[n])),
            *habits_of(found.variant_of(n), layout.sharding, ep=layout.ep),
        ),
    )


def _usd_per_gpu_hour(m: Machine) -> float | None:
    usd = m.offer.usd_per_hour
    return None if usd is None else usd / m.offer.gpu_count


def _supply_of(m: Machine) -> PlanSupply | None:
    """How many can be had; None where nobody sells them."""
    if m.offer.purchase == "owned" or m.offer.usd_per_hour is None:
        return None
    most, bound = m.supply.most_gpus, m.supply.bound
    return PlanSupply(
        most_gpus=most if math.isfinite(most) else None,
        is_assumed=bound.assumed,
        source=bound.ref,
        source_date=bound.date,
    )


def _network_of(m: Machine) -> PlanNetwork | None:
    """What joins several of them; None where nothing does."""
    network = m.network
    if network.gbit_per_s is None:
        return None
    return PlanNetwork(
        gbit_per_s=network.gbit_per_s,
        basis=network.basis,
        is_assumed=not m.network_known,
        product=network.product,
        source=network.source.ref,
        source_date=network.source.date,
    )


def circumstances_of(m: Machine, *, num_gpus: int, crosses: bool) -> uncertainty.Circumstances:
    """What makes the forecast of one machine less certain than that of its software stack."""
    unmeasured, unseen, guessed = map(float, _gaps(m))
    return uncertainty.Circumstances(
        unmeasured=unmeasured,
        unseen_accelerator=unseen,
        doublings=as_float(uncertainty.doublings(num_gpus)),
        network_guessed=guessed * crosses,
    )


def _gaps(m: Machine) -> tuple[bool, bool, bool]:
    """Whether a machine was never measured, never fitted, and has a network that no source
    states."""
    measured = m.accelerator.matmul_flops_per_s is not None or "matmul" in m.measured
    seen = m.accelerator.name in measured_accelerators() or m.measured >= WHOLE_DEVICE
    return not measured, not seen, not m.network_known

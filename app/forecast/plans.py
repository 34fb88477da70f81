"""Join rows of the search result with offers, and build the plan that one row shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from app.document import format as fmt
from app.document import vocabulary
from app.forecast.half_network import at_half
from app.forecast.machines import GIVEN, Machine
from app.forecast.search import Found, host_memory
from app.forecast.training import habits_of
from core.evidence import uncertainty
from core.layout.layouts import Layouts
from core.machine.cluster import ASSUMED_CEILING
from core.memory.memory import counted_bytes
from core.money import cost as money_cost
from core.money import other_costs
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import (
    AtHalfNetwork,
    ChosenCorrection,
    Interval,
    Layout,
    Plan,
    Total,
)
from core.units import GIB, HOUR_S
from hardware.measured import measured_accelerators
from pricing.book.offers import NO_TERMS, is_booked

STEADY = (
    "Steady state: failures, checkpoints, restarts and start-up are in expected time and cost, "
    "not in a step or its speed; `runcast risk` takes them apart."
)
UNCALIBRATED = (
    "Uncalibrated: the efficiencies were set on published runs of other people, not measured on "
    "these machines."
)
# What a calibration measures of a device that published runs would also show.
WHOLE_DEVICE = frozenset({"matmul", "attention", "memory", "elementwise"})
NETWORK_ASSUMED = (
    "No source states the network of this offer. Assumed are"  # how the sentence begins
)
CAPACITY = "Whether the provider has this many instances free was not checked."


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One machine at one GPU count with its best layout (row `best_row` of `Best`)."""

    id: str
    machine: Machine
    best_row: int
    num_gpus: int
    num_nodes: int
    num_steps: float
    run_hours: float  # steady state
    billed_hours: float
    gpu_hours: float
    usd: float  # total of everything that is priced; NaN: no price
    tokens_per_s: float
    stack: str
    instances_usd: float = math.nan
    total: Total | None = None
    rank: int = 0
    meets_deadline: bool = True
    meets_budget: bool = True
    frontier: bool = False
    against: tuple[str, ...] = ()  # stable words of app/forecast/standing.py
    no_launch: str = ""  # as in Plan
    chosen_correction: ChosenCorrection | None = None

    @property
    def hours(self) -> float:
        """Start-up and run."""
        return self.machine.supply.startup_hours + self.run_hours

    @property
    def other_usd(self) -> float:
        """Storage and traffic less credits, which may be more than the run costs."""
        terms = self.machine.terms
        return terms.usd_per_hour * self.hours + terms.usd - terms.credit_usd


def rows_of(pairs: Sequence[tuple[Machine, int]], found: Found, *, num_steps: float) -> list[Row]:
    """Machines, each with its row of the search, priced."""
    at = np.array([n for _, n in pairs], dtype=np.intp)
    best, offers = found.best, [m.offer for m, _ in pairs]
    run = num_steps * np.asarray(best.step.step_s, dtype=float)[at] / HOUR_S
    startup = np.array([m.supply.startup_hours for m, _ in pairs], dtype=float)
    billed = money_cost.billed_hours(
        run_hours=run,
        startup_hours=startup,
        least_hours=np.array([m.supply.least_billed_hours for m, _ in pairs]),
    )
    counts = np.asarray(best.layouts.num_gpus, dtype=float)[at]
    of_instance = np.array([o.gpu_count for o in offers], dtype=float)
    nodes = money_cost.num_instances(num_gpus=counts, gpus_per_instance=of_instance)
    prices = [math.nan if o.usd_per_hour is None else o.usd_per_hour for o in offers]
    instances_usd = money_cost.run_usd(
        wall_clock_hours=billed,
        num_instances=nodes,
        usd_per_instance_hour=np.array(prices, dtype=float),
    )
    paid = money_cost.gpu_hours(
        wall_clock_hours=billed, num_instances=nodes, gpus_per_instance=of_instance
    )
    usd = other_costs.run_total_usd(
        instances_usd=instances_usd,
        storage_usd_per_hour=np.array([m.terms.usd_per_hour for m, _ in pairs], dtype=float),
        hours=startup + run,
        egress_usd=np.array([m.terms.usd for m, _ in pairs], dtype=float),
        credit_usd=np.array([m.terms.credit_usd for m, _ in pairs], dtype=float),
    )
    numbers = (counts, nodes, run, billed, paid, instances_usd, usd, best.step.tokens_per_s[at])
    stacks = [v.stack for v in found.variants]
    asked = np.asarray(best.asked)[at].tolist()
    rows = zip(pairs, asked, *(np.asarray(x).tolist() for x in numbers), strict=True)
    return [
        Row(
            id="~".join(
                (m.offer.provider, m.offer.instance_type, m.offer.accelerator, m.offer.region,
                 m.offer.purchase, str(m.unit_gpus), str(int(count)))
            ),
            machine=m, best_row=n, num_gpus=int(count), num_nodes=int(node), num_steps=num_steps,
            run_hours=hours, billed_hours=bill, gpu_hours=gpu_hours, instances_usd=instances,
            usd=total, tokens_per_s=speed, stack=stacks[question],
        )
        for (m, n), question, count, node, hours, bill, gpu_hours, instances, total, speed in rows
    ]  # fmt: skip


def _total_usd(m: Machine, instances_usd: float, hours: float) -> float:
    """Dollars of instances with storage, traffic and credits of the price book; NaN stays NaN."""
    return as_float(
        other_costs.run_total_usd(
            instances_usd=instances_usd,
            storage_usd_per_hour=m.terms.usd_per_hour,
            hours=hours,
            egress_usd=m.terms.usd,
            credit_usd=m.terms.credit_usd,
        )
    )


def sigmas(rows: Sequence[Row], found: Found) -> NDArray[np.float64]:
    """Width of the forecast of tokens per second of each row."""
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
    half = np.log(at_half(found, rows))
    known = uncertainty.of_step(known, parts_s=parts_s, at_half_network=half)
    widths = np.zeros(at.shape)
    for number in np.unique(asked).tolist():
        eff = found.questions[number].eff
        of_stack = uncertainty.throughput_sigma(uncertainty.narrowed(eff, left), known)
        widths = np.where(asked == number, of_stack, widths)
    return widths


def _counted(row: Row, found: Found) -> dict[str, float]:
    """The peak memory of a row as each counter reads it."""
    n = row.best_row
    one = Layouts(
        **{f.name: np.asarray(getattr(found.best.layouts, f.name))[n] for f in fields(Layouts)}
    )
    peak = sum(float(part[n]) for part in found.best.memory.values())
    eff, reserve = found.question_of(n).eff, float(found.best.memory["reserve"][n])
    counted = counted_bytes(one, row.machine.cluster, eff, peak=peak, reserve=reserve)
    return {name: as_float(value) for name, value in counted.items()}


def plan_of(
    row: Row, found: Found, scenario: Scenario, *, half_network: float | None = None
) -> Plan:
    """Everything the page shows of one row; `half_network` is the step at half the network over
    the step."""
    best, total = found.best, row.total
    if total is None:
        raise LookupError(f"{row.id} has no totals")
    m, n = row.machine, row.best_row
    shift, variance_left = float(found.shift[n]), float(found.variance_left[n])
    crosses = row.num_nodes > 1
    sigma = float(sigmas((row,), found)[0])
    low = as_float(uncertainty.p10(row.tokens_per_s, sigma))
    high = as_float(uncertainty.p90(row.tokens_per_s, sigma))
    usd = None
    if not math.isnan(row.usd):  # dollars fall as tokens/s rise
        usd = Interval(
            p10=_usd_at(row, row.tokens_per_s / high),
            p50=row.usd,
            p90=_usd_at(row, row.tokens_per_s / low),
        )
    layout = found.layout_of(n)
    nearby = found.runs.of_row(n, shift=shift, variance_left=variance_left)
    own = found.runs.user_sentence(n, shift=shift, variance_left=variance_left)
    assumed = _assumptions(row, crosses=crosses, moved=own)
    return Plan(
        id=row.id,
        rank=row.rank,
        offer=m.offer,
        num_gpus=row.num_gpus,
        num_nodes=row.num_nodes,
        layout=layout,
        stack=row.stack,
        precision=found.variant_of(n).precision,
        compiled=bool(found.question_of(n).work.compiled),
        cuda_graphs=bool(found.question_of(n).work.cuda_graphs),
        tokens_per_s=Interval(p10=low, p50=row.tokens_per_s, p90=high),
        tokens_per_s_per_gpu=float(best.step.tokens_per_s_per_gpu[n]),
        mfu=float(best.step.mfu[n]),
        hfu=float(best.step.hfu[n]),
        model_flops_per_s_per_gpu=float(best.step.mfu[n] * m.cluster.peak_flops_per_s),
        step_s={p: float(v[n]) for p, v in best.step.parts.items() if v[n] > 0},
        memory_bytes={p: float(v[n]) for p, v in best.memory.items()},
        memory_capacity_bytes=m.accelerator.memory_bytes,
        memory_counted_bytes=_counted(row, found),
        probability_oom=float(best.probability_oom[n]),
        num_steps=row.num_steps,
        gpu_hours=row.gpu_hours,
        wall_clock_hours=row.run_hours,
        usd_per_gpu_hour=None if usd is None else row.instances_usd / row.gpu_hours,
        usd=usd,
        total=total,
        meets_deadline=row.meets_deadline,
        meets_budget=row.meets_budget,
        frontier=row.frontier,
        calibration=m.calibration,
        against=row.against,
        no_launch=row.no_launch,
        chosen_correction=row.chosen_correction,
        network=m.plan_network if crosses else None,
        supply=m.plan_supply,
        startup_hours=m.supply.startup_hours,
        least_billed_hours=m.supply.least_billed_hours,
        at_half_network=None
        if half_network is None
        else AtHalfNetwork(
            tokens_per_s=row.tokens_per_s / half_network,
            wall_clock_hours=row.run_hours * half_network,
            usd=None if usd is None else _usd_at(row, half_network),
        ),
        nearby=nearby,
        assumptions=(
            *assumed,
            *filter(None, (nearby.sentence,)),
            *_on_the_host(m, layout, float(best.host_bytes[n])),
            *habits_of(found.variant_of(n), layout.sharding, ep=layout.ep),
        ),
    )


def _usd_at(row: Row, stretch: float) -> float:
    """Dollars of the run if its training takes `stretch` times as long."""
    m, hours = row.machine, row.run_hours * stretch
    start, least = m.supply.startup_hours, m.supply.least_billed_hours
    billed = money_cost.billed_hours(run_hours=hours, startup_hours=start, least_hours=least)
    instances_usd = row.instances_usd * as_float(billed) / row.billed_hours
    return _total_usd(m, instances_usd, start + hours)


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


def _assumptions(row: Row, *, crosses: bool, moved: str) -> tuple[str, ...]:
    m = row.machine
    found = [STEADY, moved or _calibrated(m)]
    if is_booked(m.offer):
        found.append(f"The price is of the {m.offer.source}: {m.offer.note}.")
    if m.terms != NO_TERMS and not math.isnan(row.usd):
        found.append(
            f"The cost is {fmt.usd(row.instances_usd)} of instances, "
            f"{fmt.usd(m.terms.usd_per_hour * row.hours)} of storage and {fmt.usd(m.terms.usd)} "
            f"of traffic, less {fmt.usd(m.terms.credit_usd)} of credits, as the price book says."
        )
    found += _of_supply(m)
    if crosses:
        found += _of_network(m)
    if crosses and "unverified" in m.offer.note:
        found.append("The network figure of this offer was quoted from memory by its source.")
    if m.network.is_size_assumed and row.num_gpus > m.unit_gpus:
        found.append(
            f"The price is of one GPU; a machine of {m.network.gpus_per_machine}, as usual for "
            f"{m.accelerator.name}, is assumed to cost as many times that."
        )
    if m.accelerator.matmul_flops_per_s is None and "matmul" not in m.measured:
        found.append(
            f"Nobody's matmul measurement of {m.accelerator.name} is at hand: "
            f"{ASSUMED_CEILING:.0%} of its peak is assumed."
        )
    found += [
        f"{m.accelerator.name}: {vocabulary.assumed_fact(quantity, source.printed)}"
        for quantity, source in m.accelerator.sources.items()
        if source.assumed
    ]
    if row.num_nodes > 1:
        found.append(CAPACITY)
    if row.num_gpus < row.num_nodes * m.offer.gpu_count:
        idle = row.num_nodes * m.offer.gpu_count - row.num_gpus
        found.append(f"{idle} rented GPUs stay idle: instances are rented whole.")
    return tuple(found)


def _of_supply(m: Machine) -> list[str]:
    """How long the start takes and the least that is billed, each with its source."""
    found, of = [], m.supply
    if of.startup_hours:
        basis = "as given" if of.startup.ref == GIVEN.ref else f"usual ({of.startup.ref})"
        found.append(
            f"Training begins {fmt.days(of.startup_hours)} after the machines are asked "
            f"for, {basis}: counted in time and cost."
        )
    if of.least_billed_hours > of.startup_hours:
        basis = "assumed" if of.billing.assumed else of.billing.ref
        found.append(f"At least {fmt.days(of.least_billed_hours)} are billed ({basis}).")
    return found


def _of_network(m: Machine) -> list[str]:
    """What is assumed of the network between machines, or contradicts it."""
    of = m.network
    found = [of.conflict] if of.conflict else []
    if not m.network_known and of.gbit_per_s is not None:
        why = f"as clusters of {m.accelerator.name} usually have"
        if of.basis == "product":
            why = of.source.printed
        found.append(
            f"{NETWORK_ASSUMED} {of.gbit_per_s:,.4g} Gbit/s a machine: {why} ({of.source.ref})."
        )
    return found


def _calibrated(m: Machine) -> str:
    """Whether the rates of the machine were measured, where, and with which stack."""
    if not m.calibration:
        return UNCALIBRATED
    whose = f", measured with {m.calibrated_with}" if m.calibrated_with else ""
    return (
        f"Rates of {m.accelerator.name} are those of calibration {m.calibration}{whose}: "
        f"{', '.join(vocabulary.measured_constant(n) for n in sorted(m.measured))}."
    )


def _on_the_host(m: Machine, layout: Layout, needed: float) -> tuple[str, ...]:
    """How much host memory an offloading plan needs, as a sentence."""
    if layout.offload_optimizer == layout.offload_params == "none":
        return ()
    what = "Optimizer states and weights" if layout.offload_params != "none" else "Optimizer states"
    usable = host_memory(m)
    room = f", of {usable / GIB:,.0f} GiB that can be used" if usable else ""
    return (f"{what} wait in the host's memory: {needed / GIB:,.0f} GiB a GPU{room}.",)

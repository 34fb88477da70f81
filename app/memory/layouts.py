"""Memory of other layouts on a plan's machine: the next fastest, and those that would be faster if
they fitted. All legal layouts of the search are considered."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from app.explain import explained
from core.errors import ScenarioError
from core.explain.explain import Evaluated, evaluate, record_of
from core.layout.layouts import Choices, Layouts
from core.layout.sharding import column
from core.memory.memory_phases import late_gradient_bytes, phase_bytes
from core.memory.offload import work_on
from core.scenario import Scenario
from core.search.job import PlanJob
from core.search.plan import Layout, Plan
from core.search.space import candidates

NEXT, TOO_LARGE = 4, 3  # layouts drawn in addition to the plan's
MOST_ROWS = 60_000  # layouts evaluated: beyond this, some degrees are held at the plan's
WORTH_DRAWING = 2.0  # times the device's memory: a longer bar would dwarf the others
# What is held fixed if there are too many layouts, in this order.
HELD: tuple[str, ...] = ("cp", "etp", "ep", "pp", "tp", "micro_batch_size")
DEGREES = ("tp", "pp", "cp", "ep")
SHARDED = ("parameters", "gradients", "optimizer")

Kind = Literal["plan", "fits", "too_large"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One layout and the memory it needs on a GPU."""

    kind: Kind
    layout: Layout
    step_s: float
    usd: float | None  # of the whole run
    memory_bytes: dict[str, float]  # by part; adds up to need_bytes
    usable_bytes: float  # the safe limit, given the forecast's error
    capacity_bytes: float
    probability_oom: float

    @property
    def need_bytes(self) -> float:
        """The sum of all parts."""
        return sum(self.memory_bytes.values())

    @property
    def left_bytes(self) -> float:
        """Free memory of the device; negative if it is exceeded."""
        return self.capacity_bytes - self.need_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Memory of a plan's layout by phase, and of other layouts."""

    bars: tuple[Bar, ...]  # the plan's, then the next, then those that do not fit
    phases: dict[str, dict[str, float]]  # bytes by phase and part; empty without a plan
    late_gradient_bytes: float  # the part that some stacks avoid with one micro-batch
    num_legal: int
    num_fit: int
    same: tuple[str, ...]  # degrees held fixed because there are too many layouts

    def of(self, kind: Kind) -> tuple[Bar, ...]:
        """The bars of one kind."""
        return tuple(b for b in self.bars if b.kind == kind)


def held_of(plan: Plan) -> Held:
    """A plan's memory by phase, and that of other layouts on its machines."""
    job = plan.job
    row = explained.row_of(job, plan.layout)
    own = evaluate(job, row)
    at = (work_on(job.work, row), row, job.cluster, job.eff)
    found, same = legal_layouts(job, plan.layout)
    on_host = np.asarray(found.host_bytes <= job.host_bytes)
    return Held(
        bars=(_bar("plan", own, 0), *_others(found, own, on_host)),
        phases={
            phase: {part: float(v[0]) for part, v in parts.items()}
            for phase, parts in phase_bytes(*at).items()
        },
        late_gradient_bytes=float(np.ravel(late_gradient_bytes(*at))[0]),
        num_legal=len(found.step_s),
        num_fit=int((found.fits & on_host).sum()),
        same=same,
    )


def misses_of(scenario: Scenario) -> Held | None:
    """If nothing fits: the layouts that miss by least, on the cheapest machine with the first
    number of GPUs; None if there is no machine, no number of GPUs or no legal layout."""
    try:
        job = explained.job_without_plan(scenario)
    except ScenarioError:
        return None
    found, same = legal_layouts(job, None)
    on_host = found.host_bytes <= job.host_bytes
    short = np.flatnonzero(~found.fits & on_host)
    if not len(short):
        return None
    nearest = short[np.argsort(found.need_bytes[short], kind="stable")]
    return Held(
        bars=tuple(_bar("too_large", found, n) for n in _unlike(found.layouts, nearest, TOO_LARGE)),
        phases={},
        late_gradient_bytes=0.0,
        num_legal=len(found.step_s),
        num_fit=0,
        same=same,
    )


def _others(found: Evaluated, own: Evaluated, on_host: NDArray[np.bool_]) -> tuple[Bar, ...]:
    """The fastest layouts that fit, with other degrees or sharded states than the plan's, and the
    fastest that do not fit, preferring those that would be faster than the plan."""
    order = np.lexsort((found.need_bytes, found.step_s))
    pairs = zip(_seen(found.layouts), _seen(own.layouts), strict=True)
    others = found.fits & on_host & ~np.all([each == of_own for each, of_own in pairs], axis=0)
    fits = order[others[order]]
    short = ~found.fits & on_host & (found.need_bytes <= WORTH_DRAWING * found.capacity_bytes)
    faster = short & (found.step_s < own.step_s[0])
    out = order[(faster if faster.any() else short)[order]]
    return (
        *(_bar("fits", found, n) for n in _unlike(found.layouts, fits, NEXT)),
        *(_bar("too_large", found, n) for n in _unlike(found.layouts, out, TOO_LARGE)),
    )


def legal_layouts(job: PlanJob, like: Layout | None) -> tuple[Evaluated, tuple[str, ...]]:
    """Every legal layout, evaluated, and the degrees held fixed to limit their number."""
    choices = job.question.choices
    layouts, held = _candidates(job, choices), 0
    while like is not None and len(np.asarray(layouts.tp)) > MOST_ROWS and held < len(HELD):
        held += 1
        fixed: dict[str, Any] = {name: int(getattr(like, name)) for name in HELD[:held]}
        layouts = _candidates(job, replace(choices, **fixed))
    every = len(np.asarray(layouts.tp))
    # If nothing fits, no degree is known to be good: take an even sample of all.
    rows = np.linspace(0, every - 1, min(every, MOST_ROWS)).astype(np.intp)
    return evaluate(job, layouts.take(rows)), HELD[:held]


def _candidates(job: PlanJob, choices: Choices) -> Layouts:
    work, cluster = job.work, job.cluster
    per_node = int(np.asarray(cluster.gpus_per_node))
    layouts, _ = candidates(
        model=work.model,
        seq_len=int(np.asarray(work.seq_len)),
        global_batch_size=int(np.asarray(work.global_batch_size)),
        num_gpus=job.num_gpus,
        gpus_per_node=per_node,
        scale_up_domain=max(int(np.asarray(cluster.scale_up_domain)), per_node),
        choices=choices,
    )
    return layouts


def _seen(layouts: Layouts) -> list[NDArray[np.float64]]:
    """Columns of degrees and sharded states, in which drawn layouts differ. ZeRO-3 and FSDP2 are
    alike in them: they need about equal memory."""
    degrees = [np.asarray(getattr(layouts, n), dtype=float) for n in DEGREES]
    return degrees + [column(layouts.strategy, f"shards_{what}") for what in SHARDED]


def _unlike(layouts: Layouts, rows: NDArray[np.intp], most: int) -> list[int]:
    """The first rows that differ from each other in degrees or sharded states."""
    code = np.zeros(np.shape(layouts.tp))  # a number for each combination
    for values in _seen(layouts):
        code = code * 128 + np.unique(values, return_inverse=True)[1]
    _, first = np.unique(code[rows], return_index=True)
    return [int(rows[n]) for n in np.sort(first)[:most]]


def _bar(kind: Kind, found: Evaluated, row: int) -> Bar:
    usd = float(found.usd[row])
    return Bar(
        kind=kind,
        layout=record_of(found.layouts, row),
        step_s=float(found.step_s[row]),
        usd=usd if math.isfinite(usd) else None,
        memory_bytes={k: float(v[row]) for k, v in found.memory_bytes.items()},
        usable_bytes=float(found.usable_bytes[row]),
        capacity_bytes=float(found.capacity_bytes[row]),
        probability_oom=float(found.probability_oom[row]),
    )

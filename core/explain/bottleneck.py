"""Bottlenecks of one layout: each part of its step, and what would shorten or hide it.

Nothing is guessed from a part's name: the step is evaluated again with each resource made faster,
and a part is assigned to the resources that shorten it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from core.explain.explain import Floats, evaluate
from core.layout.layouts import RECOMPUTE, SEARCHED_RECOMPUTE, Layouts
from core.layout.workload import Workload
from core.machine.cluster import Cluster
from core.memory.offload import work_on
from core.numeric import as_float
from core.search.job import PlanJob
from core.time.step import step

HIDDEN = 0.02  # of the step: smaller parts are below the accuracy of any forecast
MOST = 64.0  # times a resource: beyond it nothing is proposed
MATTERS = 0.05  # of a part: a resource that could save less is not named
POINTS = 33  # of one pass over the factors; three passes find a factor to 0.02%
ENDLESS = 1e6  # times a resource: what is left then does not depend on it
WORK = ("compute", "recompute")  # not waiting: faster machines shorten it, nothing hides it

# Parts that belong together, in the order in which they are shown.
GROUPS: dict[str, tuple[str, ...]] = {
    "compute": ("matmul", "attention", "experts", "memory_bound", "head_loss"),
    "recompute": ("recompute",),
    "tp_exposed": ("tp_exposed",),
    "cp_exposed": ("cp_exposed",),
    "ep_exposed": ("ep_exposed",),
    "pp_exposed": ("pp_exposed",),
    "dp_exposed": ("dp_exposed",),
    "offload_exposed": ("offload_exposed",),
    "bubble": ("bubble",),
    "optimizer": ("optimizer",),
    "overhead": ("overhead",),
}
UP = ("peak_flops_per_s", "memory_bytes_per_s", "scale_up_bytes_per_s", "scale_out_bytes_per_s",
      "host_link_bytes_per_s")  # fmt: skip
DOWN = ("scale_up_hop_s", "scale_out_hop_s")
PEAK = UP[0]
LAUNCH, BATCH, MEMORY = "host_slowdown", "num_microbatches", "memory_bytes"
RESOURCES = (*UP, *DOWN, LAUNCH, BATCH)
ONLY_IN_ONE_NODE = ("scale_out_bytes_per_s", "scale_out_hop_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One resource that shortens a part. Seconds are per batch of today."""

    resource: str  # of RESOURCES, or MEMORY
    now: float
    needed: float | None  # that hides the part; None: no amount does
    saved_s: float  # of the whole step, at `needed`, else with twice as good a resource
    left_s: float  # of the part, at `needed`, else with an unlimited resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """One part of the step, or several that belong together."""

    group: str  # of GROUPS
    exposed_s: float
    share: float  # of the step
    hidden: bool  # whether it is negligible
    remedies: tuple[Remedy, ...]  # that which saves most first


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """One resource, twice as good: seconds of the step that it saves."""

    resource: str
    now: float
    saved_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Faster:
    """What would make a step faster. Latencies and launches are better where they are smaller."""

    step_s: float
    bottlenecks: tuple[Bottleneck, ...]  # the longest first; compute among them
    levers: tuple[Lever, ...]  # that which saves most first

    @property
    def next(self) -> Bottleneck | None:
        """The longest part that is not the arithmetic of the model; None if all are hidden."""
        return next((b for b in self.bottlenecks if b.group != "compute" and not b.hidden), None)


def faster(job: PlanJob, layouts: Layouts) -> Faster:
    """Bottlenecks of a layout (columns of one row): every part, and how much of each resource hides
    it."""
    now = {r: _now(job, layouts, r) for r in RESOURCES}
    tried = [r for r in RESOURCES if _plays(job, layouts, r)]
    factors = np.array([1.0, 2.0, ENDLESS])
    # One evaluation: each resource as it is, doubled, and unlimited.
    groups, step_s = improved(
        job, layouts, np.repeat(tried, len(factors)), np.tile(factors, len(tried))
    )
    whole = float(step_s[0])
    twice = {r: whole - float(step_s[3 * n + 1]) for n, r in enumerate(tried)}
    endless = {r: 3 * n + 2 for n, r in enumerate(tried)}
    shares = {g: s / step_s for g, s in groups.items()}

    def shortens(g: str, r: str) -> bool:
        """Whether a resource shortens a part: the seconds of work, or the share of waiting, because
        faster computing also shortens what others wait for."""
        seconds, end = (groups[g] if g in WORK else shares[g]), endless[r]
        waits = g in WORK or r != PEAK
        return bool(waits and twice[r] > 0 and seconds[end] < (1 - MATTERS) * seconds[0])

    pairs = [(g, r) for g in groups for r in tried if shortens(g, r)]
    hides = _hiding(
        job,
        layouts,
        [
            (g, r)
            for g, r in pairs
            if g not in WORK and shares[g][0] > HIDDEN >= shares[g][endless[r]]
        ],
    )

    def remedy(group: str, resource: str) -> Remedy:
        found = hides.get((group, resource))
        return Remedy(
            resource=resource,
            now=now[resource],
            needed=None if found is None else _value(now[resource], resource, found.factor),
            saved_s=twice[resource] if found is None else whole - found.step_s,
            left_s=float(groups[group][endless[resource]]) if found is None else found.left_s,
        )

    def remedies(group: str) -> tuple[Remedy, ...]:
        every = [remedy(g, r) for g, r in pairs if g == group]
        if group == "recompute":
            every = _less_recompute(job, layouts, whole) + every
        return tuple(sorted(every, key=lambda x: (x.needed is None, -x.saved_s)))

    found = [
        Bottleneck(
            group=g,
            exposed_s=float(s[0]),
            share=float(s[0]) / whole,
            hidden=bool(s[0] <= HIDDEN * whole),
            remedies=remedies(g),
        )
        for g, s in groups.items()
        if s[0] > 0
    ]
    levers = [Lever(resource=r, now=now[r], saved_s=twice[r]) for r in tried]
    return Faster(
        step_s=whole,
        bottlenecks=tuple(sorted(found, key=lambda b: -b.exposed_s)),
        levers=tuple(sorted(levers, key=lambda x: -x.saved_s)),
    )


def improved(
    job: PlanJob, layouts: Layouts, resources: Floats, factors: Floats
) -> tuple[dict[str, Floats], Floats]:
    """Seconds of each group and of the step with one resource `factors` times as good, one row per
    pair. A larger batch is a step of more work: its seconds are scaled to the batch of today."""
    names, f = np.asarray(resources), np.asarray(factors, dtype=float)

    def times(resource: str) -> Floats:
        return np.where(names == resource, f, 1.0)

    given = job.cluster
    cluster: Cluster = replace(
        given,
        **{r: getattr(given, r) * times(r) for r in UP},
        **{r: getattr(given, r) / times(r) for r in DOWN},
    )
    batches = times(BATCH)
    work: Workload = replace(
        job.work,
        host_slowdown=np.asarray(job.work.host_slowdown) / times(LAUNCH),
        global_batch_size=np.asarray(job.work.global_batch_size) * batches,
    )
    rows = layouts.take(np.zeros(len(f), dtype=np.intp))
    rows = replace(rows, num_microbatches=np.asarray(rows.num_microbatches) * batches)
    found = step(work_on(work, rows), rows, cluster, job.eff)
    scale = job.measured_factor / batches
    groups = {
        g: np.sum([found.parts[p] for p in parts if p in found.parts], axis=0) * scale
        for g, parts in GROUPS.items()
    }
    return groups, found.step_s * scale


def _now(job: PlanJob, layouts: Layouts, resource: str) -> float:
    owner: object = job.cluster
    if resource == LAUNCH:
        owner = job.work
    if resource == BATCH:
        owner = layouts
    return as_float(getattr(owner, resource))


def _plays(job: PlanJob, layouts: Layouts, resource: str) -> bool:
    """Whether the job uses a resource: one node has no network between nodes."""
    per_node = as_float(job.cluster.gpus_per_node)
    one_node = as_float(layouts.num_gpus) <= per_node
    return not (one_node and resource in ONLY_IN_ONE_NODE)


def _value(now: float, resource: str, factor: float | None) -> float | None:
    if factor is None:
        return None
    return now / factor if resource in (*DOWN, LAUNCH) else now * factor


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hiding:
    """Factor by which a resource must improve to hide a part, and the step that results."""

    factor: float
    step_s: float
    left_s: float


def _hiding(
    job: PlanJob, layouts: Layouts, pairs: list[tuple[str, str]]
) -> dict[tuple[str, str], _Hiding]:
    """The least factor of each resource with which its part is hidden: three passes over a grid
    between a factor that is not enough and the next one that is. Batches are whole multiples."""
    if not pairs:
        return {}
    names = np.repeat([r for _, r in pairs], POINTS)
    at = np.arange(len(pairs))
    low, high = np.zeros(len(pairs)), np.full(len(pairs), np.log(MOST))
    reached = np.ones(len(pairs), dtype=bool)
    for _ in range(3):
        grid = np.linspace(low, high, POINTS, axis=1)
        groups, step_s = improved(job, layouts, names, np.exp(grid).ravel())
        enough = np.array(
            [(groups[g] / step_s).reshape(-1, POINTS)[n] for n, (g, _) in enumerate(pairs)]
        ) <= HIDDEN  # fmt: skip
        reached &= enough.any(axis=1)
        first = np.maximum(enough.argmax(axis=1), 1)
        low, high = grid[at, first - 1], grid[at, first]
    whole = np.array([r == BATCH for _, r in pairs])
    factors = np.where(whole, np.ceil(np.exp(high) - 1e-9), np.exp(high))
    groups, step_s = improved(job, layouts, np.array([r for _, r in pairs]), factors)
    return {
        (g, r): _Hiding(
            factor=float(factors[n]), step_s=float(step_s[n]), left_s=float(groups[g][n])
        )
        for n, (g, r) in enumerate(pairs)
        if reached[n]
    }


def _less_recompute(job: PlanJob, layouts: Layouts, whole: float) -> list[Remedy]:
    """The memory with which a layout needs less recompute or none: the least that saves most."""
    kind = int(np.asarray(layouts.recompute).ravel()[0])
    most = min(kind, RECOMPUTE.index("full"))
    fewer = np.array([float(n) for n in map(RECOMPUTE.index, SEARCHED_RECOMPUTE) if n < most])
    if not len(fewer) or kind == 0:
        return []
    rows = replace(layouts.take(np.zeros(len(fewer), dtype=np.intp)), recompute=fewer)
    found = evaluate(job, rows)
    share = found.usable_bytes / found.capacity_bytes
    needed = found.need_bytes / share
    for _ in range(4):  # the reserve of a framework grows with the device, up to a limit
        larger = replace(job.cluster, memory_bytes=needed)
        needed = evaluate(job, rows, cluster=larger).need_bytes / share
    now = as_float(job.cluster.memory_bytes)
    return [
        Remedy(
            resource=MEMORY,
            now=now,
            needed=float(needed[n]),
            saved_s=whole - float(found.step_s[n]),
            left_s=float(found.parts_s["recompute"][n]),
        )
        for n in range(len(fewer))
        if needed[n] > now
    ]

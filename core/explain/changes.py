"""Layouts that differ from a given one in one or two knobs: which fit, and what each takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.explain.explain import Evaluated, Floats, evaluate, record_of, rent_of
from core.explain.knobs import (
    KNOBS,
    layouts_of,
    level_of,
    start_of,
    turned_rows,
    values_of,
    word_of,
)
from core.layout.layouts import Layouts, broken_rules
from core.layout.workload import NOWHERE
from core.machine.cluster import Cluster
from core.machine.cluster import as_columns as cluster_columns
from core.numeric import as_float
from core.search.job import Machine, PlanJob
from core.search.plan import Layout

FEW = 3  # changes shown at least, where there are as many
WORTH = 0.99  # a second knob must save 1% of what the first one alone leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A changed layout: which knobs were turned, and what it takes."""

    changed: Mapping[str, tuple[str, str]]  # knob: from, to
    layout: Layout
    num_gpus: int
    accelerator: str
    offload: str  # one of core.explain.knobs.OFFLOADS, or "elsewhere"
    step_s: float
    hours: float
    usd: float  # NaN: no price
    need_bytes: float
    capacity_bytes: float
    probability_oom: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes tried, and the best of them."""

    num_tried: int  # candidates with one or two knobs changed
    num_legal: int
    num_fit: int
    ranked: tuple[Change, ...]  # the cheapest first (the fastest, where nothing has a price)


def changes(
    job: PlanJob,
    base: Layout,
    *,
    machines: Sequence[Machine] = (),
    knobs: Sequence[str] = KNOBS,
    most: int = 8,
) -> Changes:
    """Every legal layout that fits and differs from `base` in one or two of `knobs`.

    `machines` are others to try. Of all changes of one set of knobs only the best is returned, and
    a change of two knobs only where it saves more than either knob alone.
    """
    every = (job.machine, *machines)
    start = start_of(base, job.num_gpus)
    values = values_of(job, base, every)
    rows = turned_rows({k: values[k] for k in KNOBS if k in knobs}, start)
    layouts = layouts_of(job, base, rows)
    legal = _legal(job, base, layouts, rows) & _within(job, base, rows, every)
    kept = np.flatnonzero(legal)
    rows = {k: v[kept] for k, v in rows.items()}
    found = _evaluated(job, layouts.take(kept), rows, every)
    fits = found.fits & np.isfinite(found.step_s) & (found.step_s > 0)
    fits &= found.host_bytes <= _host_room(job, base, rows, every)
    return Changes(
        num_tried=len(legal),
        num_legal=len(kept),
        num_fit=int(fits.sum()),
        ranked=tuple(
            _change(found, rows, int(n), start, every)
            for n in _best(found, rows, start, fits)[:most]
        ),
    )


def _host_room(
    job: PlanJob, base: Layout, rows: Mapping[str, Floats], machines: Sequence[Machine]
) -> Floats:
    """Bytes that each row may keep on the host: what the search may use there. Where the job sets
    its own offloading, no limit applies."""
    room = np.array([m.host_bytes for m in machines])[rows["accelerator"].astype(int)]
    own = (rows["offload"] == level_of(base)) & (not job.question.choices.searches_offload)
    return np.where(own, np.inf, room)


def _legal(
    job: PlanJob, base: Layout, layouts: Layouts, rows: Mapping[str, Floats]
) -> NDArray[np.bool_]:
    """Rows that break no rule."""
    # The job's own setting of the host counts where no knob of it was turned.
    fixed = replace(job.question.choices, virtual_stages=None, dp_shard=None)
    if level_of(base) == 0:
        fixed = replace(fixed, searches_offload=True)
    broken = broken_rules(
        layouts,
        model=job.work.model,
        seq_len=int(np.asarray(job.work.seq_len)),
        global_batch_size=int(np.asarray(job.work.global_batch_size)),
        choices=replace(fixed, fetches_params=False, offloads=False),
    )
    legal = ~np.any(list(broken.values()), axis=0)
    # Without a pipeline there are no virtual stages to vary.
    return legal & ~((rows["virtual_stages"] != base.virtual_stages) & (rows["pp"] == 1))


def _within(
    job: PlanJob, base: Layout, rows: Mapping[str, Floats], machines: Sequence[Machine]
) -> NDArray[np.bool_]:
    """Rows whose tensor parallelism stays on the scale-up link, or where the layout has it."""
    at = rows["accelerator"].astype(int)
    clusters, index = _clusters(job, rows, machines)
    domain = np.array([as_float(c.scale_up_domain) for c in clusters])[index]
    as_it_was = (rows["tp"] == base.tp) & (at == 0)
    across = job.question.choices.tp_across_nodes
    within = (rows["tp"] <= np.maximum(domain, 1.0)) | as_it_was | across
    return within & (rows["num_gpus"] <= np.array([m.most_gpus for m in machines])[at])


def _clusters(
    job: PlanJob, rows: Mapping[str, Floats], machines: Sequence[Machine]
) -> tuple[list[Cluster], NDArray[np.intp]]:
    """The clusters of the job and of each machine, and which of them each row is on: the job's own
    is of its number of GPUs."""
    other = (rows["accelerator"] > 0) | (rows["num_gpus"] != job.num_gpus)
    index = np.where(other, rows["accelerator"] + 1, 0).astype(np.intp)
    return [job.cluster, *(m.cluster for m in machines)], index


def _evaluated(
    job: PlanJob, layouts: Layouts, rows: Mapping[str, Floats], machines: Sequence[Machine]
) -> Evaluated:
    clusters, index = _clusters(job, rows, machines)
    rents = [rent_of(m) for m in machines]
    at = rows["accelerator"].astype(int)
    # Where optimizer and weights are kept is set by the rows themselves.
    work = replace(job.work, offload_optimizer=NOWHERE, offload_params=NOWHERE)
    return evaluate(
        job,
        layouts,
        work=work,
        cluster=cluster_columns(clusters).take(index),
        **{name: np.array([rent[name] for rent in rents])[at] for name in rents[0]},
    )


def _best(
    found: Evaluated,
    rows: Mapping[str, Floats],
    start: Mapping[str, float],
    fits: NDArray[np.bool_],
) -> list[int]:
    """Row numbers, the best first: one for each set of changed knobs, without changes whose second
    knob saves too little. Where that leaves few, the next best of any set."""
    score = found.usd if np.isfinite(found.usd[fits]).any() else found.hours
    score = np.where(np.isfinite(score), score, np.inf)
    best: dict[frozenset[str], int] = {}
    for n in np.lexsort((found.hours, score)):
        if fits[n]:
            turned = frozenset(k for k in KNOBS if rows[k][n] != start[k])
            best.setdefault(turned, int(n))
    alone = {next(iter(k)): float(score[n]) for k, n in best.items() if len(k) == 1}
    chosen = [
        n for turned, n in best.items()
        if len(turned) == 1
        or float(score[n]) < WORTH * min((alone[k] for k in turned if k in alone), default=np.inf)
    ]  # fmt: skip
    rest = (int(n) for n in np.lexsort((found.hours, score)) if fits[n] and int(n) not in chosen)
    chosen += [n for n, _ in zip(rest, range(FEW - len(chosen)), strict=False)]
    return sorted(chosen, key=lambda n: (float(score[n]), float(found.hours[n])))


def _change(
    found: Evaluated,
    rows: Mapping[str, Floats],
    n: int,
    start: Mapping[str, float],
    machines: Sequence[Machine],
) -> Change:
    here = {k: float(rows[k][n]) for k in KNOBS}
    changed = {
        k: (word_of(k, start[k], machines), word_of(k, here[k], machines))
        for k in KNOBS
        if here[k] != start[k]
    }
    return Change(
        changed=changed,
        layout=record_of(found.layouts, n),
        num_gpus=round(here["num_gpus"]),
        accelerator=machines[int(here["accelerator"])].accelerator.name,
        offload=word_of("offload", here["offload"], machines),
        step_s=float(found.step_s[n]),
        hours=float(found.hours[n]),
        usd=float(found.usd[n]),
        need_bytes=float(found.need_bytes[n]),
        capacity_bytes=float(found.capacity_bytes[n]),
        probability_oom=float(found.probability_oom[n]),
    )

"""Layouts that differ from a given one in one or two knobs: which fit, and what each takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.explain.explain import Case, Evaluated, Floats, Place, evaluate, record_of
from core.explain.knobs import (
    KNOBS,
    layouts_of,
    level_of,
    start_of,
    turned_rows,
    values_of,
    word_of,
)
from core.layout.layouts import Choices, Layouts, broken_rules
from core.layout.workload import NOWHERE
from core.machine.cluster import as_columns as cluster_columns
from core.numeric import as_float
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
    case: Case,
    base: Layout,
    *,
    num_gpus: int,
    choices: Choices,
    places: Sequence[Place] = (),
    knobs: Sequence[str] = KNOBS,
    most: int = 8,
) -> Changes:
    """Every legal layout that fits and differs from `base` in one or two of `knobs`.

    `places` are other machines to try. Of all changes of one set of knobs only the best is
    returned, and a change of two knobs only where it saves more than either knob alone.
    """
    every = (case.place, *places)
    values = values_of(case, base, num_gpus, choices, every)
    rows = turned_rows({k: values[k] for k in KNOBS if k in knobs}, start_of(base, num_gpus))
    layouts = layouts_of(case, base, rows)
    legal = _legal(case, base, layouts, rows, choices) & _within(base, rows, choices, every)
    kept = np.flatnonzero(legal)
    rows = {k: v[kept] for k, v in rows.items()}
    found = _evaluated(case, layouts.take(kept), rows, every)
    fits = found.fits & np.isfinite(found.step_s) & (found.step_s > 0)
    fits &= found.host_bytes <= _host_room(rows, base, choices, every)
    return Changes(
        num_tried=len(legal),
        num_legal=len(kept),
        num_fit=int(fits.sum()),
        ranked=tuple(
            _change(found, rows, int(n), base, num_gpus, every)
            for n in _best(found, rows, start_of(base, num_gpus), fits)[:most]
        ),
    )


def _host_room(
    rows: Mapping[str, Floats], base: Layout, choices: Choices, places: Sequence[Place]
) -> Floats:
    """Bytes that each row may keep on the host: what the search may use there. Where the job sets
    its own offloading, no limit applies."""
    room = np.array([p.host_bytes for p in places])[rows["accelerator"].astype(int)]
    own = (rows["offload"] == level_of(base)) & (not choices.searches_offload)
    return np.where(own, np.inf, room)


def _legal(
    case: Case, base: Layout, layouts: Layouts, rows: Mapping[str, Floats], choices: Choices
) -> NDArray[np.bool_]:
    """Rows that break no rule."""
    # The job's own setting of the host counts where no knob of it was turned.
    fixed = replace(choices, virtual_stages=None, dp_shard=None)
    if level_of(base) == 0:
        fixed = replace(fixed, searches_offload=True)
    broken = broken_rules(
        layouts,
        model=case.work.model,
        seq_len=int(np.asarray(case.work.seq_len)),
        global_batch_size=int(np.asarray(case.work.global_batch_size)),
        choices=replace(fixed, fetches_params=False, offloads=False),
    )
    legal = ~np.any(list(broken.values()), axis=0)
    # Without a pipeline there are no virtual stages to vary.
    return legal & ~((rows["virtual_stages"] != base.virtual_stages) & (rows["pp"] == 1))


def _within(
    base: Layout, rows: Mapping[str, Floats], choices: Choices, places: Sequence[Place]
) -> NDArray[np.bool_]:
    """Rows whose tensor parallelism stays on the scale-up link, or where the layout has it."""
    at = rows["accelerator"].astype(int)
    domain = np.array([as_float(p.cluster.scale_up_domain) for p in places])[at]
    as_it_was = (rows["tp"] == base.tp) & (at == 0)
    within = (rows["tp"] <= np.maximum(domain, 1.0)) | as_it_was | choices.tp_across_nodes
    return within & (rows["num_gpus"] <= np.array([p.most_gpus for p in places])[at])


def _evaluated(
    case: Case, layouts: Layouts, rows: Mapping[str, Floats], places: Sequence[Place]
) -> Evaluated:
    at = rows["accelerator"].astype(int)
    # Where optimizer and weights are kept is set by the rows themselves.
    work = replace(case.work, offload_optimizer=NOWHERE, offload_params=NOWHERE)
    return evaluate(
        case,
        layouts,
        work=work,
        cluster=cluster_columns([p.cluster for p in places]).take(at),
        gpus_per_instance=np.array([p.gpus_per_instance for p in places])[at],
        usd_per_instance_hour=np.array([p.usd_per_instance_hour for p in places])[at],
        startup_hours=np.array([p.startup_hours for p in places])[at],
        least_billed_hours=np.array([p.least_billed_hours for p in places])[at],
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
    base: Layout,
    num_gpus: int,
    places: Sequence[Place],
) -> Change:
    start = start_of(base, num_gpus)
    here = {k: float(rows[k][n]) for k in KNOBS}
    place = places[int(here["accelerator"])]
    changed = {
        k: (word_of(k, start[k], places), word_of(k, here[k], places))
        for k in KNOBS
        if here[k] != start[k]
    }
    return Change(
        changed=changed,
        layout=record_of(found.layouts, n),
        num_gpus=round(here["num_gpus"]),
        accelerator=place.name,
        offload=word_of("offload", here["offload"], places),
        step_s=float(found.step_s[n]),
        hours=float(found.hours[n]),
        usd=float(found.usd[n]),
        need_bytes=float(found.need_bytes[n]),
        capacity_bytes=float(found.capacity_bytes[n]),
        probability_oom=float(found.probability_oom[n]),
    )

"""Layouts that differ from one in one or two knobs: which fit, and what each would take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from core.cluster import as_columns as cluster_columns
from core.degrees import divisors, micro_batch_sizes, virtual_stages
from core.explain import Case, Evaluated, Floats, Place, evaluate, record_of
from core.layouts import (
    CONTEXT_METHODS,
    LONG_SEQUENCE,
    RECOMPUTE,
    SCHEDULES,
    SEARCHED,
    SEARCHED_RECOMPUTE,
    Choices,
    Layouts,
    broken_rules,
)
from core.offload import LEVELS
from core.plan import Layout
from core.sharding import INDEX, STRATEGIES
from core.transformer import is_moe
from core.workload import NOWHERE, OFFLOAD

# In words what core.offload.LEVELS are.
OFFLOADS = ("all on the device", "optimizer on the host", "optimizer and weights on the host")
KNOBS = (
    "tp", "pp", "virtual_stages", "cp", "ep", "micro_batch_size", "sharding", "recompute",
    "offload", "num_gpus", "accelerator",
)  # fmt: skip
MOST_KNOBS = 2
LARGEST = 131_072  # GPUs
FEW = 3  # changes that are told at least, where there are as many
WORTH = 0.99  # a second knob must save 1% of what the first one alone leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One layout beside another: what was changed, and what it takes."""

    changed: Mapping[str, tuple[str, str]]  # knob: from, to
    layout: Layout
    num_gpus: int
    accelerator: str
    offload: str  # one of OFFLOADS, or "elsewhere"
    step_s: float
    hours: float
    usd: float  # NaN: no price
    need_bytes: float
    capacity_bytes: float
    probability_oom: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What was looked at, and the best of it."""

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

    `places` are other machines to try. Of all that change the same knobs the best one is told,
    and two knobs only where they save on what either saves alone.
    """
    every = (case.place, *places)
    values = _values(case, base, num_gpus, choices, every)
    rows = _rows({k: values[k] for k in KNOBS if k in knobs}, _start(base, num_gpus))
    layouts = _layouts(case, base, rows)
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
            for n in _best(found, rows, _start(base, num_gpus), fits)[:most]
        ),
    )


def _host_room(
    rows: Mapping[str, Floats], base: Layout, choices: Choices, places: Sequence[Place]
) -> Floats:
    """Bytes that each row may keep on the host: what the search may use there. What the job
    itself says of the host is believed."""
    room = np.array([p.host_bytes for p in places])[rows["accelerator"].astype(int)]
    said = (rows["offload"] == _level(base)) & (not choices.searches_offload)
    return np.where(said, np.inf, room)


def _start(base: Layout, num_gpus: int) -> dict[str, float]:
    """The knobs of the layout itself, as numbers."""
    degrees = ("tp", "pp", "virtual_stages", "cp", "ep", "micro_batch_size")
    return {
        **{n: float(getattr(base, n)) for n in degrees},
        "sharding": float(INDEX[base.sharding]),
        "recompute": float(RECOMPUTE.index(base.recompute)),
        "offload": _level(base),
        "num_gpus": float(num_gpus),
        "accelerator": 0.0,
    }


def _level(base: Layout) -> float:
    """The number of what waits on the host in core.offload.LEVELS; beyond them: another place."""
    here = (OFFLOAD[base.offload_optimizer], OFFLOAD[base.offload_params])
    return float(LEVELS.index(here)) if here in LEVELS else float(len(LEVELS))


def _values(
    case: Case, base: Layout, num_gpus: int, choices: Choices, places: Sequence[Place]
) -> dict[str, list[float]]:
    """What each knob is turned to, its own value not among it."""
    model, cluster = case.work.model, case.place.cluster
    domain = max(float(np.asarray(cluster.scale_up_domain)), float(base.tp))
    layers = float(np.max(model.num_layers))
    experts = float(np.max(model.num_experts)) if bool(np.any(is_moe(model))) else 1.0
    long = int(np.asarray(case.work.seq_len)) >= LONG_SEQUENCE or base.cp > 1
    chunks = virtual_stages(layers=int(layers), pp=base.pp)
    chunks = chunks if base.schedule == "interleaved" else [1]
    levels = range(len(LEVELS)) if _level(base) < len(LEVELS) else ()
    tried: dict[str, list[float]] = {
        "tp": _degrees(domain, num_gpus),
        "pp": _degrees(min(layers, float(num_gpus)), num_gpus),
        "virtual_stages": [float(c) for c in chunks],
        "cp": _degrees(min(64.0, float(num_gpus)), num_gpus) if long else [1.0],
        "ep": _degrees(experts, int(experts)),
        "micro_batch_size": [
            float(b) for b in micro_batch_sizes(
                global_batch_size=int(np.asarray(case.work.global_batch_size))
            )
        ],
        "sharding": [float(INDEX[n]) for n in (choices.shardings or SEARCHED)],
        "recompute": [
            float(RECOMPUTE.index(r)) for r in (choices.recomputes or SEARCHED_RECOMPUTE)
        ],
        "offload": [float(n) for n in levels],
        "num_gpus": [float(n) for n in (num_gpus // 2, num_gpus * 2, num_gpus * 4)
                     if 1 <= n <= min(LARGEST, case.place.most_gpus)],
        "accelerator": [float(n) for n in range(1, len(places))],
    }  # fmt: skip
    start = _start(base, num_gpus)
    return {k: [v for v in tried[k] if v != start[k]] for k in KNOBS}


def _degrees(limit: float, whole: int) -> list[float]:
    """Powers of two and divisors of `whole`, up to a limit."""
    powers = {2**i for i in range(int(limit).bit_length())}
    return [float(n) for n in sorted({*powers, *divisors(whole)}) if n <= limit]


def _rows(values: Mapping[str, list[float]], start: Mapping[str, float]) -> dict[str, Floats]:
    """One row for each turn of one knob, and of each two."""
    column = {k: n for n, k in enumerate(KNOBS)}
    turns: list[tuple[tuple[int, float], ...]] = []
    for many in range(1, MOST_KNOBS + 1):
        for names in combinations(values, many):
            every = product(*(values[n] for n in names))
            turns += [
                tuple((column[n], v) for n, v in zip(names, row, strict=True)) for row in every
            ]
    table = np.tile([start[k] for k in KNOBS], (len(turns), 1))
    for n, turned in enumerate(turns):
        for at, value in turned:
            table[n, at] = value
    return {k: table[:, n] for k, n in column.items()}


def _layouts(case: Case, base: Layout, rows: Mapping[str, Floats]) -> Layouts:
    """The rows as layouts: data parallelism and micro-batches follow from the knobs."""
    tp, pp, cp, ep = (rows[k] for k in ("tp", "pp", "cp", "ep"))
    ranks = rows["num_gpus"] / (tp * pp * cp)
    in_node = np.maximum(float(np.asarray(case.place.cluster.gpus_per_node)) / (tp * cp), 1.0)
    hybrid = rows["sharding"] == INDEX["hsdp"]
    if base.sharding == "hsdp" and base.dp_replicate > 1:
        in_node = np.where((tp == base.tp) & (cp == base.cp), float(base.dp_shard), in_node)
    shard = np.where(hybrid, np.minimum(in_node, ranks), ranks)
    same_ranks = (rows["sharding"] == INDEX[base.sharding]) & (
        ranks == base.dp_replicate * base.dp_shard
    )
    shard = np.where(same_ranks, float(base.dp_shard), shard)
    moe = bool(np.any(is_moe(case.work.model)))
    etp = np.where((ep == 1) & moe, tp, float(base.etp) if base.ep > 1 else 1.0)
    full = np.full_like(tp, 1.0)
    return Layouts(
        num_gpus=rows["num_gpus"],
        tp=tp,
        pp=pp,
        virtual_stages=np.where(pp > 1, rows["virtual_stages"], 1.0),
        cp=cp,
        ep=ep,
        etp=etp,
        dp_replicate=ranks / shard,
        dp_shard=shard,
        strategy=rows["sharding"],
        micro_batch_size=rows["micro_batch_size"],
        num_microbatches=float(np.asarray(case.work.global_batch_size))
        / (ranks * rows["micro_batch_size"]),
        recompute=rows["recompute"],
        sequence_parallel=(tp > 1).astype(float),
        schedule=full * SCHEDULES.index(base.schedule),
        context_method=full * CONTEXT_METHODS.index(base.context_parallel),
        reshard=full * float(base.reshard_after_forward),
        **_places(base, rows["offload"]),
    )


def _places(base: Layout, level: Floats) -> dict[str, Floats]:
    """Where optimizer and weights are: as in the layout itself, but for rows that move them."""
    own = (OFFLOAD[base.offload_optimizer], OFFLOAD[base.offload_params])
    table = np.array([*LEVELS, own])[level.astype(int)]
    return {"offload_optimizer": table[:, 0], "offload_params": table[:, 1]}


def _legal(
    case: Case, base: Layout, layouts: Layouts, rows: Mapping[str, Floats], choices: Choices
) -> NDArray[np.bool_]:
    """Rows that break no rule."""
    # What the job says of the host counts where nothing there was turned.
    said = replace(choices, virtual_stages=None, dp_shard=None)
    if _level(base) == 0:
        said = replace(said, searches_offload=True)
    broken = broken_rules(
        layouts,
        model=case.work.model,
        seq_len=int(np.asarray(case.work.seq_len)),
        global_batch_size=int(np.asarray(case.work.global_batch_size)),
        choices=replace(said, fetches_params=False, offloads=False),
    )
    legal = ~np.any(list(broken.values()), axis=0)
    # Without a pipeline there are no chunks to turn.
    return legal & ~((rows["virtual_stages"] != base.virtual_stages) & (rows["pp"] == 1))


def _within(
    base: Layout, rows: Mapping[str, Floats], choices: Choices, places: Sequence[Place]
) -> NDArray[np.bool_]:
    """Rows whose tensor parallelism stays on the scale-up link, or where the layout has it."""
    at = rows["accelerator"].astype(int)
    domain = np.array([float(np.asarray(p.cluster.scale_up_domain)) for p in places])[at]
    as_it_was = (rows["tp"] == base.tp) & (at == 0)
    within = (rows["tp"] <= np.maximum(domain, 1.0)) | as_it_was | choices.tp_across_nodes
    return within & (rows["num_gpus"] <= np.array([p.most_gpus for p in places])[at])


def _evaluated(
    case: Case, layouts: Layouts, rows: Mapping[str, Floats], places: Sequence[Place]
) -> Evaluated:
    at = rows["accelerator"].astype(int)
    # Where optimizer and weights are the rows themselves say.
    work = replace(case.work, offload_optimizer=NOWHERE, offload_params=NOWHERE)
    return evaluate(
        case,
        layouts,
        work=work,
        cluster=cluster_columns([p.cluster for p in places]).take(at),
        gpus_per_instance=np.array([p.gpus_per_instance for p in places])[at],
        usd_per_instance_hour=np.array([p.usd_per_instance_hour for p in places])[at],
    )


def _best(
    found: Evaluated,
    rows: Mapping[str, Floats],
    start: Mapping[str, float],
    fits: NDArray[np.bool_],
) -> list[int]:
    """Row numbers, the best first: one for each set of changed knobs, without a second knob
    that is not worth its turn. Where that leaves few, the next best of any set."""
    score = found.usd if np.isfinite(found.usd[fits]).any() else found.hours
    score = np.where(np.isfinite(score), score, np.inf)
    best: dict[frozenset[str], int] = {}
    for n in np.lexsort((found.hours, score)):
        if fits[n]:
            turned = frozenset(k for k in KNOBS if rows[k][n] != start[k])
            best.setdefault(turned, int(n))
    alone = {next(iter(k)): float(score[n]) for k, n in best.items() if len(k) == 1}
    told = [
        n for turned, n in best.items()
        if len(turned) == 1
        or float(score[n]) < WORTH * min((alone[k] for k in turned if k in alone), default=np.inf)
    ]  # fmt: skip
    rest = (int(n) for n in np.lexsort((found.hours, score)) if fits[n] and int(n) not in told)
    told += [n for n, _ in zip(rest, range(FEW - len(told)), strict=False)]
    return sorted(told, key=lambda n: (float(score[n]), float(found.hours[n])))


def _change(
    found: Evaluated,
    rows: Mapping[str, Floats],
    n: int,
    base: Layout,
    num_gpus: int,
    places: Sequence[Place],
) -> Change:
    start = _start(base, num_gpus)
    here = {k: float(rows[k][n]) for k in KNOBS}
    place = places[int(here["accelerator"])]
    changed = {
        k: (_word(k, start[k], places), _word(k, here[k], places))
        for k in KNOBS
        if here[k] != start[k]
    }
    return Change(
        changed=changed,
        layout=record_of(found.layouts, n),
        num_gpus=round(here["num_gpus"]),
        accelerator=place.name,
        offload=_word("offload", here["offload"], places),
        step_s=float(found.step_s[n]),
        hours=float(found.hours[n]),
        usd=float(found.usd[n]),
        need_bytes=float(found.need_bytes[n]),
        capacity_bytes=float(found.capacity_bytes[n]),
        probability_oom=float(found.probability_oom[n]),
    )


def _word(knob: str, value: float, places: Sequence[Place]) -> str:
    names: dict[str, Sequence[str]] = {
        "sharding": [s.name for s in STRATEGIES],
        "recompute": RECOMPUTE,
        "offload": (*OFFLOADS, "elsewhere"),
        "accelerator": [p.name for p in places],
    }
    return names[knob][int(value)] if knob in names else f"{value:.0f}"

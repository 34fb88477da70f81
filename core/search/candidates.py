"""Candidates of one GPU count, built in stages: degrees, micro-batch, experts, strategy.

Each stage drops what its rules forbid before the next one multiplies the rest, so that illegal
combinations are counted and never built.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.layout import degrees
from core.layout.layouts import (
    CONTEXT_METHODS,
    LONG_SEQUENCE,
    SCHEDULES,
    SEARCHED,
    Broken,
    Choices,
    Layouts,
    batch_rules,
    degree_rules,
    expert_rules,
    recompute_kinds,
    strategy_rules,
)
from core.layout.sharding import INDEX
from core.memory.offload import LEVELS
from core.model.transformer import Transformer, is_moe

MOST_ROWS = 8_000_000  # of one GPU count, before the rules of strategies; the rest is dropped

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]


@dataclass(slots=True, kw_only=True)
class Staged:
    """The candidates of one GPU count, of all its node shapes; lists are by level of offload.

    Candidates that a rule removes are counted by tp and by strategy, so that each node shape gets
    the counts of its own space.
    """

    shapes: list[tuple[int, int]]  # GPUs of a node, and of a scale-up domain
    limits: list[float]  # the largest tp of each shape
    groups: list[list[int]]  # of each shape: GPUs over which hybrid sharding may cut one copy
    axis: list[tuple[int, int]]  # strategy, and GPUs of its group
    tps: Floats
    ways: Floats  # of each tp: candidates before strategies
    removed: dict[str, Floats]  # of each tp: those of them that a rule removes
    removed_strategies: dict[str, Floats]  # tp x axis
    cut: Floats  # of each tp
    per_strategy: int  # candidates for each way and strategy: levels x recompute modes
    kinds: int
    cells: dict[str, Floats]
    cell: list[Ints]
    strategy: list[Ints]
    group: list[Ints]
    below: tuple[tuple[Ints, ...], ...]


def staged(
    num_gpus: int,
    shapes: list[tuple[int, int]],
    model: Transformer,
    seq_len: int,
    global_batch_size: int,
    choices: Choices,
) -> Staged:
    """The candidates of one GPU count, stage by stage."""
    columns = _degrees(num_gpus, max(d for _, d in shapes), model, seq_len, choices)
    experts = _experts(model, choices)
    batches = (
        [choices.micro_batch_size]
        if choices.micro_batch_size
        else degrees.micro_batch_sizes(global_batch_size=global_batch_size)
    )
    groups = [degrees.shard_groups(num_gpus=num_gpus, gpus_per_node=n) for n, _ in shapes]
    axis = _strategies(choices, groups)
    tps = np.unique(columns["tp"])
    levels = len(LEVELS) if choices.searches_offload else 1
    removed: dict[str, Floats] = {}

    def by_tp(tp: Floats, weight: Floats) -> Floats:
        return np.bincount(np.searchsorted(tps, tp), weight, len(tps)).astype(float)

    def drop(columns: dict[str, Floats], ways: Floats, broken: Broken) -> Ints:
        """Rows that break no rule of a stage; the others are counted under the first rule they
        break."""
        out = np.zeros(len(ways), dtype=bool)
        for reason, rows in broken.items():
            if not np.any(rows):
                removed[reason] = np.zeros(len(tps))
                continue
            first = rows & ~out
            removed[reason] = by_tp(columns["tp"][first], ways[first])
            out |= first
        return np.flatnonzero(~out)

    def laid(columns: dict[str, Floats]) -> Layouts:
        return layouts_of(columns, global_batch_size=global_batch_size, choices=choices)

    pairs = [experts(t) for t in tps]
    of_tp = np.array([len(p) for p in pairs], dtype=float)
    ways = of_tp[np.searchsorted(tps, columns["tp"])] * len(batches)
    every = by_tp(columns["tp"], ways)
    rules = degree_rules(
        laid(columns), model=model, seq_len=seq_len, layer_split=choices.layer_split
    )
    rows = drop(columns, ways, rules)
    columns, ways = _rows(columns, rows), ways[rows] / len(batches)

    row, batch = np.divmod(np.arange(len(rows) * len(batches)), len(batches))
    columns, ways = _rows(columns, row), ways[row]
    columns["micro_batch_size"] = np.array(batches, dtype=float)[batch]
    rules = batch_rules(laid(columns), global_batch_size=global_batch_size, choices=choices)
    rows = drop(columns, ways, rules)
    columns, ways = _rows(columns, rows), ways[rows]

    after = len(axis) * levels * len(recompute_kinds(choices))
    kept = _within(columns, ways, MOST_ROWS / after)
    cut = by_tp(columns["tp"], ways) - by_tp(columns["tp"][kept], ways[kept])
    columns = _rows(columns, kept)
    tp = np.searchsorted(tps, columns["tp"])
    columns = _rows(columns, np.repeat(np.arange(len(tp)), of_tp[tp].astype(int)))
    flat = np.array([x for t in tp for x in pairs[t]], dtype=float).reshape(-1, 2)
    columns["ep"], columns["etp"] = flat[:, 0], flat[:, 1]
    rows = drop(columns, np.ones(len(flat)), expert_rules(laid(columns), model=model))
    columns = _rows(columns, rows)

    legal, tables = _legal_strategies(columns, axis, levels, choices, tps)
    places = [np.nonzero(mask) for mask in legal]
    return Staged(
        shapes=shapes,
        limits=[
            float(tps[-1]) if choices.tp or choices.tp_across_nodes else float(d) for _, d in shapes
        ],
        groups=groups,
        axis=axis,
        tps=tps,
        ways=every,
        removed=removed,
        removed_strategies=tables,
        cut=cut,
        per_strategy=levels * len(recompute_kinds(choices)),
        kinds=len(recompute_kinds(choices)),
        cells=columns,
        cell=[cell for cell, _ in places],
        strategy=[np.array([a for a, _ in axis])[s] for _, s in places],
        group=[np.array([g for _, g in axis])[s] for _, s in places],
        below=_below(legal),
    )


def _strategies(choices: Choices, groups: list[list[int]]) -> list[tuple[int, int]]:
    """Strategies, and for hybrid sharding the GPUs over which it divides one copy."""
    found: list[tuple[int, int]] = []
    for name in choices.shardings or SEARCHED:
        several = sorted({g for some in groups for g in some}) if name == "hsdp" else [0]
        found += [(INDEX[name], g) for g in several]
    return found


def _rows(columns: dict[str, Floats], rows: Ints) -> dict[str, Floats]:
    return {name: column[rows] for name, column in columns.items()}


def _degrees(
    num_gpus: int, domain: int, model: Transformer, seq_len: int, choices: Choices
) -> dict[str, Floats]:
    """Every tp, pp, cp and number of virtual stages to try, legal or not; in the order of tp."""
    c, layers = choices, int(np.max(model.num_layers))
    tps = [c.tp] if c.tp else degrees.tensor_parallel(
        num_gpus=num_gpus, domain=domain, across_nodes=c.tp_across_nodes
    )  # fmt: skip
    pps = [c.pp] if c.pp else degrees.pipeline_parallel(num_gpus=num_gpus, layers=layers)
    long = seq_len >= LONG_SEQUENCE
    cps = [c.cp] if c.cp else degrees.context_parallel(num_gpus=num_gpus) if long else [1]

    def chunks(pp: int) -> list[int]:
        if pp == 1 or (not c.virtual_stages and c.schedule != "interleaved"):
            return [1]  # one chunk is plain 1F1B; without a pipeline there are none
        return [c.virtual_stages] if c.virtual_stages else degrees.virtual_stages(
            layers=layers, pp=pp
        )  # fmt: skip

    of_pp = {p: chunks(p) for p in pps}
    grid = np.array(
        [(t, p, cp, v) for t in tps for p in pps for cp in cps for v in of_pp[p]], dtype=float
    ).reshape(-1, 4)
    names = ("tp", "pp", "cp", "virtual_stages")
    found = {name: grid[:, n] for n, name in enumerate(names)}
    found["num_gpus"] = np.full(len(grid), float(num_gpus))
    return found


def _experts(model: Transformer, choices: Choices) -> Callable[[float], list[tuple[float, float]]]:
    """tp -> the pairs of ep and etp to try: experts whole, or divided like the rest of the
    layer."""
    moe = bool(np.any(is_moe(model)))
    eps = [choices.ep] if choices.ep else (
        degrees.expert_parallel(num_experts=int(np.max(model.num_experts))) if moe else [1]
    )  # fmt: skip

    def pairs(tp: float) -> list[tuple[float, float]]:
        if choices.etp is not None:
            cuts: list[float] = [choices.etp]
        else:
            cuts = [1.0, tp] if moe and tp > 1 else [1.0]
        return [(float(ep), float(etp)) for ep in eps for etp in cuts]

    return pairs


def _within(columns: dict[str, Floats], ways: Floats, most: float) -> Ints:
    """The rows to evaluate, at most a fixed number: powers of two and small model-parallel groups
    first."""
    if ways.sum() <= most:
        return np.arange(len(ways))
    product = columns["tp"] * columns["pp"] * columns["cp"]
    uneven = np.log2(product * columns["micro_batch_size"]) % 1 != 0
    order = np.lexsort((product, uneven))
    return np.sort(order[: int(np.searchsorted(np.cumsum(ways[order]), most))])


def _legal_strategies(
    cells: dict[str, Floats],
    axis: list[tuple[int, int]],
    num_levels: int,
    choices: Choices,
    tps: Floats,
) -> tuple[list[Bools], dict[str, Floats]]:
    """For each level of offload: which of cells x strategies are legal, and how many each rule is
    the first to remove, by tp x strategies."""
    shape = (len(cells["tp"]), len(axis))
    row, s = (x.ravel() for x in np.indices(shape))
    columns = _rows(cells, row)
    place = np.searchsorted(tps, columns["tp"]) * len(axis) + s
    table = (len(tps), len(axis))
    found: list[Bools] = []
    removed: dict[str, Floats] = {}
    lay = layouts_of(
        columns,
        strategy=np.array([a for a, _ in axis], dtype=float)[s],
        group=np.array([g for _, g in axis], dtype=float)[s],
        global_batch_size=1,
        choices=choices,
    )
    for optimizer, params in LEVELS[:num_levels]:
        lay = replace(lay, offload_optimizer=optimizer, offload_params=params)
        out = np.zeros(len(s), dtype=bool)
        for reason, rows in strategy_rules(lay, choices=choices).items():
            held = removed.setdefault(reason, np.zeros(table))
            if not np.any(rows):
                continue
            first = rows & ~out
            counts = np.bincount(place[first], minlength=table[0] * table[1]).reshape(table)
            removed[reason] = held + counts
            out |= first
        found.append(~out.reshape(shape))
    return found, removed


def _below(legal: list[NDArray[np.bool_]]) -> tuple[tuple[Ints, ...], ...]:
    """Positions of each family in lower levels of offload: see `Part.below`."""
    place = [np.where(m, np.cumsum(m).reshape(m.shape) - 1, -1) for m in legal]
    return tuple(tuple(p[m] for p in place[:level]) for level, m in enumerate(legal))


_LEVELS = np.array(LEVELS)


def layouts_of(
    cells: dict[str, Floats],
    *,
    global_batch_size: int,
    choices: Choices,
    strategy: Floats | float = 0.0,
    group: Floats | float = 0.0,
    level: NDArray[Any] | int = 0,
    recompute: Floats | float = 0.0,
) -> Layouts:
    """Columns as layouts, with the fields that follow from degrees, strategy and batch."""
    t, cp = cells["tp"], cells["cp"]
    one = np.ones_like(t)
    b = cells.get("micro_batch_size", one)
    ranks = cells["num_gpus"] / (t * cells["pp"] * cp)
    hybrid = np.asarray(strategy) == INDEX["hsdp"]
    shard = np.where(hybrid, np.minimum(group / (t * cp), ranks), ranks)
    places = _LEVELS[np.asarray(level, dtype=int)] * one[:, None]
    return Layouts(
        num_gpus=cells["num_gpus"],
        tp=t,
        pp=cells["pp"],
        virtual_stages=cells["virtual_stages"],
        cp=cp,
        ep=cells.get("ep", one),
        etp=cells.get("etp", one),
        dp_replicate=ranks / shard,
        dp_shard=shard,
        strategy=strategy * one,
        micro_batch_size=b,
        num_microbatches=global_batch_size / (ranks * b),
        recompute=recompute * one,
        sequence_parallel=(t > 1).astype(float),
        schedule=SCHEDULES.index(choices.schedule) * one,
        context_method=CONTEXT_METHODS.index(choices.context_method) * one,
        reshard=float(choices.reshard) * one,
        offload_optimizer=places[:, 0],
        offload_params=places[:, 1],
    )

"""Candidates of some GPU counts at once, built in stages: degrees, micro-batch, experts, strategy.

Each stage drops what its rules forbid before the next one multiplies the rest, so that illegal
combinations are counted and never built. Counts are staged together because a stage of one count
takes longer to begin than to compute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from core.layout import degrees
from core.layout.layouts import (
    Broken,
    Choices,
    Layouts,
    batch_rules,
    degree_rules,
    expert_rules,
    recompute_kinds,
)
from core.model.transformer import Transformer, is_moe, total_params
from core.search.columns import Floats, Ints, layouts_of, rows_of
from core.search.strategies import Axes, below, legal_strategies, num_levels, strategies

MOST_ROWS = 8_000_000  # of one GPU count, before the rules of strategies; the rest is dropped

Shapes = Sequence[tuple[int, int]]  # GPUs of a node, and of a scale-up domain


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """What is tried at one GPU count, of all its node shapes."""

    shapes: Shapes
    groups: list[list[int]]  # of each shape: GPUs over which hybrid sharding may cut one copy
    axis: list[tuple[int, int]]  # strategy, and GPUs of its group
    columns: dict[str, Floats]  # degrees, in the order of tp
    tps: Floats  # their distinct values
    num_tried: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """The candidates of some GPU counts; lists are by level of offload.

    Candidates that a rule removes are counted by code, which is a GPU count and a tp, and by pair
    of a code and a strategy, so that each node shape gets the counts of its own space. Codes,
    cells and families are in the order of counts, and within a count in that of tp.
    """

    counts: list[Count]
    code_count: Ints  # of each code: the number of its GPU count
    code_tp: Floats
    pair_code: Ints  # of each pair: its code
    pair_axis: Ints  # and its place on the axes of all counts
    ways: Floats  # of each code: candidates before strategies
    removed: dict[str, Floats]  # of each code: those of them that a rule removes
    removed_strategies: dict[str, Floats]  # of each pair
    cut: Floats  # of each code
    kinds: int  # recompute modes
    per_strategy: int  # candidates for each way and strategy: levels x recompute modes
    cells: dict[str, Floats]
    cell: list[Ints]
    pair: list[Ints]  # of each family
    strategy: list[Ints]
    group: list[Ints]
    # Of each family at each lower level: its number there, from the first of the level; -1 where it
    # is not legal.
    below: list[list[Ints]]


def staged(
    counts: Sequence[tuple[int, Shapes]],
    *,
    model: Transformer,
    seq_len: int,
    global_batch_size: int,
    choices: Choices,
    most_tried: int,
) -> Iterator[Staged]:
    """The candidates of GPU counts, of as many at a time as try no more than `most_tried`."""
    batches = (
        [choices.micro_batch_size]
        if choices.micro_batch_size
        else degrees.micro_batch_sizes(global_batch_size=global_batch_size)
    )

    def staged_together(counts: list[Count]) -> Staged:
        return _staged(counts, model, seq_len, global_batch_size, choices, batches)

    together: list[Count] = []
    for num_gpus, shapes in counts:
        one = _count(num_gpus, shapes, model, seq_len, global_batch_size, choices, len(batches))
        if together and sum(c.num_tried for c in together) + one.num_tried > most_tried:
            yield staged_together(together)
            together = []
        together.append(one)
    if together:
        yield staged_together(together)


def _count(
    num_gpus: int,
    shapes: Shapes,
    model: Transformer,
    seq_len: int,
    global_batch_size: int,
    choices: Choices,
    num_batches: int,
) -> Count:
    domain = max(d for _, d in shapes)
    columns = _degrees(num_gpus, domain, model, seq_len, global_batch_size, choices)
    groups = [degrees.shard_groups(num_gpus=num_gpus, gpus_per_node=n) for n, _ in shapes]
    axis = strategies(choices, groups)
    cuts = 1 if choices.etp is not None else 2
    ways = len(columns["tp"]) * num_batches * len(_expert_degrees(model, choices)) * cuts
    return Count(
        shapes=shapes,
        groups=groups,
        axis=axis,
        columns=columns,
        tps=np.unique(columns["tp"]),
        num_tried=ways * len(axis) * num_levels(choices) * len(recompute_kinds(choices)),
    )


def _staged(
    counts: list[Count],
    model: Transformer,
    seq_len: int,
    global_batch_size: int,
    choices: Choices,
    batches: list[int],
) -> Staged:
    """The candidates of GPU counts, stage by stage."""
    first = np.cumsum([0, *(len(c.tps) for c in counts)])
    code_count = np.repeat(np.arange(len(counts)), np.diff(first))
    columns = {
        name: np.concatenate([c.columns[name] for c in counts]) for name in counts[0].columns
    }
    code = np.concatenate(
        [f + np.searchsorted(c.tps, c.columns["tp"]) for c, f in zip(counts, first, strict=False)]
    )
    removed: dict[str, Floats] = {}

    def by_code(code: Ints, weight: Floats) -> Floats:
        return np.bincount(code, weight, len(code_count)).astype(float)

    def drop(ways: Floats, broken: Broken) -> Ints:
        """Rows that break no rule of a stage; the others are counted under the first rule they
        break."""
        out = np.zeros(len(ways), dtype=bool)
        for reason, rows in broken.items():
            if not rows.any():
                removed[reason] = np.zeros(len(code_count))
                continue
            first = rows & ~out
            removed[reason] = by_code(code[first], ways[first])
            out |= first
        return np.flatnonzero(~out)

    def laid() -> Layouts:
        return layouts_of(columns, global_batch_size=global_batch_size, choices=choices)

    eps = np.array(_expert_degrees(model, choices), dtype=float)
    divides = choices.etp is None and bool(np.any(is_moe(model)))
    cuts = np.where(divides & (columns["tp"] > 1), 2.0, 1.0)  # experts whole, or divided like tp
    ways = cuts * len(eps) * len(batches)
    every = by_code(code, ways)
    rules = degree_rules(laid(), model=model, seq_len=seq_len, layer_split=choices.layer_split)
    rows = drop(ways, rules)
    row, batch = np.divmod(np.arange(len(rows) * len(batches)), len(batches))
    rows = rows[row]
    columns, code, cuts = rows_of(columns, rows), code[rows], cuts[rows]
    ways = cuts * len(eps)
    columns["micro_batch_size"] = np.array(batches, dtype=float)[batch]
    rules = batch_rules(laid(), global_batch_size=global_batch_size, choices=choices)
    rows = drop(ways, rules)
    columns, code, cuts, ways = rows_of(columns, rows), code[rows], cuts[rows], ways[rows]

    per_strategy = num_levels(choices) * len(recompute_kinds(choices))
    before = by_code(code, ways)
    rows = _within(columns, ways, code_count[code], [len(c.axis) * per_strategy for c in counts])
    columns, code, cuts = rows_of(columns, rows), code[rows], cuts[rows]
    cut = before - by_code(code, ways[rows])

    num = cuts.astype(np.intp) * len(eps)
    row = np.repeat(np.arange(len(num)), num)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(num) - num, num)  # of the ways of its row
    columns, code = rows_of(columns, row), code[row]
    ep, divided = np.divmod(nth, num[row] // len(eps))
    columns["ep"] = eps[ep]
    columns["etp"] = np.where(divided > 0, columns["tp"], float(choices.etp or 1))
    rows = drop(np.ones(len(row)), expert_rules(laid(), model=model))
    columns, code = rows_of(columns, rows), code[rows]

    axes = Axes.of([c.axis for c in counts], code_count)
    legal, tables, row, pair = legal_strategies(columns, code, axes, choices)
    places = [np.flatnonzero(mask) for mask in legal]
    return Staged(
        counts=counts,
        code_count=code_count,
        code_tp=np.concatenate([c.tps for c in counts]),
        pair_code=axes.pair_code,
        pair_axis=axes.pair_axis,
        ways=every,
        removed=removed,
        removed_strategies=tables,
        cut=cut,
        kinds=len(recompute_kinds(choices)),
        per_strategy=per_strategy,
        cells=columns,
        cell=[row[at] for at in places],
        pair=[pair[at] for at in places],
        strategy=[axes.strategy[axes.pair_axis[pair[at]]] for at in places],
        group=[axes.group[axes.pair_axis[pair[at]]] for at in places],
        below=below(legal),
    )


def _degrees(
    num_gpus: int, domain: int, model: Transformer, seq_len: int, global_batch_size: int,
    choices: Choices,
) -> dict[str, Floats]:  # fmt: skip
    """Every tp, pp, cp and number of virtual stages to try, legal or not; in the order of tp."""
    c, layers = choices, int(np.max(model.num_layers))
    tps = [c.tp] if c.tp else degrees.tensor_parallel(
        num_gpus=num_gpus, domain=domain, across_nodes=c.tp_across_nodes
    )  # fmt: skip
    pps = [c.pp] if c.pp else degrees.pipeline_parallel(num_gpus=num_gpus, layers=layers)
    cps = [c.cp] if c.cp else degrees.context_parallel(
        num_gpus=num_gpus, seq_len=seq_len, global_batch_size=global_batch_size,
        params=float(np.max(total_params(model))),
    )  # fmt: skip

    def chunks(pp: int) -> list[int]:
        if pp == 1 or (not c.virtual_stages and c.schedule != "interleaved"):
            return [1]  # one chunk is plain 1F1B; without a pipeline there are none
        return [c.virtual_stages] if c.virtual_stages else degrees.virtual_stages(
            layers=layers, pp=pp
        )  # fmt: skip

    of_pp = {p: chunks(p) for p in pps}
    rest = np.array([(p, cp, v) for p in pps for cp in cps for v in of_pp[p]], dtype=float)
    of_tp = np.tile(rest.reshape(-1, 3), (len(tps), 1))
    return {
        "tp": np.repeat(np.array(tps, dtype=float), len(rest)),
        "pp": of_tp[:, 0],
        "cp": of_tp[:, 1],
        "virtual_stages": of_tp[:, 2],
        "num_gpus": np.full(len(of_tp), float(num_gpus)),
    }


def _expert_degrees(model: Transformer, choices: Choices) -> list[int]:
    """Every ep to try, legal or not."""
    if choices.ep:
        return [choices.ep]
    if not np.any(is_moe(model)):
        return [1]
    return degrees.expert_parallel(num_experts=int(np.max(model.num_experts)))


def _within(columns: dict[str, Floats], ways: Floats, count: Ints, after: list[int]) -> Ints:
    """The rows to evaluate, at most a fixed number of candidates of each count: powers of two and
    small model-parallel groups first. `after`: candidates of each way, by count."""
    most = MOST_ROWS / np.array(after)
    over = np.flatnonzero(np.bincount(count, ways, len(after)) > most)
    kept = np.ones(len(ways), dtype=bool)
    for number in over.tolist():
        rows = np.flatnonzero(count == number)
        tp, pp, cp, size = (columns[n][rows] for n in ("tp", "pp", "cp", "micro_batch_size"))
        uneven = np.log2(tp * pp * cp * size) % 1 != 0
        order = np.lexsort((tp * pp * cp, uneven))
        some = int(np.searchsorted(np.cumsum(ways[rows][order]), most[number]))
        kept[rows[order[some:]]] = False
    return np.flatnonzero(kept)

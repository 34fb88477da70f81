"""Small simulations that the closed forms of core are checked against. Slow and obvious."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Operation:
    """Forward or backward of one micro-batch through one model chunk."""

    backward: bool
    chunk: int  # of the rank, 0 .. v - 1
    microbatch: int


@dataclass(frozen=True)
class PipelineRun:
    """What one pass over all micro-batches took."""

    seconds: float
    most_in_flight: list[float]  # per rank, in micro-batches of the rank's whole stage


def schedule(
    rank: int, *, pp: int, virtual_stages: int, num_microbatches: int, kind: str = "1f1b"
) -> list[Operation]:
    """Order of operations on one rank: (interleaved) 1F1B of arXiv:2104.04473, section 2.2,
    GPipe (all forwards, then all backwards), or naive (one micro-batch after another).

    Micro-batches go through a rank's chunks in groups of p; interleaving needs m % p == 0.
    """
    p, v, m = pp, virtual_stages, num_microbatches
    if kind == "gpipe":
        return [Operation(b, 0, k) for b in (False, True) for k in range(m)]
    if kind == "naive":
        return [Operation(b, 0, k) for k in range(m) for b in (False, True)]
    total = m * v

    def forward(k: int) -> Operation:
        return Operation(False, k % (p * v) // p, k // (p * v) * p + k % p)

    def backward(k: int) -> Operation:
        return Operation(True, v - 1 - k % (p * v) // p, k // (p * v) * p + k % p)

    if v == 1:
        forward, backward = (
            lambda k: Operation(False, 0, k),
            lambda k: Operation(True, 0, k),
        )
    warm_up = p - rank - 1 if v == 1 else 2 * (p - rank - 1) + (v - 1) * p
    warm_up = min(warm_up, total)
    operations = [forward(k) for k in range(warm_up)]
    for k in range(total - warm_up):
        operations += [forward(warm_up + k), backward(k)]
    return operations + [backward(k) for k in range(total - warm_up, total)]


def run_pipeline(
    *,
    forward_s: Sequence[float],
    backward_s: Sequence[float],
    virtual_stages: int,
    num_microbatches: int,
    kind: str = "1f1b",
) -> PipelineRun:
    """Event simulation; `forward_s[r]` is one micro-batch through all chunks of rank r."""
    p, v = len(forward_s), virtual_stages
    queues = [
        schedule(r, pp=p, virtual_stages=v, num_microbatches=num_microbatches, kind=kind)
        for r in range(p)
    ]
    ends: dict[tuple[bool, int, int], float] = {}  # (backward, global chunk, micro-batch)
    clock, place = [0.0] * p, [0] * p
    held, most = [0] * p, [0] * p
    while any(place[r] < len(queues[r]) for r in range(p)):
        moved = False
        for r in range(p):
            while place[r] < len(queues[r]):
                op = queues[r][place[r]]
                stage = op.chunk * p + r
                if not op.backward:
                    needs = (False, stage - 1, op.microbatch) if stage else None
                elif stage == p * v - 1:
                    needs = (False, stage, op.microbatch)
                else:
                    needs = (True, stage + 1, op.microbatch)
                if needs is not None and needs not in ends:
                    break
                seconds = (backward_s if op.backward else forward_s)[r] / v
                begin = max(clock[r], 0.0 if needs is None else ends[needs])
                clock[r] = ends[op.backward, stage, op.microbatch] = begin + seconds
                held[r] += -1 if op.backward else 1
                most[r] = max(most[r], held[r])
                place[r] += 1
                moved = True
        if not moved:
            raise RuntimeError("the schedule deadlocks")
    return PipelineRun(max(clock), [n / v for n in most])


def run_zero_bubble(
    *, pp: int, num_microbatches: int, forward: int, backward_input: int, backward_weight: int
) -> PipelineRun:
    """Greedy 1F1B whose weight gradients wait for idle time, in whole ticks: arXiv:2401.10241.

    Warm-up is 1F1B's and no stage holds more than p micro-batches (ZB-H1); a micro-batch is
    held until its weight gradient is done.
    """
    p, m = pp, num_microbatches
    ticks = {"F": forward, "B": backward_input, "W": backward_weight}
    ends: dict[tuple[str, int, int], int] = {}
    done = [{"F": 0, "B": 0, "W": 0} for _ in range(p)]
    free, most, now = [0] * p, [0] * p, 0

    def ready(kind: str, rank: int, microbatch: int) -> bool:
        return microbatch < m and ends.get((kind, rank, microbatch), now + 1) <= now

    while any(d["W"] < m for d in done):
        for r in range(p):
            f, b, w = done[r]["F"], done[r]["B"], done[r]["W"]
            if free[r] > now:
                continue
            if ready("F", r, b) and (r == p - 1 or ready("B", r + 1, b)):
                op, microbatch = "B", b
            elif f < m and (r == 0 or ready("F", r - 1, f)) and f - b < p - r and f - w < p:
                op, microbatch = "F", f
            elif w < b:
                op, microbatch = "W", w
            else:
                continue
            free[r] = ends[op, r, microbatch] = now + ticks[op]
            done[r][op] += 1
            most[r] = max(most[r], done[r]["F"] - done[r]["W"])
        now += 1
    return PipelineRun(float(max(free)), [float(n) for n in most])


def ulysses_sent(*, ranks: int, tokens: int, heads: int) -> list[int]:
    """Values of one head that each rank sends in one exchange: it starts with all heads of its
    tokens and ends with all tokens of its heads. arXiv:2309.14509, section 3.2."""
    sent = [0] * ranks
    for token in range(tokens):
        for head in range(heads):
            before, after = token * ranks // tokens, head * ranks // heads
            sent[before] += before != after
    return sent


def ring_sent(*, ranks: int, tokens: int) -> list[int]:
    """Tokens whose keys and values each rank passes on, until all have seen all."""
    seen = [{r} for r in range(ranks)]
    sent = [0] * ranks
    block = list(range(ranks))  # whose block a rank holds now
    while any(len(s) < ranks for s in seen):
        for r in range(ranks):
            sent[r] += tokens // ranks
        block = [block[r - 1] for r in range(ranks)]
        for r in range(ranks):
            seen[r].add(block[r])
    return sent


def ring_all_reduce(
    buffers: np.ndarray, *, bytes_per_s: float, latency_s: float
) -> tuple[np.ndarray, float]:
    """Step by step: reduce-scatter, then all-gather, of one row per rank (8 bytes a value)."""
    n = len(buffers)
    chunks = [[c.copy() for c in np.array_split(row, n)] for row in buffers]
    seconds = 0.0
    for phase in ("reduce", "gather"):
        for s in range(n - 1):
            shift = 0 if phase == "reduce" else 1
            sent = [(r, (r - s + shift) % n) for r in range(n)]
            moving = [chunks[r][c].copy() for r, c in sent]
            for (r, c), data in zip(sent, moving, strict=True):
                to = (r + 1) % n
                chunks[to][c] = chunks[to][c] + data if phase == "reduce" else data
            seconds += max(d.nbytes for d in moving) / bytes_per_s + latency_s
    return np.array([np.concatenate(c) for c in chunks]), seconds


def all_to_all_s(
    *, size_bytes: float, ranks: int, domain: int, scale_up: float, scale_out: float
) -> float:
    """Seconds until the busiest port is done: each rank sends M/n to each, itself included."""
    slowest = 0.0
    for sender in range(ranks):
        inside = across = 0.0
        for receiver in range(ranks):
            if sender == receiver:
                continue
            if sender // domain == receiver // domain:
                inside += size_bytes / ranks
            else:
                across += size_bytes / ranks
        slowest = max(slowest, inside / scale_up, across / scale_out)
    return slowest


def multi_ring_all_gather_s(
    *, size_bytes: float, domains: int, local_ranks: int, scale_up: float, scale_out: float
) -> float:
    """All-gather by one ring per network port, each carrying an equal share of the buffer.

    Ring k leaves every domain through port k. Counts the bytes on each link of each rank.
    """
    n = domains * local_ranks
    through = size_bytes / local_ranks * (n - 1) / n  # on every link of a ring
    inside = np.zeros(n)
    across = np.zeros(n)
    for k in range(local_ranks):
        order = [(k + 1 + i) % local_ranks for i in range(local_ranks)]  # ends on port k
        for d in range(domains):
            for i, local in enumerate(order):
                rank = d * local_ranks + local
                if i < local_ranks - 1:
                    inside[rank] += through
                elif domains > 1:
                    across[rank] += through
                else:
                    inside[rank] += through  # closes the ring inside
    return float(max(inside.max() / scale_up, across.max() / scale_out))

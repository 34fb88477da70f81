"""Layouts that guides name, each compared with the best that the search finds for the job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from app.forecast.one_case import Run
from app.guides.cases import (
    longest_differences,
    range_of,
    slowdown,
    text_of,
    timed,
)
from app.guides.claim_text import Ours
from core.model.presets import preset


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """One printed layout and the job we assume for it: guides give neither batch nor length."""

    job: Mapping[str, object]
    layout: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A named layout and the best one found; None: nothing of that kind fits."""

    named: Run | None
    best: Run | None

    @property
    def slowdown(self) -> float:
        """Step time of the named layout over that of the best; infinite if it does not fit."""
        return slowdown(self.named, self.best)


_70B = {"model": "llama3.1-70b", "seq_len": 8192, "global_batch_size": 512}
_405B = {"model": "llama3.1-405b", "seq_len": 8192, "global_batch_size": 1024}
# The open model nearest to a 405B with experts: 400 billion parameters, 17 billion active.
_MOE = {"model": "llama4-maverick", "seq_len": 8192, "global_batch_size": 1024}
NAMED: dict[str, Named] = {
    "layout_70b_64": Named(job={**_70B, "num_gpus": 64}, layout={"tp": 8, "pp": 4, "cp": 1}),
    "layout_70b_128": Named(job={**_70B, "num_gpus": 128}, layout={"tp": 8, "pp": 4, "cp": 1}),
    "layout_70b_512": Named(job={**_70B, "num_gpus": 512}, layout={"tp": 8, "pp": 8, "cp": 2}),
    "layout_405b_256": Named(job={**_405B, "num_gpus": 256}, layout={"tp": 8, "pp": 8, "cp": 2}),
    "layout_405b_1024": Named(job={**_405B, "num_gpus": 1024}, layout={"tp": 8, "pp": 8, "cp": 1}),
    "layout_moe_256": Named(job={**_MOE, "num_gpus": 256}, layout={"tp": 8, "pp": 8, "cp": 1}),
}


def compared(name: str) -> Compared:
    """Compare one named layout; what it leaves open (chunks, sharding, recompute) is searched. A
    layout that is in real use is timed even at a memory risk too high for a plan."""
    found = NAMED[name]
    fields = {**found.job, **found.layout}
    named, best = timed(fields, even_odds=True), timed(found.job)
    if named and best and named.step_s < best.step_s:  # the search does not try cp at short lengths
        best = named
    return Compared(named=named, best=best)


def _layout(name: str) -> Ours:
    c = compared(name)
    if c.best is None:
        return range_of((), "no layout fits the memory of these GPUs")
    if c.named is None:
        return range_of((), f"the named layout does not fit; best found {text_of(c.best)}")
    gap = longest_differences(c.named, c.best)
    job = NAMED[name].job
    return range_of(
        [c.slowdown],
        f"{preset(str(job['model'])).name}, {job['global_batch_size']:,} sequences of "
        f"{job['seq_len']:,} tokens a step. {text_of(c.named)}. Best found {text_of(c.best)}"
        + (f". Longest differences: {gap}" if gap else ""),
    )


EVALUATED: dict[str, Callable[[], Ours]] = {name: partial(_layout, name) for name in NAMED}

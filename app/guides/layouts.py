"""Layouts that guides name, each compared with the best that the search finds for the job."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from app.forecast.one_case import Fields, Run
from app.guides.cases import longest_differences, range_of, slowdown, text_of, timed
from app.guides.claim_text import Evaluations, Ours
from core.model.presets import preset


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """One printed layout and the job we assume for it: guides give neither batch nor length."""

    job: Fields
    layout: Fields


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


def compared(name: str) -> tuple[Run | None, Run | None]:
    """A named layout and the best one found; None: nothing of that kind fits.

    What the name leaves open (chunks, sharding, recompute) is searched. A layout that is in real
    use is timed even at a memory risk too high for a plan.
    """
    found = NAMED[name]
    named, best = timed({**found.job, **found.layout}, even_odds=True), timed(found.job)
    if named and best and named.step_s < best.step_s:  # the search does not try cp at short lengths
        best = named
    return named, best


def _layout(name: str) -> Ours:
    named, best = compared(name)
    if best is None:
        return range_of((), "no layout fits the memory of these GPUs")
    if named is None:
        return range_of((), f"the named layout does not fit; best found {text_of(best)}")
    gap = ", ".join(f"{part} {more}" for part, more in longest_differences(named, best)[:2])
    job = NAMED[name].job
    return range_of(
        [slowdown(named, best)],
        f"{preset(str(job['model'])).name}, {job['global_batch_size']:,} sequences of "
        f"{job['seq_len']:,} tokens a step. {text_of(named)}. Best found {text_of(best)}"
        + (f". Longest differences: {gap}" if gap else ""),
    )


EVALUATED: Evaluations = {name: partial(_layout, name) for name in NAMED}

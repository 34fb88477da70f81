"""Complete a layout that a user names: what it leaves out is searched, as in `runcast estimate`. If
no legal layout has what it gives, the rest is taken from another layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np

from app.forecast.fixed_layout import CUTS, check_degrees, fixed_choices
from app.forecast.search import best_of
from app.scenario.layout import parse_layout
from core.errors import ScenarioError
from core.explain.explain import PLACES, columns_of, record_of
from core.layout.layouts import Choices, broken_rules
from core.layout.workload import OFFLOAD, Workload
from core.scenario import Scenario
from core.search.best import Job
from core.search.job import PlanJob
from core.search.plan import Layout

DEGREES = ("tp", "pp", "virtual_stages", "cp", "ep", "micro_batch_size")
FALLBACK_SHARDINGS = ("zero1", "fsdp2", "ddp")
# What sentences about contradictory degrees call an option that the user did not type.
OPTIONS = {"--num-gpus": "the number of GPUs here", "--global-batch-size": "the global batch here"}


def completed(text: str, *, job: PlanJob, like: Layout) -> tuple[Layout, Choices]:
    """The complete layout of a text, and the choices against which its rules are checked. Raises
    ScenarioError if the text is no layout, or its degrees contradict one another or the job."""
    given, num_gpus = parse_layout(text), job.num_gpus
    if {"dp", "dp_replicate", "dp_shard"} & {*given}:  # otherwise the rules report what is wrong
        _check_degrees(given, job.scenario, num_gpus)
    found = [f for cut in _cuts(given, num_gpus) if (f := _found(cut, job))]
    found.sort(key=lambda f: f[0])
    if found:
        layout, pinned = found[0][1:]
    else:
        pinned = _pinned(given, job.question.choices)
        layout = _least_broken(given, job, pinned, like)
    return _as_given(given, layout, num_gpus, job.scenario.global_batch_size), pinned


def _cuts(given: Mapping[str, Any], num_gpus: int) -> list[dict[str, Any]]:
    """The given keys. If they fix all of data parallelism, also each combination with tp, pp and cp
    that leaves this number of ranks."""
    if "dp" not in given:
        return [dict(given)]
    named = [given[n] for n in CUTS if n in given]
    rest, left = divmod(num_gpus, given["dp"] * prod(named))
    free = [n for n in CUTS if n not in given]
    if left or not free:
        return [dict(given)]
    # Of several degrees left open, context parallelism is the least likely to be meant.
    first, *others = free
    second = next(iter(others), None)
    cuts = []
    for degree in (d for d in range(1, rest + 1) if rest % d == 0):
        cut = {first: degree, **dict.fromkeys(others, 1)}
        if second is None and degree != rest:
            continue
        if second is not None:
            cut[second] = rest // degree
        cuts.append({**given, **cut})
    return cuts


def _found(
    given: Mapping[str, Any], job: PlanJob
) -> tuple[tuple[bool, float], Layout, Choices] | None:
    """The fastest layout that has the given keys and fits, else the nearest miss, with its rank;
    None if no legal layout has them."""
    pinned = _pinned(given, job.question.choices)
    work = replace(job.work, **_places(given, job.work))
    question = replace(job.question, work=work, choices=pinned)
    best = best_of(question, [Job(cluster=job.cluster, num_gpus=job.num_gpus)])
    if len(best.job):
        score, layout = (False, float(best.step.step_s[0])), record_of(best.layouts, 0)
    elif best.closest is not None:
        miss = best.closest
        score, layout = (True, miss.need_bytes / miss.limit_bytes), record_of(miss.layout_row, 0)
    else:
        return None
    if "num_microbatches" in given and "micro_batch_size" not in given:
        batch = int(np.asarray(job.work.global_batch_size))
        ranks = layout.dp_replicate * layout.dp_shard
        size, left = divmod(batch, ranks * given["num_microbatches"])
        if size and not left:
            same = {n: getattr(layout, n) for n in CUTS}
            return _found({**given, **same, "micro_batch_size": size}, job)
    return score, layout, pinned


def _check_degrees(given: Mapping[str, Any], scenario: Scenario, num_gpus: int) -> None:
    try:
        check_degrees(given, scenario.model_copy(update={"num_gpus": (num_gpus,)}))
    except ScenarioError as e:
        sentence = str(e)
        for option, words in OPTIONS.items():
            sentence = sentence.replace(option, words)
        raise ScenarioError(sentence) from None


def _places(given: Mapping[str, Any], work: Workload) -> dict[str, Any]:
    """Where optimizer and weights are kept: as the layout says, else as the job says."""
    names = ("offload_optimizer", "offload_params")
    return {n: OFFLOAD[given[n]] if n in given else getattr(work, n) for n in names}


def _pinned(given: Mapping[str, Any], choices: Choices) -> Choices:
    """Reduce the search to the given keys; they override choices of the scenario."""
    fixed = fixed_choices(given, choices)
    fixed["dp_shard"] = given.get("dp_shard") if given.get("sharding") == "hsdp" else None
    # A layout that does not mention the host is judged with everything on the device.
    fixed["searches_offload"] = False
    places = {n: given[n] != "none" for n in ("offload_optimizer", "offload_params") if n in given}
    fixed["offloads"] = any(places.values()) or (choices.offloads and not places)
    fixed["fetches_params"] = places.get("offload_params", choices.fetches_params)
    if given.get("virtual_stages", 1) > 1 and "schedule" not in given:
        fixed["schedule"] = "interleaved"
    return replace(choices, **fixed)


def _place_names(given: Mapping[str, Any], work: Workload) -> dict[str, Any]:
    return {n: PLACES[round(float(np.asarray(v)))] for n, v in _places(given, work).items()}


def _least_broken(given: Mapping[str, Any], job: PlanJob, pinned: Choices, like: Layout) -> Layout:
    """Of completions taken from `like`, or without the degree, the one that breaks the fewest
    rules."""

    def options(name: str) -> list[int]:
        if name in given:
            return [given[name]]
        values = (int(getattr(like, name)), 1)
        return list(dict.fromkeys(values[::-1] if name == "virtual_stages" else values))

    shardings = (
        [given["sharding"]]
        if "sharding" in given
        else list(dict.fromkeys((like.sharding, *FALLBACK_SHARDINGS)))
    )
    rows = []
    grid = product(product(*(options(n) for n in DEGREES)), shardings)
    for degrees, sharding in grid:
        one: dict[str, Any] = dict(zip(DEGREES, degrees, strict=True))
        if one["pp"] == 1 and "virtual_stages" not in given:
            one["virtual_stages"] = 1
        ranks = job.num_gpus / (one["tp"] * one["pp"] * one["cp"])
        etp = given.get("etp", one["tp"] if one["ep"] == 1 and like.etp > 1 else 1)
        rows.append(
            replace(
                like,
                **one,
                etp=etp,
                dp_replicate=1,
                dp_shard=ranks,  # a fraction makes the layout break a rule
                sharding=sharding,
                recompute=given.get("recompute", like.recompute),
                schedule=pinned.schedule,
                context_parallel=pinned.context_method,
                **_place_names(given, job.work),
                num_microbatches=int(
                    max(np.asarray(job.work.global_batch_size) / ranks, 1)
                    // one["micro_batch_size"]
                ),
            )
        )
    layouts = columns_of(rows, [job.num_gpus] * len(rows))
    broken = broken_rules(
        layouts,
        model=job.work.model,
        seq_len=int(np.asarray(job.work.seq_len)),
        global_batch_size=int(np.asarray(job.work.global_batch_size)),
        choices=pinned,
    )
    return rows[int(np.argmin(np.sum(list(broken.values()), axis=0)))]


def _as_given(
    given: Mapping[str, Any], layout: Layout, num_gpus: int, global_batch_size: int
) -> Layout:
    """The layout with the data-parallel groups and micro-batches that were given."""
    ranks = num_gpus / (layout.tp * layout.pp * layout.cp)
    if {"dp_replicate", "dp_shard"} & {*given} and ranks >= 1:
        replicate = given.get("dp_replicate", 0)
        shard = given.get("dp_shard", 0)
        replicate = replicate or round(ranks / shard)
        layout = replace(layout, dp_replicate=replicate, dp_shard=shard or round(ranks / replicate))
    if "dp" in given and given["dp"] != layout.dp_replicate * layout.dp_shard:
        raise ScenarioError(
            f"dp={given['dp']} in the layout does not follow from {num_gpus:,} GPUs with "
            f"tp={layout.tp}, pp={layout.pp} and cp={layout.cp}: name these, too."
        )
    if "num_microbatches" in given and given["num_microbatches"] != layout.num_microbatches:
        raise ScenarioError(
            f"num_microbatches={given['num_microbatches']} in the layout does not follow from a "
            f"global batch of {global_batch_size:,} sequences over {ranks:g} data-parallel ranks; "
            f"micro_batch_size={layout.micro_batch_size} makes {layout.num_microbatches}."
        )
    return layout

"""When nothing fits: by how much, which part is largest, and the nearest change that fits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from app.document.vocabulary import memory_part
from app.forecast.search import Found, best_of
from app.scenario.layout import layout_text
from core.explain.explain import record_of
from core.layout.degrees import divisors
from core.layout.layouts import RULES, Choices
from core.machine.cluster import cluster_of
from core.scenario import Scenario
from core.search.best import Best, Job
from core.search.job import Question
from core.search.plan import Layout
from core.units import GIB
from hardware import facts

LARGEST = 16_384
MOST_GPUS = 131_072
MOST_VALUES = 18  # values tried for one choice
# Fixed choices in the order in which they are relaxed; and rules that only exclude a
# strategy, named only if no other rule is broken.
LISTS = ("shardings", "recomputes")
PINS = ("dp_shard", "tp", "pp", "cp", "ep", "etp", "virtual_stages", "micro_batch_size", *LISTS)
FIELD_OF = {"shardings": "sharding", "recomputes": "recompute"}
BY_STRATEGY = ("pipeline_sharding", "nothing_to_shard", "hybrid")
# Tried if more GPUs of the same kind do not help: parts with more memory, ascending.
LARGER = ("H100-80GB-SXM", "H200-141GB-SXM", "B200-180GB", "B300")


def sentence(
    scenario: Scenario,
    found: Found,
    jobs: Sequence[Job],
    *,
    without_precision: int,
    not_clusters: int,
    apart: str = "",
) -> str:
    """One paragraph: how much is missing, the largest part, and the nearest change that fits."""
    if not jobs and not_clusters:
        return (
            "No plan: the chosen offers are not sold as a cluster, so that each is one machine at "
            f"most{f' ({apart}, at prices of their own)' if apart else ''}; choose fewer GPUs, "
            "another cloud, or give the network (network_gbit_per_gpu)."
        )
    if not jobs and without_precision:
        return (
            f"No plan: none of the chosen GPUs has {scenario.precision} matrix units; choose "
            "another precision (bf16, or fp16 on a V100), or other GPUs."
        )
    if not jobs:
        return (
            "No plan: no offer matches the chosen GPUs, clouds and purchase kinds within the "
            "time limit; choose more of them, or give the number of GPUs."
        )
    best = found.best
    if best.closest is None:
        question = found.questions[-1]
        return f"No plan: no legal layout. {_why_illegal(question, jobs, best)}"
    miss = best.closest
    question = found.questions[miss.asked]
    part = max(miss.memory, key=lambda p: miss.memory[p])
    layout = record_of(miss.layout_row, 0)
    gpus = jobs[miss.job].num_gpus
    missed = (
        f"Nothing fits the memory. The nearest miss ({counted(gpus)}, tp={layout.tp}, "
        f"pp={layout.pp}, {layout.sharding}, {layout.recompute} recompute) needs "
        f"{miss.need_bytes / GIB:.1f} GiB per GPU; {miss.usable_bytes / GIB:.1f} GiB of "
        f"{miss.limit_bytes / GIB:.1f} GiB can be planned with, given the forecast's error. The "
        f"largest part is {memory_part(part).lower()} with {miss.memory[part] / GIB:.1f} GiB."
    )
    change = _change(question, jobs)
    return f"{missed} {change}"


def counted(num_gpus: int) -> str:
    """Write a GPU count: '1 GPU', '64 GPUs'."""
    return f"{num_gpus:,} GPU{'' if num_gpus == 1 else 's'}"


def _why_illegal(question: Question, jobs: Sequence[Job], best: Best) -> str:
    """The rules that the candidates break, and the nearest value that breaks none."""
    choices = question.choices
    broken = [r for r in RULES if best.removed.get(r, 0)]
    named = [r for r in broken if r not in BY_STRATEGY]
    pinned = [p for p in PINS if getattr(choices, p) not in (None, ())]
    # Name a strategy rule only if the user chose the strategy or no other rule is broken.
    if choices.shardings or not named:
        named = broken
    # Rules are applied in turn, so the last that removed something stopped the rest.
    why = f"The rule that is broken: {RULES[named[-1]]}." if named else "No candidate exists."
    if named and named[-1] in ("nothing_to_shard", "hybrid"):
        pinned.sort(key=lambda p: p not in LISTS)
    for field in pinned:
        for value in _values_near(choices, field, jobs[0].num_gpus):
            tried = replace(question, choices=replace(choices, **{field: value}))
            if found := _first(tried, jobs):
                name = FIELD_OF.get(field, field)
                return f"{why} Nearest legal value: {name}={getattr(found, name)}."
    none = replace(choices, tp=None, pp=None, cp=None, ep=None, etp=None, micro_batch_size=None)
    free = replace(question, choices=none)
    if choices != none and (found := _first(free, jobs)):
        return f"{why} Legal, with the degrees free: {layout_text(found)}."
    for count in _counts_near(jobs[0]):
        if _first(question, [replace(jobs[0], num_gpus=count)]):
            return f"{why} Nearest count with a legal layout: {counted(count)}."
    for count in _counts_near(jobs[0]):
        if found := _first(free, [replace(jobs[0], num_gpus=count)]):
            return f"{why} Legal on {counted(count)}, with the degrees free: {layout_text(found)}."
    return f"{why} Change the global batch size or the number of GPUs."


def _values_near(choices: Choices, field: str, num_gpus: int) -> list[Any]:
    """Other values of a fixed choice, the nearest first: divisors of the GPU count and powers of
    two; for lists, any value."""
    if field in LISTS:
        return [()]
    given = float(getattr(choices, field))
    values = {*divisors(num_gpus), *(2**i for i in range(14))}
    return sorted(values, key=lambda n: abs(math.log2(n / given)))[:MOST_VALUES]


def _counts_near(job: Job) -> list[int]:
    """Other GPU counts, the nearest first: whole machines and powers of two."""
    n, per_node = job.num_gpus, int(np.asarray(job.cluster.gpus_per_node))
    whole = {max(n // per_node + more, 1) * per_node for more in (-1, 0, 1, 2)}
    powers = {2**i for i in range(18)}
    counts = {c for c in whole | powers if c != n and c <= MOST_GPUS}
    return sorted(counts, key=lambda c: (abs(math.log2(c / n)), c))[:MOST_VALUES]


def _first(question: Question, jobs: Sequence[Job]) -> Layout | None:
    """A legal layout of the first job that has one, even if its memory does not fit."""
    roomy = [replace(j, cluster=replace(j.cluster, memory_bytes=1e18)) for j in jobs[:8]]
    found = best_of(question, roomy)
    return record_of(found.layouts, 0) if len(found.job) else None


def _change(question: Question, jobs: Sequence[Job]) -> str:
    """The first change that fits: relax the layout, then more GPUs, then larger ones."""
    for text, asked, tried in _tries(question, jobs):
        result = best_of(asked, tried)
        if len(result.job):
            n = int(np.argmin([tried[j].num_gpus for j in result.job]))
            layout = record_of(result.layouts, n)
            return (
                f"{text.format(gpus=tried[int(result.job[n])].num_gpus)}"
                f" (tp={layout.tp}, pp={layout.pp}, {layout.sharding}, micro-batch "
                f"{layout.micro_batch_size}, {layout.recompute} recompute)."
            )
    return f"No change was found up to {LARGEST:,} GPUs."


def _tries(question: Question, jobs: Sequence[Job]) -> Iterator[tuple[str, Question, list[Job]]]:
    fixed, work = question.choices, question.work
    none = Choices(
        schedule=fixed.schedule,
        context_method=fixed.context_method,
        fetches_params=fixed.fetches_params,
        offloads=fixed.offloads,
        searches_offload=fixed.searches_offload,
        tp_across_nodes=fixed.tp_across_nodes,
        layer_split=fixed.layer_split,
    )
    free = replace(question, choices=none)
    if fixed != none:
        yield "It fits when the layout is searched freely", free, list(jobs)
    largest = max(jobs, key=lambda j: float(np.asarray(j.cluster.memory_bytes)))
    count = max(j.num_gpus for j in jobs)
    while count < LARGEST:
        count *= 2
        # Raise a batch that is too small for this count: it must not rule out every answer.
        batch = max(float(np.asarray(work.global_batch_size)), float(count))
        more = replace(free, work=replace(work, global_batch_size=batch))
        job = replace(largest, num_gpus=count)
        yield "It fits on {gpus} of the same GPUs", more, [job]
    for name in LARGER:
        chip = facts.accelerator(name)
        cluster = cluster_of(
            chip,
            gpus_per_node=chip.gpus_per_node,
            scale_up_domain=chip.scale_up_domain,
            scale_out_bytes_per_s=chip.scale_out_bytes_per_s or 1e9,
        )
        # The seller is not known here, and so neither is the host's memory.
        tried = [Job(cluster=cluster, num_gpus=n, host_bytes=0.0) for n in (8, 64, 512, 4096)]
        yield f"It fits on {{gpus}} x {name}", free, tried

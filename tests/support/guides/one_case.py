"""The fastest layout of one job on one kind of machine, as in a published guide, without prices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np

from app.document import format as fmt
from app.document import vocabulary
from app.forecast.machines import as_known, unpriced_machine
from app.forecast.search import best_of, job_of
from app.forecast.stack_limits import software
from app.forecast.training import question_of
from core.errors import ScenarioError
from core.evidence.uncertainty import Circumstances, of_step, probability_above, throughput_sigma
from core.explain.explain import record_of
from core.layout.layouts import RULES
from core.machine.cluster import cluster_of
from core.memory.offload import host_bytes
from core.numeric import as_float
from core.scenario import Scenario
from core.search.best import MAX_PROBABILITY_OOM, Best, Job
from core.search.job import Machine, Question
from core.search.plan import Layout
from core.units import to_si

ROOMY_BYTES = 1e18
EXACT_SIGMA = 1e-6  # treats the memory forecast as exact
# Checked for every candidate before its strategy; reported if no other rule is broken.
ABOUT_DEGREES = frozenset({"gpu_count", "batch"})
Fields = Mapping[str, object]
# Where a case runs: on the usual instance of its accelerator, with its network and host
# memory, or on a bare node with the network of its reference design and unlimited host memory.
Node = Literal["instance", "bare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The fastest layout of a case. Bytes are those of the fullest GPU."""

    scenario: Scenario  # the case
    layout: Layout
    step_s: float
    parts_s: Mapping[str, float]
    tokens_per_s: float
    throughput_sigma: float
    mfu: float
    need_bytes: float
    limit_bytes: float
    host_bytes: float  # host memory per GPU
    probability_oom: float

    @property
    def offload(self) -> tuple[str, str]:
        """Where the optimizer and the weights are offloaded to: none, cpu or nvme."""
        x, s = self.layout, self.scenario
        on_host = ("cpu", "nvme")
        return (
            s.offload_optimizer if s.offload_optimizer in on_host else x.offload_optimizer,
            s.offload_params if s.offload_params in on_host else x.offload_params,
        )

    @property
    def is_tight(self) -> bool:
        """Whether the risk of running out of memory is above the limit for plans."""
        return self.probability_oom > MAX_PROBABILITY_OOM

    @property
    def free_bytes(self) -> float:
        """Free memory of the fullest GPU."""
        return self.limit_bytes - self.need_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """Why a case does not run: the memory of its leanest layout, the host's, or a broken rule."""

    need_bytes: float = 0.0
    limit_bytes: float = 0.0
    host_bytes: float = 0.0  # host memory per GPU that would be needed, if it is too small
    host_limit_bytes: float = 0.0
    rule: str = ""

    @property
    def short_bytes(self) -> float:
        """How many bytes the fullest GPU lacks."""
        return self.need_bytes - self.limit_bytes


def forecast(
    fields: Fields, *, node: Node = "instance", even_odds: bool = True, roomy: bool = False
) -> Run | Miss:
    """The fastest layout of a scenario on its first GPU and count, or why there is none.

    `even_odds`: if no layout is as safe as a plan must be, accept one that more likely fits than
    not. `roomy`: assume unlimited GPU memory. A scenario that leaves the stack open is
    forecast for no particular one: published figures seldom name theirs.
    """
    return _forecast(frozenset(fields.items()), node, even_odds, roomy)


@cache
def _forecast(
    items: frozenset[tuple[str, object]], node: Node, even_odds: bool, roomy: bool
) -> Run | Miss:
    scenario = Scenario.parse(dict(items))
    scenario = scenario.model_copy(update={"stack": software(scenario)})
    question, job, host = _posed(scenario, node)
    if roomy:
        job = replace(job, cluster=replace(job.cluster, memory_bytes=ROOMY_BYTES))
    best = best_of(question, [job])
    near = best.closest is not None and best.closest.need_bytes < best.closest.limit_bytes
    if near and even_odds:
        best = best_of(question, [job], EXACT_SIGMA)
    if not len(best.job):
        return _miss(best)
    need = sum(float(v[0]) for v in best.memory.values())
    limit = as_float(job.cluster.memory_bytes)
    parts_s = {p: float(v[0]) for p, v in best.step.parts.items()}
    known = of_step(Circumstances(), parts_s=parts_s)
    on_host = _on_host(best, question)
    if on_host > host > 0:  # if no source states the host's memory, it is assumed to suffice
        return Miss(host_bytes=on_host, host_limit_bytes=host)
    return Run(
        scenario=scenario,
        layout=record_of(best.layouts, 0),
        step_s=float(best.step.step_s[0]),
        parts_s=parts_s,
        tokens_per_s=float(best.step.tokens_per_s[0]),
        throughput_sigma=as_float(throughput_sigma(question.eff, known)),
        mfu=float(best.step.mfu[0]),
        need_bytes=need,
        limit_bytes=limit,
        host_bytes=on_host,
        probability_oom=as_float(probability_above(limit, p50=need, sigma=question.memory_sigma)),
    )


def _posed(scenario: Scenario, node: Node) -> tuple[Question, Job, float]:
    """The question, the job, and the host memory per GPU in bytes. On a bare node only what the
    scenario says is placed on the host."""
    usual = unpriced_machine(scenario.gpu[0], scenario)
    question, count = question_of(scenario), scenario.num_gpus[0]
    if node == "instance":
        m = as_known(usual, scenario)
        return question, job_of(scenario, m, count), m.host_bytes
    on_device = replace(question, choices=replace(question.choices, searches_offload=False))
    cluster = as_known(_bare(usual), scenario).cluster
    return on_device, Job(cluster=cluster, num_gpus=count), math.inf


def _bare(m: Machine) -> Machine:
    """The node of an accelerator's reference design; 1 Gbit/s if that has no network."""
    chip = m.accelerator
    cluster = cluster_of(
        chip,
        gpus_per_node=chip.gpus_per_node,
        scale_up_domain=chip.scale_up_domain,
        scale_out_bytes_per_s=chip.scale_out_bytes_per_s or to_si(1.0, "Gbit/s"),
    )
    return replace(m, cluster=cluster)


def _on_host(best: Best, question: Question) -> float:
    """Bytes in host memory, whether the search or the scenario places them there."""
    lay, work = best.layouts, question.work
    placed = replace(
        lay,
        offload_optimizer=np.maximum(lay.offload_optimizer, work.offload_optimizer),
        offload_params=np.maximum(lay.offload_params, work.offload_params),
    )
    return float(np.ravel(host_bytes(work, placed, question.eff))[0])


def _miss(best: Best) -> Miss:
    """The nearest miss of the memory; if there is none, the last rule that removed something."""
    if best.closest is not None:
        return Miss(need_bytes=best.closest.need_bytes, limit_bytes=best.closest.limit_bytes)
    broken = [r for r in RULES if best.removed.get(r, 0)]
    named = [r for r in broken if r not in ABOUT_DEGREES] or broken
    return Miss(rule=RULES[named[-1]] if named else "no layout of that kind exists")


H100 = "H100-80GB-SXM"
# Data parallelism only: the basis for comparing DDP, ZeRO and FSDP.
DATA_PARALLEL: Fields = {"tp": 1, "pp": 1, "cp": 1}


def timed(fields: Fields, *, even_odds: bool = False) -> Run | None:
    """The fastest layout that fits as safely as a plan must, on H100 unless the fields say
    otherwise. With `even_odds`, if there is none, one that more likely fits than not."""
    found = forecast({"gpu": H100, **fields}, node="bare", even_odds=even_odds)
    return found if isinstance(found, Run) else None


def timed_if_it_fitted(fields: Fields) -> Run:
    """The fastest layout with unlimited memory: the time of DDP for a model that it cannot hold.

    ScenarioError if a rule leaves no layout.
    """
    found = forecast({"gpu": H100, **fields}, node="bare", roomy=True)
    if isinstance(found, Run):
        return found
    raise ScenarioError(f"A case of a guide runs with no layout: {found.rule}.")


def slowdown(slow: Run | None, fast: Run | None) -> float:
    """Slow step time over fast step time; infinite if the slow case does not run.

    >>> slowdown(None, None)
    inf
    """
    return slow.step_s / fast.step_s if slow and fast else math.inf


def longest_differences(slow: Run, fast: Run) -> list[tuple[str, str]]:
    """The parts of a step that take longer, the most first: a name, and how much: '+1.2 s'."""
    more_s = {p: s - fast.parts_s.get(p, 0.0) for p, s in slow.parts_s.items()}
    return [
        (vocabulary.step_part(p), f"+{fmt.seconds(more_s[p])}")
        for p in sorted(more_s, key=lambda p: -more_s[p])
        if more_s[p] > 0
    ]

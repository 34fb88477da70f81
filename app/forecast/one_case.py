"""One way to run one job, forecast on the usual machine of its accelerator, prices aside."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from app.forecast.choice import host_memory
from app.forecast.claimed_cases import EXACT_SIGMA
from app.forecast.machines import as_known, unpriced_machines
from app.forecast.training import choices_of, efficiency_of, searches_offload, workload_of
from app.scenario.model import model_of
from core.evidence.uncertainty import probability_above
from core.explain.explain import record_of
from core.layout.layouts import RULES
from core.layout.workload import Workload
from core.machine.efficiency import Efficiency
from core.memory.offload import host_bytes
from core.scenario import Scenario
from core.search.plan import Layout
from core.search.search import MAX_PROBABILITY_OOM, Best, Job, best_layouts

# Asked of every candidate before its strategy is: told if nothing else is broken.
ABOUT_DEGREES = frozenset({"gpu_count", "batch"})
Fields = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The fastest layout of one way that fits the memory, more likely than not."""

    scenario: Scenario  # what was asked
    layout: Layout
    step_s: float
    parts_s: Mapping[str, float]
    tokens_per_s: float
    throughput_sigma: float
    mfu: float
    need_bytes: float
    limit_bytes: float
    host_bytes: float  # of the host's memory, for each GPU
    probability_oom: float

    @property
    def offload(self) -> tuple[str, str]:
        """Where the optimizer waits and where the weights do: none, cpu or nvme."""
        x, s = self.layout, self.scenario
        said = ("cpu", "nvme")
        return (
            s.offload_optimizer if s.offload_optimizer in said else x.offload_optimizer,
            s.offload_params if s.offload_params in said else x.offload_params,
        )

    @property
    def is_tight(self) -> bool:
        """Whether it may run out of memory more often than a plan may."""
        return self.probability_oom > MAX_PROBABILITY_OOM

    @property
    def free_bytes(self) -> float:
        """What the fullest GPU has to spare."""
        return self.limit_bytes - self.need_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """Why one way does not run: the memory of its leanest layout, the host's, or a broken rule."""

    need_bytes: float = 0.0
    limit_bytes: float = 0.0
    host_bytes: float = 0.0  # that the host has too little of, for each GPU
    host_limit_bytes: float = 0.0
    rule: str = ""

    @property
    def short_bytes(self) -> float:
        """How much the fullest GPU lacks."""
        return self.need_bytes - self.limit_bytes


def forecast(fields: Fields) -> Run | Miss:
    """The fastest layout of a scenario on its first GPU and count, or why there is none."""
    return _forecast(frozenset(fields.items()))


@cache
def _forecast(items: frozenset[tuple[str, object]]) -> Run | Miss:
    scenario = Scenario.parse(dict(items))
    machine = next(m for m in unpriced_machines() if m.accelerator.name == scenario.gpu[0])
    host = host_memory(machine)
    searches = searches_offload(scenario)
    job = Job(
        cluster=as_known(machine, scenario).cluster,
        num_gpus=scenario.num_gpus[0],
        host_bytes=host if searches else math.inf,
    )
    work = workload_of(scenario, model_of(scenario))
    eff = efficiency_of(scenario, work)
    sigma = float(np.asarray(eff.memory_sigma))
    choices = replace(choices_of(scenario), searches_offload=searches)
    best = best_layouts(work, [job], eff, choices, memory_sigma=sigma)
    if best.closest is not None and best.closest.need_bytes < best.closest.limit_bytes:
        best = best_layouts(work, [job], eff, choices, memory_sigma=EXACT_SIGMA)
    if not len(best.job):
        return _miss(best)
    need = sum(float(v[0]) for v in best.memory.values())
    limit = float(np.asarray(job.cluster.memory_bytes))
    on_host = _on_host(best, work, eff)
    if on_host > host > 0:  # where no source says how much there is, it is taken to be enough
        return Miss(host_bytes=on_host, host_limit_bytes=host)
    return Run(
        scenario=scenario,
        layout=record_of(best.layouts, 0),
        step_s=float(best.step.step_s[0]),
        parts_s={p: float(v[0]) for p, v in best.step.parts.items()},
        tokens_per_s=float(best.step.tokens_per_s[0]),
        throughput_sigma=float(np.asarray(eff.throughput_sigma)),
        mfu=float(best.step.mfu[0]),
        need_bytes=need,
        limit_bytes=limit,
        host_bytes=on_host,
        probability_oom=float(np.asarray(probability_above(limit, p50=need, sigma=sigma))),
    )


def _on_host(best: Best, work: Workload, eff: Efficiency) -> float:
    """Bytes in the host's memory, whether the search or the scenario puts them there."""
    lay = best.layouts
    placed = replace(
        lay,
        offload_optimizer=np.maximum(lay.offload_optimizer, work.offload_optimizer),
        offload_params=np.maximum(lay.offload_params, work.offload_params),
    )
    return float(np.ravel(host_bytes(work, placed, eff))[0])


def _miss(best: Best) -> Miss:
    """The nearest miss of the memory; without one, the last rule that removed something."""
    if best.closest is not None:
        return Miss(need_bytes=best.closest.need_bytes, limit_bytes=best.closest.limit_bytes)
    broken = [r for r in RULES if best.removed.get(r, 0)]
    told = [r for r in broken if r not in ABOUT_DEGREES] or broken
    return Miss(rule=RULES[told[-1]] if told else "no layout of that kind exists")

"""One case of a claim on one machine, timed by the search of every plan, prices aside."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from app.document import format as fmt
from app.document import vocabulary
from app.forecast.training import choices_of, efficiency_of, workload_of
from app.guides.claim_text import FORECAST_DIGITS, Ours, span
from app.scenario.model import model_of
from core.evidence.uncertainty import probability_above
from core.explain.explain import record_of
from core.machine.cluster import cluster_of
from core.scenario import Scenario
from core.search.plan import Layout
from core.search.search import MAX_PROBABILITY_OOM, Job, best_layouts
from core.units import to_si
from hardware import facts

H100 = "H100-80GB-SXM"
ROOMY_BYTES = 1e18
EXACT_SIGMA = 1e-6  # as if the forecast of memory were exact
# Nothing but data parallelism: what DDP, ZeRO and FSDP are compared as.
DATA_PARALLEL: Mapping[str, object] = {"tp": 1, "pp": 1, "cp": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """The fastest layout of one case. Bytes are of the fullest GPU."""

    layout: Layout
    num_gpus: int
    step_s: float
    parts_s: Mapping[str, float]
    mfu: float
    memory_bytes: float
    probability_oom: float

    @property
    def text(self) -> str:
        """The layout, its step and its utilisation; the chance to run out, if it is a risk."""
        risk = ""
        if self.probability_oom > MAX_PROBABILITY_OOM:
            risk = f" ({fmt.percent(self.probability_oom)} chance to run out of memory)"
        return (
            f"{fmt.layout(self.layout)}: {fmt.seconds(self.step_s)} a step, "
            f"{fmt.percent(self.mfu)} MFU, {fmt.gib(self.memory_bytes)} a GPU{risk}"
        )


def timed(fields: Mapping[str, object]) -> Timed | None:
    """The fastest layout that fits, on the usual machine of the accelerator and its network."""
    return _timed(frozenset(fields.items()))


def timed_at_even_odds(fields: Mapping[str, object]) -> Timed | None:
    """The same if it more likely fits than not: a plan is offered at one in five."""
    return _timed(frozenset(fields.items()), even_odds=True)


def timed_if_it_fitted(fields: Mapping[str, object]) -> Timed | None:
    """The same with memory without end: what DDP would take of a model that it cannot hold."""
    return _timed(frozenset(fields.items()), roomy=True)


@cache
def _timed(
    items: frozenset[tuple[str, object]], *, even_odds: bool = False, roomy: bool = False
) -> Timed | None:
    fields = {"gpu": H100, **dict(items)}
    gbit = fields.pop("gbit_per_s_per_node", None)  # of a slower network than the usual one
    scenario = Scenario.parse(fields)
    chip = facts.accelerator(scenario.gpu[0])
    network = chip.scale_out_bytes_per_s or to_si(1.0, "Gbit/s")
    if gbit is not None:
        network = to_si(float(str(gbit)), "Gbit/s") / chip.gpus_per_node
    cluster = cluster_of(
        chip,
        gpus_per_node=chip.gpus_per_node,
        scale_up_domain=chip.scale_up_domain,
        scale_out_bytes_per_s=network,
    )
    if roomy:
        cluster = replace(cluster, memory_bytes=ROOMY_BYTES)
    work = workload_of(scenario, model_of(scenario))
    eff = efficiency_of(scenario, work)
    sigma = float(np.asarray(eff.memory_sigma))
    best = best_layouts(
        work,
        [Job(cluster=cluster, num_gpus=scenario.num_gpus[0])],
        eff,
        choices_of(scenario),
        memory_sigma=EXACT_SIGMA if even_odds else sigma,
    )
    if not len(best.job):
        return None
    need = sum(float(v[0]) for v in best.memory.values())
    return Timed(
        layout=record_of(best.layouts, 0),
        num_gpus=scenario.num_gpus[0],
        step_s=float(best.step.step_s[0]),
        parts_s={p: float(v[0]) for p, v in best.step.parts.items()},
        mfu=float(best.step.mfu[0]),
        memory_bytes=need,
        probability_oom=float(
            np.asarray(probability_above(cluster.memory_bytes, p50=need, sigma=sigma))
        ),
    )


def slowdown(slow: Timed | None, fast: Timed | None) -> float:
    """Step over step; infinite where the slow one does not run at all.

    >>> slowdown(None, None)
    inf
    """
    return slow.step_s / fast.step_s if slow and fast else math.inf


def range_of(ratios: Iterable[float], arithmetic: str) -> Ours:
    """The range of what runs; without one the figure is infinite, which no claim prints."""
    found = [r for r in ratios if math.isfinite(r)] or [math.inf]
    return Ours(low=min(found), high=max(found), arithmetic=arithmetic, digits=FORECAST_DIGITS)


def listed(cases: Mapping[str, float], unit: str = "x") -> str:
    """Each case with its figure: '8 sequences a step: 3.7x; 64: 1.8x'."""
    return "; ".join(
        f"{case}: {span(x, x, unit, FORECAST_DIGITS) if math.isfinite(x) else 'does not fit'}"
        for case, x in cases.items()
    )


def longest_differences(slow: Timed, fast: Timed, count: int = 2) -> str:
    """The parts of a step that make the most of a difference."""
    by_part = {p: s - fast.parts_s.get(p, 0.0) for p, s in slow.parts_s.items()}
    largest = sorted(by_part, key=lambda p: -by_part[p])[:count]
    return ", ".join(
        f"{vocabulary.step_part(p)} +{fmt.seconds(by_part[p])}" for p in largest if by_part[p] > 0
    )

"""The forecast of a layout that a scenario fixes whole, whether or not it fits or a launch file
takes it, before measured runs like it correct it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.forecast.machines import as_known, cluster_at, unpriced_machine
from app.forecast.training import question_of, said_place
from core.explain.explain import columns_of
from core.machine.cluster import Cluster
from core.memory.memory import peak_bytes
from core.memory.offload import work_on
from core.scenario import Scenario
from core.search.plan import Layout
from core.time.step import step
from core.units import GIB

GROUPED = ("hsdp", "zero1")  # may share one copy, or the optimizer, among some of the ranks only
# What a whole layout, and a machine that no offer is needed for, cannot leave open.
NEEDED = (
    "tp", "pp", "cp", "micro_batch_size", "gpus_per_node", "scale_up_domain",
    "network_gbit_per_gpu", "network_kind",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutForecast:
    """The forecast of one layout."""

    layout: Layout
    tokens_per_s_per_gpu: float
    memory_bytes: Mapping[str, float]  # of the fullest GPU, by part

    @property
    def memory_gib(self) -> float:
        """Memory of the fullest GPU, all parts together."""
        return sum(self.memory_bytes.values()) / GIB


def is_whole(scenario: Scenario) -> bool:
    """Whether a scenario leaves nothing of the layout to a search, nor of the machine to offers."""
    lists = (scenario.gpu, scenario.num_gpus, scenario.sharding, scenario.recompute)
    given = all(getattr(scenario, name) for name in NEEDED)
    return given and all(len(names) == 1 for names in lists)


def layout_of(scenario: Scenario) -> Layout:
    """The layout of a scenario that fixes it whole; degrees that it leaves out are 1."""
    tp, pp, cp = scenario.tp or 1, scenario.pp or 1, scenario.cp or 1
    micro = scenario.micro_batch_size or 1
    sharding = scenario.sharding[0]
    ranks = max(scenario.num_gpus[0] // (tp * pp * cp), 1)
    group = (scenario.dp_shard if sharding in GROUPED else None) or ranks
    return Layout(
        tp=tp,
        pp=pp,
        virtual_stages=scenario.virtual_stages or 1,
        cp=cp,
        ep=scenario.ep or 1,
        etp=scenario.etp or 1,
        dp_replicate=max(ranks // group, 1),
        dp_shard=group,
        sharding=sharding,
        micro_batch_size=micro,
        num_microbatches=max(scenario.global_batch_size // (ranks * micro), 1),
        recompute=scenario.recompute[0] if scenario.recompute else "none",
        schedule=scenario.schedule,
        context_parallel=scenario.context_parallel,
        reshard_after_forward=scenario.reshard_after_forward,
        offload_optimizer=said_place(scenario.offload_optimizer),
        offload_params=said_place(scenario.offload_params),
    )


def cluster_of_scenario(scenario: Scenario) -> Cluster:
    """The cluster of a scenario that gives its machine."""
    machine = as_known(unpriced_machine(scenario.gpu[0], scenario), scenario)
    return cluster_at(machine, scenario.num_gpus[0])


def layout_forecast(scenario: Scenario) -> LayoutForecast | None:
    """The forecast of a layout and machine that are given whole; None if something is open."""
    if not is_whole(scenario):
        return None
    question, layout = question_of(scenario), layout_of(scenario)
    lay = columns_of([layout], list(scenario.num_gpus))
    cluster = cluster_of_scenario(scenario)
    work = work_on(question.work, lay)
    memory = peak_bytes(work, lay, cluster, question.eff)
    return LayoutForecast(
        layout=layout,
        tokens_per_s_per_gpu=float(step(work, lay, cluster, question.eff).tokens_per_s_per_gpu[0]),
        memory_bytes={part: float(value[0]) for part, value in memory.items()},
    )

"""Published runs as columns of the estimator: the question of each run's scenario, its whole layout
and its machine, as a user's forecast has them.

What a run leaves blank and only its memory can settle (recompute, offloaded layers) is inferred
here, as the least that fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.accuracy.row_layout import InferredLayout, inferred_layout
from app.accuracy.row_words import MEASURES
from app.accuracy.scenario_of_row import PublishedRun, scenario_of_row
from app.forecast.training import profile_of, workload_of
from app.forecast.whole_layout import cluster_of_scenario
from app.scenario.model import CUSTOM, NamedModel, model_of
from core.errors import RuncastError
from core.evidence.inference import least_recompute, with_least_offload
from core.evidence.uncertainty import OF_STEP, Circumstances, doublings
from core.explain.explain import columns_of
from core.layout.layouts import RECOMPUTE, SEARCHED_RECOMPUTE, Layouts
from core.layout.workload import Workload
from core.machine import efficiency as efficiencies
from core.machine.cluster import Cluster
from core.machine.cluster import as_columns as cluster_columns
from core.machine.efficiency import Efficiency
from core.memory.offload import work_on
from core.model import transformer as model_transformer
from core.model.transformer import Transformer
from core.numeric import as_float
from core.scenario import Scenario
from hardware.habits.options import graph_reserve
from hardware.measured import RunInputs, measured_accelerators
from hardware.measured_model import ModelFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The runs that can be forecast, as columns with one row per run."""

    work: Workload
    layouts: Layouts
    cluster: Cluster
    efficiency: Efficiency
    circumstances: Circumstances
    graph_reserve: NDArray[np.float64]  # what CUDA graphs add to the stack's fragmentation
    scenarios: NDArray[np.object_]  # without what only the memory settles

    def whole_scenarios(self) -> NDArray[np.object_]:
        """The scenarios, with the recompute and the offloaded layers that were inferred."""
        modes = np.asarray(self.layouts.recompute)
        shares = np.asarray(self.work.offloads_activations)
        whole = [
            scenario.model_copy(
                update={
                    "recompute": (RECOMPUTE[int(mode)],),
                    "activation_offload_share": float(share) or 1.0,
                }
            )
            for scenario, mode, share in zip(self.scenarios, modes, shares, strict=True)
        ]
        return np.array(whole, dtype=object)

    def take(self, rows: NDArray[np.intp]) -> Columns:
        """Only the rows with these numbers."""
        work = _columns(self.work, rows, but="model")
        return Columns(
            work=Workload(model=Transformer(**_columns(self.work.model, rows)), **work),
            layouts=Layouts(**_columns(self.layouts, rows)),
            cluster=self.cluster.take(rows),
            efficiency=Efficiency(**_columns(self.efficiency, rows)),
            circumstances=Circumstances(**_columns(self.circumstances, rows)),
            graph_reserve=self.graph_reserve[rows],
            scenarios=self.scenarios[rows],
        )


def _columns(record: Any, rows: NDArray[np.intp], but: str = "") -> dict[str, Any]:
    names = [f.name for f in fields(record) if f.name != but]
    return {n: np.asarray(getattr(record, n))[rows] for n in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRun:
    """One run as its row describes it, whatever the efficiencies are."""

    run: PublishedRun
    work: Workload
    cluster: Cluster
    layout: InferredLayout | None  # None where the memory decides
    counter: tuple[tuple[str, float], ...]  # efficiencies of the counter that read its memory


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One run as scalars."""

    read: ReadRun
    layout: InferredLayout
    efficiency: Efficiency


def read_or_why(inputs: RunInputs, i: int, models: Mapping[str, ModelFacts]) -> ReadRun | str:
    """Return what a row says, or why it cannot be read."""
    try:
        run = scenario_of_row(inputs, i, models)
        work = workload_of(run.scenario, _named(run))
        cluster = _cluster(*_machine_key(run.scenario))
        return ReadRun(
            run=run,
            work=work,
            cluster=cluster,
            layout=inferred_layout(run, work, cluster, None),
            counter=_counter(str(inputs.memory_measure[i])),
        )
    except RuncastError as e:
        return str(e)


def _named(run: PublishedRun) -> NamedModel:
    if run.scenario.model != CUSTOM:
        return model_of(run.scenario)
    return NamedModel(
        id=CUSTOM, label="", transformer=run.facts.transformer, source="", max_seq_len=None
    )


MACHINE_FIELDS = (
    "gpu", "num_gpus", "precision", "gpus_per_node", "scale_up_domain", "network_gbit_per_gpu",
    "network_kind",
)  # fmt: skip


def _machine_key(scenario: Scenario) -> tuple[Any, ...]:
    return tuple(getattr(scenario, name) for name in MACHINE_FIELDS)


@lru_cache(maxsize=4096)
def _cluster(*values: Any) -> Cluster:
    """The cluster of a scenario with these fields."""
    scenario = Scenario.model_validate(dict(zip(MACHINE_FIELDS, values, strict=True)))
    return cluster_of_scenario(scenario)


def _counter(measure: str) -> tuple[tuple[str, float], ...]:
    """The memory counter that a row names; empty: that of its stack."""
    if measure not in MEASURES:
        return ()
    return (
        ("reserve_reported", float(measure == "device")),
        ("fragmentation_reported", float(measure != "allocated")),
    )


def columns(
    inputs: RunInputs,
    models: Mapping[str, ModelFacts],
    profiles: Mapping[str, Efficiency] | None = None,
    *,
    known: Sequence[ReadRun | str] | None = None,
    only: Iterable[int] | None = None,
) -> tuple[Columns | None, NDArray[np.intp], NDArray[np.object_]]:
    """The runs that can be forecast (None if there are none), their row numbers, and for every
    row the reason why it cannot be forecast ('' if it can).

    `known`: the rows as `read_or_why` has found them; `only`: the numbers of those to look at.
    """
    rows: list[_Row] = []
    profile = _Profiles(profiles)
    reasons = np.full(len(inputs), "", dtype=object)
    kept = []
    for i in range(len(inputs)) if only is None else only:
        try:
            read = read_or_why(inputs, i, models) if known is None else known[i]
            if isinstance(read, str):
                reasons[i] = read
                continue
            eff = profile(read)
            layout = read.layout or inferred_layout(read.run, read.work, read.cluster, eff)
            rows.append(_Row(read=read, layout=layout, efficiency=eff))
            kept.append(i)
        except RuncastError as e:
            reasons[i] = str(e)
    return (_columns_of(rows) if rows else None), np.array(kept, dtype=np.intp), reasons


class _Profiles:
    """Efficiencies of rows: one object for all rows that share one."""

    def __init__(self, table: Mapping[str, Efficiency] | None) -> None:
        self.table = table
        self.of: dict[object, Efficiency] = {}

    def __call__(self, read: ReadRun) -> Efficiency:
        s = read.run.scenario
        key = (s.stack, s.weight_dtype, s.cuda_graphs, s.software_date, read.counter)
        if key not in self.of:
            self.of[key] = replace(profile_of(s, self.table), **dict(read.counter))
        return self.of[key]


def _columns_of(rows: list[_Row]) -> Columns:
    scenarios = [r.layout.scenario for r in rows]
    batches = np.array([s.global_batch_size for s in scenarios], dtype=float)
    lay = columns_of([r.layout.layout for r in rows], [s.num_gpus[0] for s in scenarios])
    cluster = cluster_columns([r.read.cluster for r in rows])
    eff = _efficiency_columns([r.efficiency for r in rows])
    work = work_on(
        replace(_work_columns([r.read.work for r in rows]), global_batch_size=batches), lay
    )
    kinds = [r.layout.recomputes or SEARCHED_RECOMPUTE for r in rows]
    allowed = np.array([[kind in k for kind in RECOMPUTE] for k in kinds])
    lay = replace(lay, recompute=least_recompute(work, lay, cluster, eff, allowed=allowed))
    work = with_least_offload(work, lay, cluster, eff)
    circumstances = [_circumstances(r) for r in rows]
    return Columns(
        work=work,
        layouts=lay,
        cluster=cluster,
        efficiency=eff,
        circumstances=Circumstances(
            **{n: np.array([c[n] for c in circumstances]) for n in circumstances[0]}
        ),
        graph_reserve=np.array(
            [graph_reserve(r.read.run.scenario, r.read.run.stack) for r in rows]
        ),
        scenarios=np.array(scenarios, dtype=object),
    )


def _work_columns(works: list[Workload]) -> Workload:
    names = [f.name for f in fields(Workload) if f.name != "model"]
    return Workload(
        model=model_transformer.as_columns([w.model for w in works]),
        **{n: np.array([getattr(w, n) for w in works]) for n in names},
    )


def _circumstances(row: _Row) -> dict[str, float]:
    """Causes of a wider interval: inferred inputs, and the distance from measured runs."""
    run, layout, cluster = row.read.run, row.layout, row.read.cluster
    (num_gpus,) = run.scenario.num_gpus
    guessed = num_gpus > as_float(cluster.gpus_per_node) and not run.network_known
    unknown = (
        not run.scenario.recompute,
        not run.precision_known,
        not layout.has_stages,
        not layout.has_degrees,
        not layout.has_sharding,
        guessed,
        not (run.batch_known and layout.has_micro_batch),
    )
    of_memory = (
        len(layout.recomputes) != 1,
        not layout.has_degrees,
        not layout.has_sharding,
        not layout.has_micro_batch,
    )
    return {
        "num_inferred": float(sum(unknown)),
        "num_inferred_of_memory": float(sum(of_memory)),
        "unknown_stack": float(not run.known_stack),
        "unmeasured": float(run.chip.matmul_flops_per_s is None),
        "unseen_accelerator": float(run.chip.name not in measured_accelerators()),
        "doublings": as_float(doublings(num_gpus)),
        "network_guessed": float(guessed),
        **dict.fromkeys(OF_STEP, 0.0),
        "experts": float(as_float(run.facts.transformer.num_experts) > 0),
        "adapters": float(bool(row.read.work.adapters)),
    }


def _efficiency_columns(rows: list[Efficiency]) -> Efficiency:
    """Many profiles as one, most of which are one object."""
    profiles = {id(e): e for e in rows}
    number = {key: n for n, key in enumerate(profiles)}
    numbers = np.array([number[id(e)] for e in rows])
    return Efficiency(**_columns(efficiencies.as_columns(list(profiles.values())), numbers))

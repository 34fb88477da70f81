"""Published runs as input columns of the estimator, from their settings, never their measurements.

What a run leaves blank and only its memory can settle (recompute, degrees, offloading) is inferred
here, as the least that fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.accuracy.runs.written import Placed, Read, placed, read_or_why
from core.errors import RuncastError
from core.evidence.inference import least_recompute, with_least_offload, with_paged_optimizer
from core.evidence.uncertainty import Circumstances
from core.layout.layouts import RECOMPUTE, SEARCHED_RECOMPUTE, Layouts
from core.layout.workload import Workload
from core.machine import efficiency as efficiencies
from core.machine.cluster import Cluster
from core.machine.cluster import as_columns as cluster_columns
from core.machine.efficiency import Efficiency
from core.model import transformer as model_transformer
from core.model.transformer import Transformer
from hardware.efficiency import GENERIC, efficiency, of_family
from hardware.measured import RunInputs
from hardware.measured_model import ModelFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The runs that can be forecast, as columns with one row per run."""

    work: Workload
    layouts: Layouts
    cluster: Cluster
    efficiency: Efficiency
    circumstances: Circumstances

    def take(self, rows: NDArray[np.intp]) -> Columns:
        """Only the rows with these numbers."""
        work = _columns(self.work, rows, but="model")
        return Columns(
            work=Workload(model=Transformer(**_columns(self.work.model, rows)), **work),
            layouts=Layouts(**_columns(self.layouts, rows)),
            cluster=self.cluster.take(rows),
            efficiency=Efficiency(**_columns(self.efficiency, rows)),
            circumstances=Circumstances(**_columns(self.circumstances, rows)),
        )


def _columns(record: Any, rows: NDArray[np.intp], but: str = "") -> dict[str, Any]:
    names = [f.name for f in fields(record) if f.name != but]
    return {n: np.asarray(getattr(record, n))[rows] for n in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One run as scalars."""

    read: Read
    placed: Placed
    efficiency: Efficiency


def columns(
    inputs: RunInputs,
    models: Mapping[str, ModelFacts],
    profiles: Mapping[str, Efficiency] | None = None,
    *,
    known: Sequence[Read | str] | None = None,
    only: Iterable[int] | None = None,
) -> tuple[Columns | None, NDArray[np.intp], NDArray[np.object_]]:
    """The runs that can be forecast (None if there are none), their row numbers, and for every
    row the reason why it cannot be forecast ('' if it can).

    `known`: the rows as `read_or_why` has found them; `only`: the numbers of those to look at.
    """
    rows: list[_Row] = []
    of_row = _Profiles(profiles)
    reasons = np.full(len(inputs), "", dtype=object)
    kept = []
    for i in range(len(inputs)) if only is None else only:
        try:
            one = read_or_why(inputs, i, models) if known is None else known[i]
            if isinstance(one, str):
                reasons[i] = one
                continue
            eff = of_row(one)
            where = one.placed or placed(one, inputs, i, eff)
            rows.append(_Row(read=one, placed=where, efficiency=eff))
            kept.append(i)
        except RuncastError as e:
            reasons[i] = str(e)
    return (_columns_of(rows) if rows else None), np.array(kept, dtype=np.intp), reasons


class _Profiles:
    """Efficiencies of rows: one object for all rows that share one."""

    def __init__(self, table: Mapping[str, Efficiency] | None) -> None:
        self.table = table
        self.of: dict[object, Efficiency] = {}

    def __call__(self, read: Read) -> Efficiency:
        key = (read.profile, read.stack.family, read.known_stack is None, read.said)
        if key not in self.of:
            self.of[key] = self._made(read)
        return self.of[key]

    def _made(self, read: Read) -> Efficiency:
        eff = replace(efficiency(read.profile, self.table), **dict(read.said))
        if read.known_stack is not None:
            return eff
        # As uncertain as any unknown one, whatever it is built on. What selective means is how such
        # software works, not how well.
        width = efficiency(GENERIC, self.table)
        return replace(
            eff,
            throughput_sigma=width.throughput_sigma,
            memory_sigma=width.memory_sigma,
            selective_core=of_family(read.stack.family, self.table).selective_core,
        )


def _columns_of(rows: list[_Row]) -> Columns:
    names = [f.name for f in fields(Workload) if f.name != "model"]
    works = [r.read.work for r in rows]
    work = Workload(
        model=model_transformer.as_columns([w.model for w in works]),
        **{n: np.array([getattr(w, n) for w in works]) for n in names},
    )
    first = rows[0].placed
    lay = Layouts(**{n: np.array([r.placed.layout[n] for r in rows]) for n in first.layout})
    cluster = cluster_columns([r.read.cluster for r in rows])
    eff = _efficiency_columns([r.efficiency for r in rows])
    kinds = [r.placed.recomputes or SEARCHED_RECOMPUTE for r in rows]
    allowed = np.array([[kind in k for kind in RECOMPUTE] for k in kinds])
    lay = replace(lay, recompute=least_recompute(work, lay, cluster, eff, allowed=allowed))
    may_page = np.array([r.read.may_page for r in rows])
    work = with_least_offload(work, lay, cluster, eff)
    return Columns(
        work=with_paged_optimizer(work, lay, cluster, eff, may=may_page),
        layouts=lay,
        cluster=cluster,
        efficiency=eff,
        circumstances=Circumstances(
            **{n: np.array([r.placed.circumstances[n] for r in rows]) for n in first.circumstances}
        ),
    )


def _efficiency_columns(rows: list[Efficiency]) -> Efficiency:
    """Many profiles as one, most of which are one object."""
    alike = {id(e): e for e in rows}
    place = {key: n for n, key in enumerate(alike)}
    at = np.array([place[id(e)] for e in rows])
    return Efficiency(**_columns(efficiencies.as_columns(list(alike.values())), at))

"""Every ranked plan as columns, for charts, tables and downloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.document import format as fmt
from app.forecast.plans import Row
from core.explain.explain import record_of
from core.search.best import Best
from pricing.book.offers import is_quote


def points_of(rows: Sequence[Row], best: Best) -> Mapping[str, NDArray[Any]]:
    """The columns of these rows, by name."""
    offers = [r.machine.offer for r in rows]
    at = np.array([r.best_row for r in rows], dtype=np.int64)
    # Offers share layouts: each layout text is built once.
    texts = {n: fmt.layout_short(record_of(best.layouts, n)) for n in set(at.tolist())}
    memory = np.sum(list(best.memory.values()), axis=0)
    return {
        "id": np.array([r.id for r in rows], dtype=object),
        "rank": np.array([r.rank for r in rows], dtype=np.int64),
        "usd": np.array([r.usd for r in rows], dtype=float),
        "hours": np.array([r.hours for r in rows], dtype=float),
        "wall_clock_hours": np.array([r.run_hours for r in rows], dtype=float),
        "startup_hours": np.array([r.machine.supply.startup_hours for r in rows], dtype=float),
        "billed_hours": np.array([r.billed_hours for r in rows], dtype=float),
        "least_billed_hours": np.array(
            [r.machine.supply.least_billed_hours for r in rows], dtype=float
        ),
        "instances_usd": np.array([r.instances_usd for r in rows], dtype=float),
        "num_gpus": np.array([r.num_gpus for r in rows], dtype=np.int64),
        "num_nodes": np.array([r.num_nodes for r in rows], dtype=np.int64),
        "gpus_per_node": np.array([o.gpu_count for o in offers], dtype=np.int64),
        "tokens_per_s": np.array([r.tokens_per_s for r in rows], dtype=float),
        "stack": np.array([r.stack for r in rows], dtype=object),
        "accelerator": np.array([o.accelerator for o in offers], dtype=object),
        "provider": np.array([o.provider for o in offers], dtype=object),
        "instance_type": np.array([o.instance_type for o in offers], dtype=object),
        "region": np.array([o.region for o in offers], dtype=object),
        "purchase": np.array([o.purchase for o in offers], dtype=object),
        "frontier": np.array([r.frontier for r in rows], dtype=bool),
        "meets_deadline": np.array([r.meets_deadline for r in rows], dtype=bool),
        "in_doubt": np.array([bool(r.against) for r in rows], dtype=bool),
        "against": np.array([" ".join(r.against) for r in rows], dtype=object),
        "meets_budget": np.array([r.meets_budget for r in rows], dtype=bool),
        "gpu_hours": np.array([r.gpu_hours for r in rows], dtype=float),
        "mfu": np.asarray(best.step.mfu, dtype=float)[at],
        "peak_memory_bytes": np.asarray(memory, dtype=float)[at],
        "memory_capacity_bytes": np.array(
            [r.machine.accelerator.memory_bytes for r in rows], dtype=float
        ),
        "probability_oom": np.asarray(best.probability_oom, dtype=float)[at],
        "layout": np.array([texts[n] for n in at.tolist()], dtype=object),
        "observed_at": np.array([o.observed_at for o in offers], dtype=object),
        "is_quote": np.array([is_quote(o) for o in offers], dtype=bool),
    }

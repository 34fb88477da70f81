"""The held-out training step of the probe, and its forecasts.

The difference between two models with different numbers of layers is the time of a layer; what
matmuls and attention do not explain of it is elementwise operators. A third model is held out of
every fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from core.layout.layouts import Layouts
from core.layout.sharding import INDEX
from core.layout.workload import Workload
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.model.transformer import Transformer
from core.time.step import Step, step
from runners.calibration.fit_compute import Measured, spread
from runners.calibration.result import CalibResult, Row

# For a loop that only trains on one batch: no data, no logging, no other ranks.
BARE = {"step_s": 0.0, "straggler": 0.0}
SOLVED = 40  # halvings
ALONE = (
    "tp", "pp", "virtual_stages", "cp", "ep", "etp", "num_gpus", "dp_replicate", "dp_shard",
    "num_microbatches",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """A training step that no constant was fitted to."""

    measured_s: float
    before_s: float  # forecast without the calibration
    after_s: float
    num_layers: int

    @property
    def before(self) -> float:
        """Predicted over measured, without the calibration."""
        return self.before_s / self.measured_s

    @property
    def after(self) -> float:
        """Predicted over measured, with it."""
        return self.after_s / self.measured_s


def held_out(
    result: CalibResult, assumed: Cluster, calibrated: Cluster, eff: Efficiency
) -> HeldOut | None:
    """The held-out step with its two forecasts; None if it was not measured."""
    row = next(iter(result.rows("holdout")), None)
    if row is None:
        return None
    before, after = (float(forecast(row, c, eff).step_s.item()) for c in (assumed, calibrated))
    return HeldOut(
        measured_s=row.t_med_s,
        before_s=before,
        after_s=after,
        num_layers=int(row.params["num_layers"]),
    )


def elementwise(result: CalibResult, cluster: Cluster, eff: Efficiency) -> Measured | None:
    """Time of a layer's elementwise operators over the forecast: what a layer takes in addition to
    matmuls and attention, by the difference of two models. None without two models."""
    rows = sorted(
        (r for r in result.rows("layers") if r.mode == "fwdbwd"), key=lambda r: _layers(r)
    )
    if len(rows) < 2 or _layers(rows[0]) == _layers(rows[-1]):
        return None
    few, many = rows[0], rows[-1]
    between = _layers(many) - _layers(few)
    measured_s = (many.t_med_s - few.t_med_s) / between
    if measured_s <= 0:
        return None

    def layer_s(factor: float) -> float:
        slower = replace(cluster, elementwise_factor=cluster.elementwise_factor * factor)
        found = [_of_layers(forecast(row, slower, eff)) for row in (few, many)]
        return (found[1] - found[0]) / between

    # A layer takes longer with more elementwise time: find the factor by bisection.
    low, high = 0.05, 50.0
    for _ in range(SOLVED):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if layer_s(middle) < measured_s else (low, middle)
    error = float(np.hypot(spread(many) * many.t_med_s, spread(few) * few.t_med_s)) / between
    rest = layer_s(1.0) - layer_s(0.05)
    return Measured(
        assumed=1.0,
        measured=low,
        unit="times the forecast",
        sigma=error / max(rest, 1e-12) / max(low, 0.05),
        num_measured=2,
        note="operators of torch without a compiler, from the difference of two models",
    )


def forecast(row: Row, cluster: Cluster, eff: Efficiency) -> Step:
    """One step of the probe's model on one device."""
    p = {name: float(value) for name, value in row.params.items() if not isinstance(value, str)}
    model = Transformer(
        num_layers=p["num_layers"],
        hidden_size=p["hidden_size"],
        ffn_hidden_size=p["ffn_hidden_size"],
        num_attention_heads=p["num_attention_heads"],
        num_kv_heads=p["num_kv_heads"],
        head_dim=p["head_dim"],
        vocab_size=p["vocab_size"],
    )
    work = Workload(
        model=model,
        seq_len=p["seq_len"],
        global_batch_size=p["micro_batch_size"],
        flash2=True,
    )
    layout = Layouts(
        **dict.fromkeys(ALONE, 1.0),
        strategy=float(INDEX["ddp"]),
        micro_batch_size=p["micro_batch_size"],
        recompute=0.0,
        sequence_parallel=0.0,
    )
    return step(work, layout, cluster, replace(eff, **BARE))


def _layers(row: Row) -> int:
    return int(row.params["num_layers"])


def _of_layers(found: Step) -> float:
    """Seconds of forward and backward of all layers."""
    inside = ("matmul", "attention", "memory_bound", "overhead")
    return float(sum(found.parts[name].item() for name in inside))

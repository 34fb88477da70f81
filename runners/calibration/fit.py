"""Fit of a calibration: constants of a machine, joined with their priors, with errors.

Each constant is the log of measured over forecast, joined with its prior
(core/machine/calibration.py). Its error is the largest of the spread of its samples, the drift of
the control operation and the leave-one-out error.

The difference between two models with different numbers of layers is the time of a layer; what
matmuls and attention do not explain of it is elementwise operators. The step of a third model is
held out of every fit: forecasts of it with and without the constants show what they are worth.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.errors import FactError
from core.layout.layouts import Layouts
from core.layout.sharding import INDEX
from core.layout.workload import Workload
from core.machine.accelerator import Accelerator
from core.machine.calibration import PRIOR_SIGMA, Calibrated, applied, posterior
from core.machine.cluster import Cluster, cluster_of
from core.machine.efficiency import Efficiency
from core.model.transformer import Transformer
from core.numeric import Z_90, as_float
from core.time import collectives, message_curve
from core.time.message_curve import Curve
from core.time.step import Step, step
from runners.calibration import fit_compute
from runners.calibration.fit_compute import Matmuls, Measured, spread
from runners.calibration.result import CalibResult, Row
from runners.calibration.validity import control_drift

LEAST_SIGMA = 0.01  # no constant is known better than to one percent
TYPED_SIGMA = 1.5  # of a custom accelerator: its figures are not measured
UNMEASURED_SIGMA = 0.25  # of matmuls on an accelerator without measurements
# A factor beyond this is a mistake in the result or in the figures of the machine.
FARTHEST = 50.0
FARTHEST_HOP = 1e4  # processes of a CPU take a thousand times as long to meet as GPUs do
USED = "all_reduce"  # the operation whose bus bandwidth is the rate of a link in forecasts
LEAST_POINTS = 4
Z_95 = 1.645
# For a loop that only trains on one batch: no data, no logging, no other ranks.
BARE = {"step_s": 0.0, "straggler": 0.0}
SOLVED = 40  # halvings
AS_ASSUMED = Calibrated()
ALONE = (
    "tp", "pp", "virtual_stages", "cp", "ep", "etp", "num_gpus", "dp_replicate", "dp_shard",
    "num_microbatches",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """One constant of the machine, as a factor on what was assumed."""

    name: str  # of core.machine.calibration.Calibrated
    unit: str  # of `assumed` and of `measured`
    assumed: float
    measured: float
    factor: float  # that the forecast uses
    low: float  # P10 and P90 of the factor
    high: float
    num_measured: int
    left_out_error: float | None  # median relative error of left-out points
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One operation over one kind of process group."""

    op: str
    group: str
    ranks: int
    nodes: int
    bus_factor: float
    curve: Curve
    has_latency: bool = True  # whether a message was small enough to show the latency

    @property
    def bus_bytes_per_s(self) -> float:
        """Bandwidth as nccl-tests counts it, of large messages."""
        return self.curve.bytes_per_s * self.bus_factor

    @property
    def bus_interval(self) -> tuple[float, float]:
        """P5 and P95 of that bandwidth, bytes/s."""
        c = self.curve
        return c.bytes_per_s_low * self.bus_factor, c.bytes_per_s_high * self.bus_factor


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """A training step that no constant was fitted to."""

    num_layers: int
    measured_s: float
    before_s: float  # forecast without the calibration
    after_s: float

    @property
    def before(self) -> float:
        """Predicted over measured, without the calibration."""
        return self.before_s / self.measured_s

    @property
    def after(self) -> float:
        """Predicted over measured, with it."""
        return self.after_s / self.measured_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The calibrated machine of one result; the default measured nothing."""

    factors: Calibrated = AS_ASSUMED
    constants: tuple[Constant, ...] = ()
    links: tuple[Link, ...] = ()
    held_out: HeldOut | None = None
    checkpoint_bytes_per_s: float | None = None  # by all ranks of one machine together
    missing: tuple[str, ...] = tuple(PRIOR_SIGMA)  # constants without a measurement


class Fitting:
    """The constants so far: later ones are measured against a machine with the earlier ones."""

    def __init__(self, accelerator: Accelerator, drift: float) -> None:
        self.assumed = machine_of(accelerator)
        self.prior_sigma = prior_sigma(accelerator)
        self.drift = drift
        self.factors = AS_ASSUMED
        self.constants: list[Constant] = []

    @property
    def cluster(self) -> Cluster:
        """The machine with the constants so far."""
        return applied(self.assumed, self.factors)

    def take(self, name: str, measured: Measured | None) -> None:
        """Join a measurement with its prior; None changes nothing."""
        if measured is not None:
            sigma = self.prior_sigma[name]
            self.constants.append(_joined(name, measured, prior_sigma=sigma, drift=self.drift))
            factor: dict[str, Any] = {name: self.constants[-1].factor}
            self.factors = replace(self.factors, **factor)

    def take_matmuls(self, matmuls: Matmuls | None) -> None:
        """Join the constant of matmuls, and keep the corrections by shape."""
        if matmuls is not None:
            self.take("matmul", matmuls.constant)
            shapes = {"matmul_at": matmuls.at, "matmul_weights": matmuls.weights}
            self.factors = replace(self.factors, **shapes)  # type: ignore[arg-type]

    def fitted(self, links: tuple[Link, ...], **more: Any) -> Fitted:
        """The machine with all constants."""
        names = {c.name for c in self.constants}
        return Fitted(
            factors=self.factors,
            constants=tuple(self.constants),
            links=links,
            missing=tuple(n for n in PRIOR_SIGMA if n not in names),
            **more,
        )


def fitted(result: CalibResult, accelerator: Accelerator, eff: Efficiency) -> Fitted:
    """Fit the constants of a result that was judged usable. `eff` is the generic software profile,
    by which a forecast multiplies these rates."""
    drift = max(LEAST_SIGMA, (control_drift(result) or 0.0) / 2)
    fitting = Fitting(accelerator, drift)
    assumed = fitting.assumed
    fitting.take("memory", fit_compute.memory(result, assumed, eff))
    sigma, rows = fitting.prior_sigma["matmul"], result.rows("matmul")
    matmuls = fit_compute.matmuls(rows, fitting.cluster, eff, prior_sigma=sigma, least_sigma=drift)
    fitting.take_matmuls(matmuls)
    if matmuls is not None:
        fitting.take("matmul_fp8", fit_compute.fp8(rows, fitting.cluster, eff))
    fitting.take("attention", fit_compute.attention_rate(result, assumed, eff))
    fitting.take("elementwise", _elementwise(result, fitting.cluster, eff))
    fitting.take("host_link", fit_compute.host_link(result, assumed, eff))
    links = _links(result)
    for name, measured in link_rates(links, assumed, eff).items():
        fitting.take(name, measured)
    return fitting.fitted(
        links,
        held_out=_held_out(result, assumed, fitting.cluster, eff),
        checkpoint_bytes_per_s=fit_compute.checkpoint_bytes_per_s(result),
    )


def machine_of(accelerator: Accelerator) -> Cluster:
    """The usual machine of an accelerator, as assumed before it is measured."""
    return cluster_of(
        accelerator,
        gpus_per_node=accelerator.gpus_per_node,
        scale_up_domain=max(accelerator.scale_up_domain, 1),
        scale_out_bytes_per_s=accelerator.scale_out_bytes_per_s or float("nan"),
    )


def prior_sigma(accelerator: Accelerator) -> Mapping[str, float]:
    """Prior deviation of the log of each constant."""
    if accelerator.vendor == "custom":
        return dict.fromkeys(PRIOR_SIGMA, TYPED_SIGMA)
    is_measured = accelerator.matmul_flops_per_s is not None
    return PRIOR_SIGMA if is_measured else {**PRIOR_SIGMA, "matmul": UNMEASURED_SIGMA}


def _joined(name: str, measured: Measured, *, prior_sigma: float, drift: float) -> Constant:
    """Join a measurement with its prior; FactError where it is implausibly far from the
    assumption."""
    ratio = measured.measured / measured.assumed
    farthest = FARTHEST_HOP if name.endswith("_hop") else FARTHEST
    if not 1 / farthest <= ratio <= farthest:
        raise FactError(
            f"{name} was measured at {measured.measured:.3g} {measured.unit} where "
            f"{measured.assumed:.3g} is assumed: the result is of another machine, or its figures "
            "are wrong."
        )
    if measured.is_posterior:
        mean, left = float(np.log(ratio)), measured.sigma
    else:
        sigma = max(measured.sigma, drift, measured.left_out_error or 0.0)
        joined = posterior(log_ratio=np.log(ratio), sigma=sigma, prior_sigma=prior_sigma)
        mean, left = map(as_float, joined)
    return Constant(
        name=name,
        unit=measured.unit,
        assumed=measured.assumed,
        measured=measured.measured,
        factor=float(np.exp(mean)),
        low=float(np.exp(mean - Z_90 * left)),
        high=float(np.exp(mean + Z_90 * left)),
        num_measured=measured.num_measured,
        left_out_error=measured.left_out_error,
        note=measured.note,
    )


# --- links ---------------------------------------------------------------------------------------


def _links(result: CalibResult) -> tuple[Link, ...]:
    """A curve for every operation and group with enough sizes."""
    groups: dict[tuple[str, str], dict[float, Row]] = defaultdict(dict)
    for row in result.rows("collectives"):
        groups[str(row.params["op"]), str(row.params["group"])][float(row.bytes or 0.0)] = row
    return tuple(
        Link(
            op=op,
            group=group,
            ranks=int(row.params["ranks"]),
            nodes=int(row.params["nodes"]),
            bus_factor=float(row.bus_factor or 1.0),
            curve=message_curve.fit(
                size_bytes=np.array(list(rows)),
                time_s=np.array([r.t_med_s for r in rows.values()]),
            ),
        )
        for (op, group), rows in groups.items()
        if len(rows) >= LEAST_POINTS
        for row in [next(iter(rows.values()))]
    )


def link_rates(links: tuple[Link, ...], cluster: Cluster, eff: Efficiency) -> dict[str, Measured]:
    """Bandwidth and latency of the link inside the node and of the network, from all-reduces."""
    reduced = [link for link in links if link.op == USED]
    inside = max((x for x in reduced if x.nodes == 1), key=lambda x: x.ranks, default=None)
    across = max((x for x in reduced if x.nodes > 1), key=lambda x: x.ranks, default=None)
    rates: dict[str, Measured] = {}
    if inside is not None:
        assumed = as_float(eff.scale_up * np.asarray(cluster.scale_up_bytes_per_s))
        rates["scale_up"] = _rate(inside, assumed, inside.bus_bytes_per_s)
        if inside.has_latency:
            rates["scale_up_hop"] = _hop(inside, cluster, eff)
    assumed = as_float(eff.scale_out * np.asarray(cluster.scale_out_bytes_per_s))
    if across is not None and np.isfinite(assumed):
        local = across.ranks / across.nodes
        rates["scale_out"] = _rate(across, assumed, across.bus_bytes_per_s / local)
        if across.has_latency:
            rates["scale_out_hop"] = _hop(across, cluster, eff)
    return rates


def _rate(link: Link, assumed: float, measured: float) -> Measured:
    c = link.curve
    return Measured(
        assumed=assumed / 1e9,
        measured=measured / 1e9,
        unit="GB/s",
        sigma=float(np.log(c.bytes_per_s_high / c.bytes_per_s_low)) / (2 * Z_95),
        num_measured=len(c.size_bytes),
        left_out_error=c.left_out_error,
        note=f"bus bandwidth of {link.op} over {link.ranks} ranks of {link.nodes} nodes",
    )


def _hop(link: Link, cluster: Cluster, eff: Efficiency) -> Measured:
    """Latency of a hop: the smallest all-reduce over its hops, a tree or a ring as in the
    forecast."""
    n = float(link.ranks)
    hops = {
        "ranks": n,
        "local_ranks": n / link.nodes,
        "scale_up_hop_s": eff.hop * np.asarray(cluster.scale_up_hop_s),
        "scale_out_hop_s": eff.hop * np.asarray(cluster.scale_out_hop_s),
    }
    latency = np.minimum(collectives.ring_hop_s(**hops), collectives.tree_hop_s(**hops))
    return Measured(
        assumed=float(2 * (n - 1) * latency) * 1e6,
        measured=link.curve.latency_s * 1e6,
        unit="us",
        sigma=0.1,
        num_measured=1,
        note=f"the smallest {link.op} over {link.ranks} ranks",
    )


# --- training steps ------------------------------------------------------------------------------


def _held_out(
    result: CalibResult, assumed: Cluster, calibrated: Cluster, eff: Efficiency
) -> HeldOut | None:
    """The held-out step with its two forecasts; None if it was not measured."""
    row = next(iter(result.rows("holdout")), None)
    if row is None:
        return None
    before, after = (float(forecast(row, c, eff).step_s.item()) for c in (assumed, calibrated))
    return HeldOut(num_layers=_layers(row), measured_s=row.t_med_s, before_s=before, after_s=after)


def _elementwise(result: CalibResult, cluster: Cluster, eff: Efficiency) -> Measured | None:
    """Time of a layer's elementwise operators over the forecast: what a layer takes in addition to
    matmuls and attention, by the difference of two models. None without two models."""
    rows = sorted((r for r in result.rows("layers") if r.mode == "fwdbwd"), key=_layers)
    if len(rows) < 2 or _layers(rows[0]) == _layers(rows[-1]):
        return None
    few, many = rows[0], rows[-1]
    between = _layers(many) - _layers(few)
    measured_s = (many.t_med_s - few.t_med_s) / between
    if measured_s <= 0:
        return None

    def layer_s(factor: float) -> float:
        slower = replace(cluster, elementwise_factor=cluster.elementwise_factor * factor)
        short, long = (_layers_s(forecast(row, slower, eff)) for row in (few, many))
        return (long - short) / between

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
    work = Workload(
        model=Transformer(
            num_layers=p["num_layers"],
            hidden_size=p["hidden_size"],
            ffn_hidden_size=p["ffn_hidden_size"],
            num_attention_heads=p["num_attention_heads"],
            num_kv_heads=p["num_kv_heads"],
            head_dim=p["head_dim"],
            vocab_size=p["vocab_size"],
        ),
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


def _layers_s(forecast: Step) -> float:
    """Seconds of forward and backward of all layers."""
    inside = ("matmul", "attention", "memory_bound", "overhead")
    return float(sum(forecast.parts[name].item() for name in inside))

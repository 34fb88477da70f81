"""Constants of a machine from an import-result/1.

They are measured over assumed, joined with their priors as in runners/calibration/fit.py.

nccl-tests gives links, mamf-finder gives matmuls. Neither tool prints the spread of its samples,
so an error is assumed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from core.errors import FactError
from core.machine.accelerator import Accelerator
from core.machine.efficiency import Efficiency
from core.numeric import as_float
from core.time import message_curve
from runners.calibration import fit_compute
from runners.calibration.fit import (
    LEAST_POINTS,
    LEAST_SIGMA,
    USED,
    Fitted,
    Fitting,
    Link,
    link_rates,
    machine_of,
)
from runners.calibration.fit_compute import OF_NORMAL
from runners.calibration.result import Row
from runners.calibration.validity import ROOF, Flag
from runners.imports.result import Collective, ImportResult, MatmulRate
from runners.imports.text import ImportFileError

# Deviation of the log of one rate between sessions, which neither tool prints: chosen as the drift
# that the gates of a calibration allow (runners/calibration/validity.py).
SESSION_SIGMA = 0.05
BEST_SIGMA = 0.1  # of a rate that is the best of many shapes: others do not reach it; chosen
LEAST_WIDE = 2  # messages that take several latencies: shorter ones do not show bandwidth
MOST_SHAPES = 48  # that a machine keeps; of more, the ones farthest apart
# Power of its size with which the time of a message grows, from the smallest to the largest of a
# table: with a latency of a quarter of the smallest time [H94] it is 0.8, and 1 without one.
LARGE_SLOPE = 0.8
NOT_RECORDED = (
    "Its tool recorded no clocks, no control operation and no spread: whether the machine was "
    "quiet and well is not known."
)
SWITCH_ADDS = (
    "The bus bandwidth is above what the link carries: the switch adds up (NVLS), which it does "
    "for all_reduce alone. All-gathers of FSDP and ZeRO do not get it."
)


def curve_points(table: Collective) -> Collective | None:
    """A table without wrong results, if it gives a curve: at least four sizes, two of them
    dominated by bandwidth, not latency, or all of them large."""
    table = table.model_copy(update={"points": [p for p in table.points if not p.wrong]})
    least = min((p.time_s for p in table.points), default=0.0)
    wide = sum(p.time_s >= message_curve.LATENCIES * least for p in table.points)
    if len(table.points) < LEAST_POINTS or (wide < LEAST_WIDE and not has_only_large(table)):
        return None
    return table


def has_only_large(table: Collective) -> bool:
    """Whether bandwidth decides the time of every message of a table, so that none shows the
    latency."""
    first, *_, last = sorted(table.points, key=lambda p: p.size_bytes)
    growth = math.log(last.time_s / first.time_s)
    return growth >= LARGE_SLOPE * math.log(last.size_bytes / first.size_bytes) > 0


def link(printed: Collective) -> Link | None:
    """The fit of a table; None if it gives no curve."""
    table = curve_points(printed)
    if table is None:
        return None
    only_large = has_only_large(table)
    return Link(
        op=table.op,
        group="node" if table.nodes == 1 else "all",
        ranks=table.ranks,
        nodes=table.nodes,
        bus_factor=table.bus_factor,
        curve=message_curve.fit(
            size_bytes=np.array([p.size_bytes for p in table.points]),
            time_s=np.array([p.time_s for p in table.points]),
            only_large=only_large,
        ),
        has_latency=not only_large,
    )


def links(tables: Sequence[Collective]) -> tuple[Link, ...]:
    """The fits of the tables that give a curve, in their order."""
    return tuple(fit for table in tables if (fit := link(table)) is not None)


def switch_adds(found: Sequence[Link], accelerator: Accelerator) -> bool:
    """Whether an all-reduce inside a node is faster than its link, as with a switch that adds
    up."""
    inside = [x.bus_bytes_per_s for x in found if x.nodes == 1 and x.op == USED]
    link = as_float(machine_of(accelerator).scale_up_bytes_per_s)
    return max(inside, default=0.0) > link


def flags(found: Sequence[Link], accelerator: Accelerator) -> tuple[Flag, ...]:
    """What the reader of an import should know."""
    notes = [Flag("imported", NOT_RECORDED)]
    if switch_adds(found, accelerator):
        notes.append(Flag("switch_adds", SWITCH_ADDS))
    return tuple(notes)


def fitted(result: ImportResult, accelerator: Accelerator, eff: Efficiency) -> Fitted:
    """Fit the constants of a document, like those of a calibration. `eff` is the generic software
    profile. ImportFileError if its figures cannot be from that accelerator."""
    fitting = Fitting(accelerator, SESSION_SIGMA)
    assumed, curves = fitting.assumed, links(result.collectives)
    try:
        for name, measured in link_rates(curves, assumed, eff).items():
            fitting.take(name, measured)
        if result.matmuls:
            _check_roof(result, accelerator)
            rows = [_row(x, result.matmul_dtype) for x in _spread_out(result.matmuls)]
            if result.matmul_dtype == "fp8":
                fitting.take("matmul_fp8", fit_compute.fp8(rows, assumed, eff))
            else:
                sigma = fitting.prior_sigma["matmul"]
                fitting.take_matmuls(
                    fit_compute.matmuls(
                        rows, assumed, eff, prior_sigma=sigma, least_sigma=LEAST_SIGMA
                    )
                )
    except FactError as e:
        raise ImportFileError(str(e)) from None
    return fitting.fitted(curves)


def _check_roof(result: ImportResult, accelerator: Accelerator) -> None:
    """Refuse matmuls that are faster than the datasheet."""
    peak = (
        accelerator.fp8_flops_per_s
        if result.matmul_dtype == "fp8"
        else accelerator.bf16_flops_per_s
    )
    best = max(x.flops_per_s for x in result.matmuls)
    if accelerator.vendor != "custom" and peak and best > ROOF * peak:
        raise ImportFileError(
            f"A matmul of {best / 1e12:,.0f} TFLOP/s is above the {peak / 1e12:,.0f} that the "
            f"datasheet of {result.accelerator} gives in {result.matmul_dtype}: it is of another "
            "accelerator."
        )


def _row(rate: MatmulRate, dtype: str | None) -> Row:
    """The fields of a row that the fit reads."""
    sigma = SESSION_SIGMA if rate.kind in ("median", "sustained") else BEST_SIGMA
    seconds = 2.0 * rate.m * rate.n * rate.k / rate.flops_per_s
    return Row.model_construct(
        probe="matmul",
        label=f"{rate.m}x{rate.n}x{rate.k}",
        params={"m": rate.m, "n": rate.n, "k": rate.k},
        dtype=dtype,
        t_med_s=seconds,
        rel_iqr=sigma * OF_NORMAL,
    )


def _spread_out(found: Sequence[MatmulRate]) -> list[MatmulRate]:
    """At most MOST_SHAPES: the fastest, then repeatedly the one farthest from those chosen."""
    if len(found) <= MOST_SHAPES:
        return list(found)
    at = np.log(np.array([(x.m, x.n, x.k) for x in found], dtype=float))
    taken = [int(np.argmax([x.flops_per_s for x in found]))]
    far = np.full(len(found), np.inf)
    while len(taken) < MOST_SHAPES:
        far = np.minimum(far, np.sum(np.square(at - at[taken[-1]]), axis=1))
        taken.append(int(np.argmax(far)))
    return [found[i] for i in taken]

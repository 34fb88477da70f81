"""Forecast published runs: throughput and memory with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from app.accuracy.columns import Columns, columns
from core.evidence import uncertainty
from core.evidence.inference import total
from core.memory.memory import peak_bytes, unreported_bytes
from core.numeric import Numeric
from core.time.step import step
from core.units import GIB
from hardware.measured import RunInputs
from hardware.measured_model import ModelFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictions:
    """Forecasts as columns aligned with the inputs; NaN for refused rows."""

    tokens_per_s_per_gpu_p10: NDArray[np.float64]
    tokens_per_s_per_gpu_p50: NDArray[np.float64]
    tokens_per_s_per_gpu_p90: NDArray[np.float64]
    peak_memory_gib_p10: NDArray[np.float64]
    peak_memory_gib: NDArray[np.float64]  # P50
    peak_memory_gib_p90: NDArray[np.float64]
    probability_oom: NDArray[np.float64]
    ok: NDArray[np.bool_]
    reason: NDArray[np.object_]  # '' where ok


NUMBERS = tuple(f.name for f in fields(Predictions) if f.name not in ("ok", "reason"))


def predict(inputs: RunInputs, models: Mapping[str, ModelFacts]) -> Predictions:
    """Forecast every row. Rows that cannot be forecast get a reason; the others are unaffected."""
    found, kept, reasons = columns(inputs, models)
    result = {name: np.full(len(inputs), np.nan) for name in NUMBERS}
    if found is not None:
        for name, column in _forecast(found).items():
            result[name][kept] = column
    p50 = result["tokens_per_s_per_gpu_p50"]
    ok = np.isfinite(p50) & (p50 > 0)
    reasons[(reasons == "") & ~ok] = "The accelerator lacks the precision of this run."
    return Predictions(**result, ok=ok, reason=reasons)


def tokens_per_s_per_gpu(found: Columns) -> NDArray[np.float64]:
    """P50 throughput of every row; NaN where the accelerator lacks the precision."""
    with np.errstate(invalid="ignore"):
        one = step(found.work, found.layouts, found.cluster, found.efficiency)
    return one.tokens_per_s_per_gpu


def reported_memory_bytes(found: Columns) -> NDArray[np.float64]:
    """P50 of the peak memory as the stack itself reports it."""
    peak = _peak_memory_bytes(found)
    return peak - unreported_bytes(found.layouts, found.cluster, found.efficiency, peak=peak)


def _peak_memory_bytes(found: Columns) -> NDArray[np.float64]:
    return total(peak_bytes(found.work, found.layouts, found.cluster, found.efficiency))


def _forecast(found: Columns) -> dict[str, Numeric]:
    """The numbers of `Predictions`. Memory is what the stack reports, except for running out."""
    p50, gib = tokens_per_s_per_gpu(found), reported_memory_bytes(found) / GIB
    sigma = uncertainty.throughput_sigma(found.efficiency, found.circumstances)
    memory_sigma = uncertainty.memory_sigma(found.efficiency, found.circumstances)
    return {
        "tokens_per_s_per_gpu_p10": uncertainty.p10(p50, sigma),
        "tokens_per_s_per_gpu_p50": p50,
        "tokens_per_s_per_gpu_p90": uncertainty.p90(p50, sigma),
        "peak_memory_gib_p10": uncertainty.p10(gib, memory_sigma),
        "peak_memory_gib": gib,
        "peak_memory_gib_p90": uncertainty.p90(gib, memory_sigma),
        "probability_oom": uncertainty.probability_above(
            found.cluster.memory_bytes, p50=_peak_memory_bytes(found), sigma=memory_sigma
        ),
    }

"""Forecast published runs: throughput and memory with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.accuracy.columns import Columns, columns
from core.evidence import uncertainty
from core.evidence.inference import total
from core.memory.memory import peak_bytes, unreported_bytes
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


def predict(inputs: RunInputs, models: Mapping[str, ModelFacts]) -> Predictions:
    """Forecast every row. Rows that cannot be forecast get a reason; the others are unaffected."""
    found, kept, reasons = columns(inputs, models)
    names = ("p10", "p50", "p90", "gib_p10", "gib", "gib_p90", "oom")
    result = {name: np.full(len(inputs), np.nan) for name in names}
    if found is not None:
        for name, column in _forecast(found).items():
            result[name][kept] = column
    finite = np.isfinite(result["p50"]) & (result["p50"] > 0)
    unknown = (reasons == "") & ~finite
    reasons[unknown] = "The accelerator lacks the precision of this run."
    return Predictions(
        tokens_per_s_per_gpu_p10=result["p10"],
        tokens_per_s_per_gpu_p50=result["p50"],
        tokens_per_s_per_gpu_p90=result["p90"],
        peak_memory_gib_p10=result["gib_p10"],
        peak_memory_gib=result["gib"],
        peak_memory_gib_p90=result["gib_p90"],
        probability_oom=result["oom"],
        ok=finite,
        reason=reasons,
    )


def tokens_per_s_per_gpu(found: Columns) -> NDArray[np.float64]:
    """P50 throughput of every row; NaN where the accelerator lacks the precision."""
    with np.errstate(invalid="ignore"):
        one = step(found.work, found.layouts, found.cluster, found.efficiency)
    return one.tokens_per_s_per_gpu


def peak_memory_bytes(found: Columns) -> NDArray[np.float64]:
    """P50 peak memory of every row."""
    return total(peak_bytes(found.work, found.layouts, found.cluster, found.efficiency))


def reported_memory_bytes(found: Columns) -> NDArray[np.float64]:
    """P50 of the peak memory as the stack itself reports it."""
    hidden = unreported_bytes(found.layouts, found.cluster, found.efficiency)
    return peak_memory_bytes(found) - hidden


def _forecast(found: Columns) -> dict[str, NDArray[np.float64]]:
    p50, need = tokens_per_s_per_gpu(found), peak_memory_bytes(found)
    shown = reported_memory_bytes(found)
    sigma = uncertainty.throughput_sigma(found.efficiency, found.circumstances)
    memory_sigma = uncertainty.memory_sigma(found.efficiency, found.circumstances)
    oom = uncertainty.probability_above(found.cluster.memory_bytes, p50=need, sigma=memory_sigma)
    return {
        "p10": np.asarray(uncertainty.p10(p50, sigma)),
        "p50": p50,
        "p90": np.asarray(uncertainty.p90(p50, sigma)),
        "gib_p10": np.asarray(uncertainty.p10(shown / GIB, memory_sigma)),
        "gib": shown / GIB,
        "gib_p90": np.asarray(uncertainty.p90(shown / GIB, memory_sigma)),
        "oom": np.asarray(oom),
    }

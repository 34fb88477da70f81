"""A log compared with its forecast, in sentences."""

from __future__ import annotations

from app.document import format as fmt
from app.imports.log import ANCHOR, Comparison
from app.imports.words import rate, steady_sentences


def compare_sentences(found: Comparison) -> list[str]:
    """How well the forecast did, most important first."""
    measured, run = found.measured, found.run
    forecast = run.forecast
    where = "inside" if found.is_inside else (
        "below" if measured.tokens_per_s_per_gpu < forecast.p10 else "above"
    )  # fmt: skip
    said = [
        f"Measured {rate(measured.tokens_per_s_per_gpu)} tokens/s per GPU, forecast "
        f"{rate(forecast.p50)} (P10 to P90 {rate(forecast.p10)} to {rate(forecast.p90)}): measured "
        f"over forecast is {found.ratio:.3f}, {where} the interval.",
        f"The forecast is of {found.scenario.model} on {fmt.count(run.num_gpus)} x "
        f"{run.accelerator}: {fmt.layout(run.layout)}.",
    ]
    if not found.is_named:
        said.append("No layout was named: it is the best one. --layout names the one that was run.")
    said += steady_sentences(measured)
    return [*said, *found.notes]


def anchor_sentences(found: Comparison) -> list[str]:
    """How to anchor every forecast to the measurement."""
    if found.anchored is None:
        return [f"It cannot become the anchor of a forecast: {found.refused}"]
    return ["With these options every forecast of this model follows the measurement:"]


def anchor_options(found: Comparison) -> list[str]:
    """The command-line options of the anchor; empty if there is none."""
    if found.anchored is None:
        return []
    values = {name: getattr(found.anchored, name) for name in ANCHOR}
    return [
        f"--set {name}={value:.6g}" if isinstance(value, float) else f'--set "{name}={value}"'
        for name, value in values.items()
        if value
    ]

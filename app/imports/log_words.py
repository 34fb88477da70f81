"""A log compared with its forecast, in sentences and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from app.document import format as fmt
from app.imports.as_json import steady_json
from app.imports.log import ANCHOR, Comparison
from app.imports.words import rate, steady_sentences
from app.scenario.layout import layout_text
from app.scenario.link_query import link_query
from pricing.offers import snapshot

SCHEMA_VERSION = 1


def compare_sentences(found: Comparison) -> list[str]:
    """How well the forecast did, most important first."""
    measured, run = found.measured, found.run
    forecast = run.forecast
    where = "inside" if found.is_inside else (
        "below" if measured.tokens_per_s_per_gpu < forecast.p10 else "above"
    )  # fmt: skip
    sentences = [
        f"Measured {rate(measured.tokens_per_s_per_gpu)} tokens/s per GPU, forecast "
        f"{rate(forecast.p50)} (P10 to P90 {rate(forecast.p10)} to {rate(forecast.p90)}): measured "
        f"over forecast is {found.ratio:.3f}, {where} the interval.",
        f"The forecast is of {found.scenario.model} on {fmt.count(run.num_gpus)} x "
        f"{run.accelerator}: {fmt.layout(run.layout)}.",
    ]
    if not found.is_named:
        sentences.append(
            "No layout was named: it is the best one. --layout names the one that was run."
        )
    return [*sentences, *steady_sentences(measured), *found.notes]


def anchor_sentences(found: Comparison) -> list[str]:
    """How to anchor every forecast to the measurement."""
    if found.anchored is None:
        return [f"It cannot become the anchor of a forecast: {found.refused}"]
    return ["With these options every forecast of this model follows the measurement:"]


def anchor_fields(found: Comparison) -> dict[str, Any]:
    """The fields of the scenario that hold the anchor; empty if there is none."""
    return {name: getattr(found.anchored, name) for name in ANCHOR} if found.anchored else {}


def anchor_options(found: Comparison) -> list[str]:
    """The command-line options of the anchor."""
    return [
        f"--set {name}={value:.6g}" if isinstance(value, float) else f'--set "{name}={value}"'
        for name, value in anchor_fields(found).items()
        if value
    ]


def compare_json(found: Comparison, row: dict[str, str] | None, done: str) -> dict[str, Any]:
    """The document of `runcast compare --json`; values that could not be computed are null."""
    asked, run = found.scenario, found.run
    return {
        "schema_version": SCHEMA_VERSION,
        "link": link_query(asked, snapshot(asked.prices).id),
        "sentences": compare_sentences(found),
        "file": found.text.name,
        "source_sha256": found.text.sha256,
        "plan": {
            "id": run.plan_id or None,
            "accelerator": run.accelerator,
            "num_gpus": run.num_gpus,
            "layout": layout_text(run.layout),
            "named": found.is_named,
            "fits": run.fits,
        },
        "forecast_tokens_per_s_per_gpu": asdict(run.forecast),
        "measured": steady_json(found.measured),
        "ratio": found.ratio,
        "inside_interval": found.is_inside,
        "anchor": {"fields": anchor_fields(found), "link": found.link} if found.anchored else None,
        "anchor_refused": found.refused or None,
        "measured_run": row,
        "appended": done or None,
    }

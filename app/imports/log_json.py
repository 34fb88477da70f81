"""A compared log as JSON: the keys that docs/imports.md documents. Add, never rename."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from app.imports.as_json import steady_json
from app.imports.log import ANCHOR, Comparison
from app.imports.log_words import compare_sentences
from app.scenario.layout import layout_text
from app.scenario.link_query import link_query
from pricing.offers import snapshot

SCHEMA_VERSION = 1


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
        "anchor": None
        if found.anchored is None
        else {
            "fields": {name: getattr(found.anchored, name) for name in ANCHOR},
            "link": found.link,
        },
        "anchor_refused": found.refused or None,
        "measured_run": row,
        "appended": done or None,
    }

"""Calibrations as JSON: every key is documented in docs/calibration.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from app.calibration.added import Added
from app.calibration.words import constant_name
from app.forecast.calibration_files import Kept
from app.forecast.calibrations import Calibration
from runners.calibration.fit_links import Link
from runners.calibration.validity import Judged, slow_nodes

SCHEMA_VERSION = 1


def kept_json(kept: Kept, stale: tuple[str, ...] = ()) -> dict[str, Any]:
    """One result of the list; fields that a damaged file cannot provide are null."""
    o = kept.origin
    software = {} if o is None else o.software
    return {
        "id": kept.id,
        "accelerator": kept.accelerator or None,
        "imported_from": o.imported_from if o else None,
        "device": (o.device or None) if o else None,
        "num_gpus": o.num_gpus if o else None,
        "num_nodes": o.num_nodes if o else None,
        "host": o.host if o else None,
        "measured_at": o.measured_at if o else None,
        "torch": software.get("torch"),
        "cuda": software.get("CUDA"),
        "hip": software.get("ROCm"),
        "driver": software.get("driver"),
        "nccl": software.get("NCCL"),
        "stack": (o.measured_with or None) if o else None,
        "software_date": (o.software_date or None) if o else None,
        "problem": kept.problem or None,
        "stale": list(stale),
        "note": kept.note,
    }


def listed_json(
    found: Iterable[Kept], stale: Mapping[str, tuple[str, ...]], sentence: str
) -> dict[str, Any]:
    """The output of `runcast calibrations list --json`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "calibrations": [kept_json(k, stale.get(k.id, ())) for k in found],
        "index_problem": sentence or None,
    }


def added_json(added: Added) -> dict[str, Any]:
    """The output of `runcast calibrations add --json`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "calibration": kept_json(added.kept),
        "is_new": added.is_new,
        **_judged(added.judged),
        "sentences": list(added.sentences),
    }


def shown_json(kept: Kept, c: Calibration, stale: tuple[str, ...]) -> dict[str, Any]:
    """The output of `runcast calibrations show --json`."""
    measured, document, f = c.measured, c.imported, c.fitted
    step = f.held_out
    return {
        "schema_version": SCHEMA_VERSION,
        "calibration": kept_json(kept, stale),
        **_judged(c.judged),
        "control_drift": c.judged.drift,
        "constants": [
            {
                "name": x.name,
                "label": constant_name(x.name),
                "unit": x.unit,
                "assumed": x.assumed,
                "measured": x.measured,
                "factor": x.factor,
                "p10": x.low,
                "p90": x.high,
                "num_measured": x.num_measured,
                "leave_one_out_error": x.left_out_error,
                "source": c.origin.label,
                "what": x.note,
            }
            for x in f.constants
        ],
        "missing": list(f.missing),
        "held_out": None if step is None else {
            "num_layers": step.num_layers, "measured_s": step.measured_s,
            "before_s": step.before_s, "after_s": step.after_s,
            "before_ratio": step.before, "after_ratio": step.after,
        },
        "links": [_link(x) for x in f.links],
        "checkpoint_bytes_per_s": f.checkpoint_bytes_per_s,
        "slow_nodes": [
            {"index": i, "node": measured.nodes[i].host, "time_ratio": ratio}
            for i, ratio in slow_nodes(measured).items()
        ] if measured else [],
        "skipped": [s.model_dump() for s in measured.skipped] if measured else [],
        "provenance": (
            measured.provenance.model_dump(exclude={"topology"}) if measured else None
        ),
        "imported": (
            document.model_dump(by_alias=True, exclude={"collectives", "matmuls"})
            if document else None
        ),
    }  # fmt: skip


def _judged(judged: Judged) -> dict[str, Any]:
    return {
        "status": judged.status,
        "flags": [
            {"code": f.code, "severity": f.severity, "sentence": f.sentence} for f in judged.flags
        ],
    }


def _link(x: Link) -> dict[str, Any]:
    c = x.curve
    return {
        "op": x.op,
        "group": x.group,
        "ranks": x.ranks,
        "nodes": x.nodes,
        "bus_bytes_per_s": x.bus_bytes_per_s,
        "bus_bytes_per_s_p5": c.bytes_per_s_low * x.bus_factor,
        "bus_bytes_per_s_p95": c.bytes_per_s_high * x.bus_factor,
        "latency_s": c.latency_s,
        "leave_one_out_error": c.left_out_error,
        "points": [
            {"size_bytes": float(b), "time_s": float(t), "spike": bool(s)}
            for b, t, s in zip(c.size_bytes, c.time_s, c.spikes, strict=True)
        ],
    }

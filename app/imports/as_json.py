"""An imported file as JSON: the keys that docs/imports.md documents. Add, never rename."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from app.calibration.added import Added
from app.imports.file import Imported
from app.imports.words import import_sentences
from runners.imports.mamf import Mamf
from runners.imports.nccl_tests import Table
from runners.imports.steps import Steady

SCHEMA_VERSION = 1


def import_json(found: Imported, kept: Added | None = None) -> dict[str, Any]:
    """The document of `runcast import --json`; values that the file lacks are null."""
    return {
        "schema_version": SCHEMA_VERSION,
        "format": found.format,
        "file": found.file,
        "source_sha256": found.sha256,
        "source_bytes": found.num_bytes,
        "accelerator": found.accelerator,
        "accelerator_from": found.accelerator and ("told" if found.is_given else "file"),
        "sentences": import_sentences(found),
        "collectives": [_table(found, t) for t in found.tables],
        "matmuls": None if found.mamf is None else _matmuls(found.mamf),
        "log": None if found.steady is None else steady_json(found.steady),
        "profile": None if found.profile is None else asdict(found.profile),
        "constants": [asdict(c) for c in found.constants],
        "kept": kept and {
            "id": kept.calibration.id, "is_new": kept.is_new, "sentences": list(kept.sentences),
        },
    }  # fmt: skip


def _table(found: Imported, table: Table) -> dict[str, Any]:
    link = found.link_of(table)
    curve = None if link is None else link.curve
    factor = table.bus_factor
    return {
        "op": table.op,
        "ranks": table.ranks,
        "nodes": table.nodes,
        "device": table.device or None,
        "num_wrong": sum(1 for p in table.points if p.wrong),
        "num_unchecked": sum(1 for p in table.points if p.wrong is None),
        "latency_us": None if curve is None else curve.latency_s * 1e6,
        "bus_gb_per_s": None if curve is None else curve.bytes_per_s * factor / 1e9,
        "bus_gb_per_s_low": None if curve is None else curve.bytes_per_s_low * factor / 1e9,
        "bus_gb_per_s_high": None if curve is None else curve.bytes_per_s_high * factor / 1e9,
        "spikes_bytes": found.disturbed_bytes(table),
        "left_out_error": None if curve is None else curve.left_out_error,
        "points": [
            {
                "size_bytes": p.size_bytes,
                "time_us": p.time_s * 1e6,
                "alg_gb_per_s": p.alg_gb_per_s,
                "bus_gb_per_s": p.bus_gb_per_s,
                "in_place_us": None if p.in_place_s is None else p.in_place_s * 1e6,
                "wrong": p.wrong,
            }
            for p in table.points
        ],
    }


def _matmuls(one: Mamf) -> dict[str, Any]:
    return {
        "dtype": one.dtype or None,
        "device": one.device or None,
        "started": one.started or None,
        "benchmark_version": one.version or None,
        "software": one.software,
        "best": [
            {"name": name, "m": x.m, "n": x.n, "k": x.k, "tflop_per_s": x.flops_per_s / 1e12}
            for name, x in one.best
        ],
        "shapes": [
            {"m": x.m, "n": x.n, "k": x.k, "tflop_per_s": x.flops_per_s / 1e12} for x in one.shapes
        ],
    }


def steady_json(found: Steady) -> dict[str, Any]:
    """The steady state of a log."""
    return {
        "format": found.format,
        "tokens_per_s_per_gpu": found.tokens_per_s_per_gpu,
        "tokens_per_s_per_gpu_p10": found.low,
        "tokens_per_s_per_gpu_p90": found.high,
        "tokens_per_s": found.tokens_per_s,
        "step_s": found.step_s,
        "loss": found.loss,
        "num_steps": found.num_steps,
        "num_left_out": found.num_left_out,
        "num_starts": found.num_starts,
        "num_ranks": found.num_ranks,
        "unit": found.unit,
        "device": found.device or None,
        "peak_memory_gib": found.peak_memory_gib,
        "known": dict(found.known),
        "notes": list(found.notes),
    }

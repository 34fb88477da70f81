"""The report of `runcast validate` as JSON values, and its forecasts as a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np

from app.accuracy import regret
from app.accuracy.blind import examinations
from app.accuracy.choices import regrets_of
from app.accuracy.section_scores import Section, class_coverages, families
from app.accuracy.words import NOTE
from app.document.escape import safe_cell
from core.evidence.accuracy import FITS_AT_MOST, TIGHT_AT_MOST, PairAccuracy
from core.evidence.residual import SMALLEST_SHIFT
from hardware.cross_validation import choice_figures

if TYPE_CHECKING:
    from app.accuracy.predict import Predictions
    from app.accuracy.rows import Offence
    from app.accuracy.validate import Report

JSON_SCHEMA = "runcast-validate/1"
OUT_COLUMNS = (
    "run_id", "predicted_tokens_per_s_per_gpu", "p10", "p90", "predicted_peak_memory_gib",
    "probability_oom", "status", "reason", "line", "moved", "nearest_distance", "nearby",
    "uncorrected_tokens_per_s_per_gpu", "needed_memory_gib", "link",
)  # fmt: skip
IDS_SHOWN = 5
WORST_FAMILIES = 20


def report_json(report: Report) -> dict[str, Any]:
    """The report as JSON values.

    The sections throughput, memory, pairs and baseline each have n, refused, median_ape,
    mean_ape, p90_ape, within_20, coverage_80 (null where it has no meaning) and `by`
    accelerator, precision, architecture, framework, task and stack_profile. Figures whose name
    starts with weighted_ count each configuration once. `regret` has the choices among these rows
    (`rows`, `worst_groups`) and those of the shipped rows by fits that had not seen them.
    `blind` has the scores of shipped runs as they were forecast before anybody had seen them.
    `nearby` has how many forecasts measured runs moved, by how much, and how far the nearest is.
    """
    pairs, chosen = report.pairs, regrets_of(report)
    return {
        "schema": JSON_SCHEMA,
        "runcast": report.runcast_version,
        "date": report.date,
        "note": NOTE,
        "rows": {
            "total": len(report.runs),
            "predicted": len(report.runs) - report.num_refused,
            "refused": report.num_refused,
            "refused_reasons": _reasons_json(report.reasons(has_forecast=False)),
            "used": report.num_used,
            "named": len(report.offences),
            "unscored_reasons": _reasons_json(report.reasons(has_forecast=True)),
            "notes": list(report.file_notes),
        },
        "throughput": {
            **_section_json(report.throughput),
            "coverage_by_class": _classes_json(report.throughput),
            "worst_families": _families_json(report.throughput),
        },
        "memory": {
            **_section_json(report.memory),
            "oom": {
                **asdict(report.oom),
                "fits_at_most": FITS_AT_MOST,
                "tight_at_most": TIGHT_AT_MOST,
            },
        },
        "pairs": {
            **_pair_json(pairs.overall),
            "left_out": dict(pairs.left_out),
            "memory": _pair_json(pairs.memory),
            "by": {
                name: {label: _pair_json(part) for label, part in parts.items()}
                for name, parts in pairs.by.items()
            },
        },
        "baseline": _section_json(report.baseline),
        "regret": {
            "rows": regret.as_json(regret.of_rows(chosen)),
            "worst_groups": regret.worst_json(regret.worst_groups(chosen)),
            "shipped_rows_unseen": regret.as_json(regret.of_unseen(choice_figures())),
        },
        "blind": [
            {"examination": e.name, "publications": e.publications, **asdict(e.accuracy)}
            for e in examinations()
        ],
        "nearby": nearby_json(report.predictions),
        "model_notes": {key: list(notes) for key, notes in report.model_notes.items()},
    }


def _reasons_json(reasons: Iterable[tuple[str, list[Offence]]]) -> list[dict[str, Any]]:
    """Each reason with its count, its lines and the first few run ids."""
    return [
        {
            "reason": reason,
            "count": len(rows),
            "run_ids": [row.run_id for row in rows[:IDS_SHOWN]],
            "lines": [row.line for row in rows],
        }
        for reason, rows in reasons
    ]


def _section_json(section: Section) -> dict[str, Any]:
    return {
        **asdict(section.overall),
        "left_out": dict(section.left_out),
        "by": {
            name: {label: asdict(part) for label, part in parts.items()}
            for name, parts in section.by.items()
        },
    }


def _classes_json(section: Section) -> list[dict[str, Any]]:
    measures = ("n", "coverage_80", "coverage_low", "coverage_high")
    return [
        {"by": c.by, "label": c.label, **_picked(c.accuracy, measures), "verdict": c.verdict}
        for c in class_coverages(section)
    ]


def _families_json(section: Section) -> list[dict[str, Any]]:
    names, measures = ("source", "model", "accelerator"), ("n", "median_ape", "bias")
    worst = families(section)[:WORST_FAMILIES]
    return [{**_picked(f, names), **_picked(f.accuracy, measures)} for f in worst]


def _picked(record: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _pair_json(part: PairAccuracy) -> dict[str, Any]:
    return {**asdict(part), "coverage_80": None}


def write_out(report: Report, path: Path) -> None:
    """Write one line per run, in the order of the input; refused runs have blank numbers."""
    p = report.predictions
    numbers = (
        p.tokens_per_s_per_gpu_p50,
        p.tokens_per_s_per_gpu_p10,
        p.tokens_per_s_per_gpu_p90,
        p.peak_memory_gib,
        p.probability_oom,
    )
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(OUT_COLUMNS)
        for i, run_id in enumerate(report.runs.inputs.run_id):
            cells = [f"{column[i]:.6g}" if p.ok[i] else "" for column in numbers]
            status = "ok" if p.ok[i] else "refused"
            texts = (safe_cell(str(run_id)), *cells, status, safe_cell(str(p.reason[i])))
            writer.writerow([*texts, report.runs.line[i], *_nearby_cells(p, i), *_link_cells(p, i)])


def _link_cells(p: Predictions, i: int) -> tuple[str, str, str]:
    """The forecast of a run's scenario as `runcast estimate` prints it, and its link."""
    if not p.ok[i]:
        return "", "", ""
    link = urlencode(p.scenarios[i].to_query(), safe=",/:")
    numbers = (p.uncorrected_tokens_per_s_per_gpu[i], p.needed_memory_gib[i])
    return f"{numbers[0]:.6g}", f"{numbers[1]:.6g}", link


def _nearby_cells(p: Predictions, i: int) -> tuple[str, str, str]:
    """By what share measured runs moved a forecast, how far the nearest is, and that in words."""
    if p.nearby is None or not p.ok[i]:
        return "", "", ""
    moved, distance = np.expm1(p.nearby.shift[i]), p.nearby.distance[i]
    return f"{moved:.4g}", f"{distance:.4g}", safe_cell(str(p.nearby.words[i]))


def nearby_json(p: Predictions) -> dict[str, Any] | None:
    """What measured runs did to the forecasts: shares and distances, as medians."""
    if p.nearby is None or not p.ok.any():
        return None
    shift, distance = p.nearby.shift[p.ok], p.nearby.distance[p.ok]
    moved = np.abs(shift) >= SMALLEST_SHIFT
    return {
        "forecasts": int(p.ok.sum()),
        "moved": int(moved.sum()),
        "moved_by_median": float(np.median(np.expm1(np.abs(shift[moved])))) if moved.any() else 0.0,
        "nearest_distance_median": float(np.median(distance)),
        "variance_explained_mean": float(np.mean(p.nearby.explained[p.ok])),
    }

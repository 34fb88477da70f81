"""Add, list and remove calibration results: one file per result, and an index in the store.

The file is authoritative. The index makes the result known to other tools and keeps its note. If
the store cannot be used, a sentence says why and everything else works.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

from app.forecast import calibration_files as files
from app.forecast import calibrations
from app.forecast.calibration_files import Kept
from app.forecast.calibration_origin import AnyResult, origin_of
from app.forecast.calibrations import Calibration
from app.forecast.machines import CUSTOM, CUSTOM_FIGURES, accelerator_of
from app.prices.over_time import store_or_sentence
from app.scenario.fields import fields_of
from core.errors import ScenarioError
from core.scenario import Scenario
from pricing.store import saved
from pricing.store.engine import StoreError
from runners.calibration.result import MAX_BYTES, ResultError
from runners.calibration.validity import Judged, judged
from runners.imports.result import ImportResult

NOTE_MAX = 200
NOTHING_TYPED = Scenario()


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """A result that was added."""

    kept: Kept
    judged: Judged
    is_new: bool
    sentences: tuple[str, ...]  # warnings, such as a missing index


def read_file(path: Path) -> bytes:
    """The content of a file; one that is too large to be a result is refused unread."""
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise ScenarioError(f"The result {str(path)[-100:]!r} {what}.")
    if (size := path.stat().st_size) > MAX_BYTES:
        raise ResultError(
            f"The result has {size / 1e6:,.0f} MB; at most {MAX_BYTES / 1e6:.0f} MB are read."
        )
    return path.read_bytes()


def add(data: bytes, *, note: str = "", typed: Scenario = NOTHING_TYPED) -> Added:
    """Keep a result and index it; a RuncastError says why it cannot be used.

    `typed` has the figures of a custom accelerator. A result whose accelerator is not in the table
    is checked against them; without figures it is kept and checked when it is used.
    """
    return keep(files.parse_kept(data), note=note, typed=typed)


def keep(result: AnyResult, *, note: str = "", typed: Scenario = NOTHING_TYPED) -> Added:
    """Keep and index a result that is already parsed."""
    if len(note) > NOTE_MAX or not (note.isprintable() or not note):
        raise ScenarioError(f"A note has at most {NOTE_MAX} printable characters, on one line.")
    verdict = _believed(result, typed)
    is_new = not files.has(files.id_of(result))
    name = files.keep(result)
    kept = Kept(id=name, origin=origin_of(result), note=note)
    sentences = [_indexed(kept)]
    if kept.accelerator == CUSTOM:
        sentences.append(
            "It names no accelerator: it is used for gpu=custom, with typed-in figures."
        )
    return Added(kept=kept, judged=verdict, is_new=is_new, sentences=tuple(filter(None, sentences)))


def _believed(result: AnyResult, typed: Scenario) -> Judged:
    """The verdict on a usable result; raises ScenarioError if it is not usable."""
    accelerator = origin_of(result).accelerator
    if isinstance(result, ImportResult) or accelerator != CUSTOM or has_figures(typed):
        return calibrations.learned(result, accelerator_of(accelerator, typed)).judged
    verdict = judged(result, peak_flops_by_dtype={}, memory_bandwidth=None)
    if not verdict.is_usable:
        raise ScenarioError(f"The calibration is refused: {verdict.refusal()}")
    return verdict


def has_figures(scenario: Scenario) -> bool:
    """Whether a scenario has the figures needed for a custom accelerator."""
    return all(getattr(scenario, f) is not None for f in CUSTOM_FIGURES)


def remove(name: str) -> tuple[str, ...]:
    """Delete a result and its row in the index; returns sentences on what failed."""
    files.remove(name)
    store, sentence = store_or_sentence()
    if store is not None:
        try:
            saved.forget_calibration(store, name)
        except StoreError as e:
            sentence = str(e)
    return (f"It is still in the index: {sentence}",) if sentence else ()


def listed() -> tuple[list[Kept], str]:
    """All results, and a sentence on why their notes cannot be read.

    Newest first, then those without a date, then damaged ones.
    """
    indexed, sentence = _index()
    found = [files.kept_of(name, indexed.get(name, "")) for name in files.kept()]
    found.sort(key=lambda k: (not k.problem, k.measured_on or dt.date.min, k.id), reverse=True)
    return found, sentence


def learned(kept: Kept, scenario: Scenario) -> Calibration:
    """The calibration of a result's accelerator, or of the scenario's custom one."""
    if kept.problem:
        raise ScenarioError(kept.problem)
    return calibrations.of_id(kept.id, scenario)


def switched(scenario: Scenario, kept: Kept, *, used: bool) -> tuple[str, ...]:
    """The scenario's calibrations with `kept` on or off; at most one per accelerator."""
    others = [name for name in scenario.calibration if name != kept.id]
    if not used:
        return tuple(others)
    of = {k.id: k.accelerator for k in listed()[0]}
    return (*(name for name in others if of.get(name) != kept.accelerator), kept.id)


def typed_of(scenario: Scenario) -> Scenario:
    """A scenario with only the figures of its custom accelerator."""
    return Scenario.model_validate(
        {f: getattr(scenario, f) for f in fields_of(calibrations.CUSTOM_GROUP)}
    )


def _index() -> tuple[dict[str, str], str]:
    """Notes by id of the result, and a sentence on why they cannot be read."""
    store, sentence = store_or_sentence()
    if store is None:
        return {}, sentence
    try:
        return {c.id: c.note for c in saved.calibrations(store)}, ""
    except StoreError as e:
        return {}, str(e)


def _indexed(kept: Kept) -> str:
    """Put a result into the index; returns why that failed, '' if it did not."""
    store, sentence = store_or_sentence()
    o = kept.origin
    if store is None or o is None:
        return f"It is not in the index: {sentence}" if sentence else ""
    if o.measured_at is None:
        lost = " Its note is not kept: the index holds the notes." if kept.note else ""
        return f"It is not in the index, as it has no date.{lost}"
    at = dt.datetime.fromisoformat(o.measured_at.replace("Z", "+00:00"))
    if at.tzinfo is None:  # a date without a time
        at = at.replace(tzinfo=dt.UTC)
    row = saved.Calibration(
        id=kept.id,
        accelerator=kept.accelerator,
        num_gpus=o.num_gpus,
        machine=o.where,
        stack=o.stack,
        measured_at=at,
        path=str(files.folder() / f"{kept.id}.json"),
        note=kept.note,
    )
    try:
        saved.index_calibration(store, row)
    except StoreError as e:
        return f"It is not in the index: {e}"
    return ""

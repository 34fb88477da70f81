"""Add, list and remove calibrations: one file per result, and an index in the store.

The file is authoritative. The index makes the result known to other tools and keeps its note. If
the store cannot be used, a sentence says why and everything else works.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from pathlib import Path

from app.forecast import calibrations
from app.forecast.calibrations import AnyResult, Calibration
from app.forecast.machines import CUSTOM, CUSTOM_FIGURES, accelerator_of
from app.prices.over_time import store_or_sentence
from core.errors import ScenarioError
from core.scenario import Scenario
from pricing.store import saved
from pricing.store.engine import StoreError
from runners.calibration.result import MAX_BYTES, ResultError, too_large

NOTE_MAX = 200
NOTHING_TYPED = Scenario()


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """A calibration that was added."""

    calibration: Calibration
    is_new: bool
    sentences: tuple[str, ...]  # warnings, such as a missing index


def read_file(path: Path) -> bytes:
    """The content of a file; one that is too large to be a result is refused unread."""
    if not path.is_file():
        reason = "is a folder" if path.is_dir() else "does not exist"
        raise ScenarioError(f"The result {str(path)[-100:]!r} {reason}.")
    if (size := path.stat().st_size) > MAX_BYTES:
        raise ResultError(too_large(size))
    return path.read_bytes()


def add(data: bytes, *, note: str = "", typed: Scenario = NOTHING_TYPED) -> Added:
    """Keep a result and index it; a RuncastError says why it cannot be used.

    `typed` has the figures of a custom accelerator. A result whose accelerator is not in the table
    is checked against them; without figures it is kept and checked when it is used.
    """
    return keep(calibrations.parse(data), note=note, typed=typed)


def keep(result: AnyResult, *, note: str = "", typed: Scenario = NOTHING_TYPED) -> Added:
    """Keep and index a result that is already parsed."""
    if len(note) > NOTE_MAX or not (note.isprintable() or not note):
        raise ScenarioError(f"A note has at most {NOTE_MAX} printable characters, on one line.")
    calibration = replace(_checked(result, typed), note=note)
    is_new = not calibrations.has(calibration.id)
    calibrations.keep(result)
    sentences = [_index(calibration)]
    if calibration.accelerator == CUSTOM:
        sentences.append(
            "It names no accelerator: it is used for gpu=custom, with typed-in figures."
        )
    return Added(calibration=calibration, is_new=is_new, sentences=tuple(filter(None, sentences)))


def _checked(result: AnyResult, typed: Scenario) -> Calibration:
    """A usable calibration, fitted if its accelerator is known; ScenarioError if unusable."""
    calibration = calibrations.calibration_from(result)
    if calibration.measured and calibration.accelerator == CUSTOM and not has_figures(typed):
        return replace(calibration, judged=calibrations.judge(calibration.measured, None))
    return calibrations.learned(result, accelerator_of(calibration.accelerator, typed))


def has_figures(scenario: Scenario) -> bool:
    """Whether a scenario has the figures needed for a custom accelerator."""
    return all(getattr(scenario, f) is not None for f in CUSTOM_FIGURES)


def remove(name: str) -> tuple[str, ...]:
    """Delete a result and its row in the index; returns sentences on what failed."""
    calibrations.remove(name)
    store, sentence = store_or_sentence()
    if store is not None:
        try:
            saved.forget_calibration(store, name)
        except StoreError as e:
            sentence = str(e)
    return (f"It is still in the index: {sentence}",) if sentence else ()


def listed() -> tuple[list[Calibration], str]:
    """All calibrations, and a sentence on why their notes cannot be read.

    Newest first, then those without a date, then damaged files.
    """
    notes: dict[str, str] = {}
    store, sentence = store_or_sentence()
    if store is not None:
        try:
            notes = {c.id: c.note for c in saved.calibrations(store)}
        except StoreError as e:
            sentence = str(e)
    rows = [calibrations.read(name, notes.get(name, "")) for name in calibrations.ids()]
    rows.sort(key=lambda c: (not c.problem, c.measured_on or dt.date.min, c.id), reverse=True)
    return rows, sentence


def switched(scenario: Scenario, calibration: Calibration, *, used: bool) -> tuple[str, ...]:
    """The ids of a scenario with one calibration on or off; at most one per accelerator."""
    others = [name for name in scenario.calibration if name != calibration.id]
    if not used:
        return tuple(others)
    same = {c.id for c in listed()[0] if c.accelerator == calibration.accelerator}
    return (*(name for name in others if name not in same), calibration.id)


def _index(calibration: Calibration) -> str:
    """Put a calibration into the index; returns why that failed, '' if it did not."""
    store, sentence = store_or_sentence()
    if store is None:
        return f"It is not in the index: {sentence}" if sentence else ""
    if calibration.measured_at is None:
        lost = " Its note is not kept: the index holds the notes." if calibration.note else ""
        return f"It is not in the index, as it has no date.{lost}"
    at = dt.datetime.fromisoformat(calibration.measured_at.replace("Z", "+00:00"))
    row = saved.Calibration(
        id=calibration.id,
        accelerator=calibration.accelerator,
        num_gpus=calibration.num_gpus or 1,
        machine=calibration.place,
        stack=calibration.software_text,
        measured_at=at if at.tzinfo else at.replace(tzinfo=dt.UTC),
        path=str(calibrations.folder() / f"{calibration.id}.json"),
        note=calibration.note,
    )
    try:
        saved.index_calibration(store, row)
    except StoreError as e:
        return f"It is not in the index: {e}"
    return ""

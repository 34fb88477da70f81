"""Results of calibrations that are added, listed and removed: one file each, and an index of them.

The file is what counts. The store's index tells other tools of it and keeps notes: where the store
cannot be used, its sentence is said and everything else goes on.
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
    """A result that was kept."""

    kept: Kept
    judged: Judged
    is_new: bool
    sentences: tuple[str, ...]  # what else is to be said


def read_file(path: Path) -> bytes:
    """A file that somebody names, unread where it is too large to be a result."""
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise ScenarioError(f"The result {str(path)[-100:]!r} {what}.")
    if (size := path.stat().st_size) > MAX_BYTES:
        raise ResultError(
            f"The result has {size / 1e6:,.0f} MB; at most {MAX_BYTES / 1e6:.0f} MB are read."
        )
    return path.read_bytes()


def add(data: bytes, *, note: str = "", typed: Scenario = NOTHING_TYPED) -> Added:
    """Keep a result and index it. RuncastError with the reason where it cannot be believed.

    `typed` holds the figures of a custom accelerator, which a result without an accelerator of the
    table is held against; without them it is kept, and held against them where it is used.
    """
    return keep(files.parse_kept(data), note=note, typed=typed)


def keep(result: AnyResult, *, note: str = "", typed: Scenario = NOTHING_TYPED) -> Added:
    """`add`, of a document that was read already."""
    if len(note) > NOTE_MAX or not (note.isprintable() or not note):
        raise ScenarioError(f"A note has at most {NOTE_MAX} printable characters, on one line.")
    verdict = _believed(result, typed)
    is_new = not files.has(files.id_of(result))
    name = files.keep(result)
    kept = Kept(id=name, origin=origin_of(result), note=note)
    said = [_indexed(kept)]
    if kept.accelerator == CUSTOM:
        said.append("It names no accelerator: it is used for gpu=custom, with typed-in figures.")
    return Added(kept=kept, judged=verdict, is_new=is_new, sentences=tuple(s for s in said if s))


def _believed(result: AnyResult, typed: Scenario) -> Judged:
    """The verdict on a result that can be used; ScenarioError where it cannot."""
    accelerator = origin_of(result).accelerator
    if isinstance(result, ImportResult) or accelerator != CUSTOM or has_figures(typed):
        return calibrations.learned(result, accelerator_of(accelerator, typed)).judged
    verdict = judged(result, peak_flops_by_dtype={}, memory_bandwidth=None)
    if not verdict.is_usable:
        raise ScenarioError(f"The calibration is refused: {verdict.refusal()}")
    return verdict


def has_figures(scenario: Scenario) -> bool:
    """Whether a scenario types in what is needed of a custom accelerator."""
    return all(getattr(scenario, f) is not None for f in CUSTOM_FIGURES)


def remove(name: str) -> tuple[str, ...]:
    """Delete a result and its row of the index; sentences of what did not work."""
    files.remove(name)
    store, sentence = store_or_sentence()
    if store is not None:
        try:
            saved.forget_calibration(store, name)
        except StoreError as e:
            sentence = str(e)
    return (f"It is still in the index: {sentence}",) if sentence else ()


def listed() -> tuple[list[Kept], str]:
    """Every result, the newest first, then those without a day, damaged ones last; and what keeps
    the notes of the index away."""
    indexed, sentence = _index()
    found = [files.kept_of(name, indexed.get(name, "")) for name in files.kept()]
    order = sorted(
        found,
        key=lambda k: (not k.problem, k.measured_on or dt.date.min, k.id),
        reverse=True,
    )
    return order, sentence


def learned(kept: Kept, scenario: Scenario) -> Calibration:
    """What a kept result says of its accelerator, or of the scenario's custom one."""
    if kept.problem:
        raise ScenarioError(kept.problem)
    return calibrations.of_id(kept.id, scenario)


def switched(scenario: Scenario, kept: Kept, *, used: bool) -> tuple[str, ...]:
    """The scenario's calibrations with one more or one less; of an accelerator there is one."""
    others = [name for name in scenario.calibration if name != kept.id]
    if not used:
        return tuple(others)
    of = {k.id: k.accelerator for k in listed()[0]}
    return (*(name for name in others if of.get(name) != kept.accelerator), kept.id)


def typed_of(scenario: Scenario) -> Scenario:
    """Only what a scenario says of a custom accelerator."""
    return Scenario.model_validate(
        {f: getattr(scenario, f) for f in fields_of(calibrations.CUSTOM_GROUP)}
    )


def _index() -> tuple[dict[str, str], str]:
    """Notes by id."""
    store, sentence = store_or_sentence()
    if store is None:
        return {}, sentence
    try:
        return {c.id: c.note for c in saved.calibrations(store)}, ""
    except StoreError as e:
        return {}, str(e)


def _indexed(kept: Kept) -> str:
    """Put a result into the index; a sentence where that did not work."""
    store, sentence = store_or_sentence()
    o = kept.origin
    if store is None or o is None:
        return f"It is not in the index: {sentence}" if sentence else ""
    if o.measured_at is None:
        lost = " Its note is not kept, which stands there." if kept.note else ""
        return f"It is not in the index, as nobody said when it was measured.{lost}"
    at = dt.datetime.fromisoformat(o.measured_at.replace("Z", "+00:00"))
    if at.tzinfo is None:  # a day
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

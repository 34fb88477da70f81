"""One file of another tool: its format, its figures, and the constants of its accelerator."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.errors import ScenarioError, shown
from hardware import facts, names
from hardware.efficiency import GENERIC, efficiency
from runners.calibration.fit import Constant, Link
from runners.imports import constants, mamf, nccl_tests, profiler, training_log
from runners.imports.mamf import Mamf
from runners.imports.nccl_tests import Table
from runners.imports.profiler import Profile
from runners.imports.result import ImportResult
from runners.imports.steps import Facts, Steady
from runners.imports.text import ImportFileError, Text, read_bytes, text_of

FORMATS = ("nccl-tests", "mamf-finder", "log", "profile")
_DATE = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFile:
    """What a file holds: tables with their fits, or one of mamf, steady and profile."""

    format: str
    text: Text
    accelerator: str | None  # canonical name
    is_given: bool  # named by the user; otherwise by the file
    tables: tuple[tuple[Table, Link | None], ...] = ()  # None: too few sizes
    mamf: Mamf | None = None
    steady: Steady | None = None
    profile: Profile | None = None
    document: ImportResult | None = None  # the part that can be saved
    constants: tuple[Constant, ...] = ()
    notes: tuple[str, ...] = ()


def imported(
    path: Path, *, format_: str = "auto", gpu: str | None = None, op: str | None = None,
    ranks: int | None = None, nodes: int | None = None, run: Facts | None = None,
    per_gpu: bool | None = None, date: str | None = None,
) -> ImportedFile:  # fmt: skip
    """Read a file; what is None is left to the file. Raises ImportFileError or ScenarioError if it
    cannot be used."""
    if format_ not in ("auto", *FORMATS):
        raise ScenarioError(f"--format {shown(format_)} is none of auto, {', '.join(FORMATS)}.")
    if date is not None and not _DATE.fullmatch(date):
        raise ScenarioError(f"--date {shown(date)} is no date like 2026-03-31.")
    given = None if gpu is None else facts.accelerator(names.canonical(gpu)).name
    content = read_bytes(path)
    if format_ == "profile" or (format_ == "auto" and profiler.is_one(content)):
        sha256, profile = hashlib.sha256(content).hexdigest(), profiler.parse(content, path.name)
        text = Text(name=path.name, sha256=sha256, num_bytes=len(content), lines=())
        return _imported(text, "profile", given, "", profile=profile)
    text = text_of(content, path.name)
    kind = format_ if format_ != "auto" else _format_of(text.lines)
    if kind == "log":
        steady = training_log.steady_state(text.lines, run or {}, per_gpu=per_gpu)
        return _imported(text, kind, given, steady.device, steady=steady)
    if kind == "mamf-finder":
        benchmark = mamf.parse(text.lines)
        plain = _imported(text, kind, given, benchmark.device, mamf=benchmark)
        return _with_constants(plain, benchmark.result(date=date, **_origin(plain)))
    tables = nccl_tests.tables(text.lines, op=op, ranks=ranks, nodes=nodes)
    plain = _imported(text, kind, given, next((t.device for t in tables if t.device), ""))
    document = nccl_tests.result(tables, date=date, **_origin(plain))
    fits = tuple(map(constants.link, document.collectives))
    return _with_constants(replace(plain, tables=tuple(zip(tables, fits, strict=True))), document)


def _format_of(lines: Sequence[str]) -> str:
    if nccl_tests.is_one(lines):
        return "nccl-tests"
    if mamf.is_one(lines):
        return "mamf-finder"
    if training_log.is_training_log(lines):
        return "log"
    raise ImportFileError(
        "The file is in no format that is read: tables of nccl-tests, output of mamf-finder, a "
        f"training log ({', '.join(training_log.EXAMPLES)}), a trace of the torch profiler. "
        "--format says which it should be, and then what is missing."
    )


def _imported(
    text: Text, kind: str, given: str | None, device: str, **figures: Any
) -> ImportedFile:
    canonical = names.canonical_from_feed(device) if device else None
    named = canonical if canonical in facts.accelerators() else None
    if given is not None and named is not None and given != named:
        raise ScenarioError(f"--gpu is {given}, and the file is of {shown(device)}: {named}.")
    return ImportedFile(
        format=kind, text=text, accelerator=given or named, is_given=given is not None, **figures
    )


def _origin(plain: ImportedFile) -> dict[str, Any]:
    """What a result keeps of the file that it was made from."""
    return {
        "source_sha256": plain.text.sha256,
        "source_bytes": plain.text.num_bytes,
        "accelerator": plain.accelerator or "unknown",
    }


def _with_constants(plain: ImportedFile, document: ImportResult) -> ImportedFile:
    """The import with its constants added, if the accelerator is known."""
    if plain.accelerator is None:
        note = "The file does not say which accelerator it is of: --gpu names it."
        return replace(plain, notes=(note,))
    chip = facts.accelerator(plain.accelerator)
    fit = constants.fitted(document, chip, efficiency(GENERIC))
    notes = (constants.SWITCH_ADDS,) if constants.switch_adds(fit.links, chip) else ()
    return replace(plain, document=document, constants=fit.constants, notes=notes)

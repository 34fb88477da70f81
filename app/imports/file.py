"""One file of another tool: its format, its figures, and the constants of its accelerator."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from core.errors import ScenarioError, shown
from core.machine.accelerator import Accelerator
from hardware import facts, names
from hardware.efficiency import GENERIC, efficiency
from runners.calibration.fit import Constant, Link
from runners.imports import constants, mamf, nccl_tests, profiler, training_log
from runners.imports.mamf import Mamf
from runners.imports.nccl_tests import Table
from runners.imports.profiler import Profile
from runners.imports.result import ImportResult, of_mamf, of_tables
from runners.imports.steps import RunFacts, Steady
from runners.imports.text import ImportFileError, Text, read_bytes, text_of

DISTURBED = 1.1  # time over that of a larger message; reported from here up
FORMATS = ("nccl-tests", "mamf-finder", "log", "profile")
_DATE = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options given with the file; None leaves a value to the file."""

    format: str = "auto"
    gpu: str | None = None
    op: str | None = None
    ranks: int | None = None
    nodes: int | None = None
    run: RunFacts = field(default_factory=RunFacts)
    per_gpu: bool | None = None  # whether a plain log prints tokens/s per GPU
    date: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The content of a file. Exactly one of tables, mamf, steady and profile is set."""

    format: str
    file: str
    sha256: str
    num_bytes: int
    accelerator: str | None  # canonical name
    is_given: bool  # named by the user; otherwise by the file
    tables: tuple[Table, ...] = ()
    links: tuple[Link, ...] = ()  # from the tables with enough sizes
    mamf: Mamf | None = None
    steady: Steady | None = None
    profile: Profile | None = None
    document: ImportResult | None = None  # the part that can be saved
    constants: tuple[Constant, ...] = ()
    notes: tuple[str, ...] = ()

    def link_of(self, table: Table) -> Link | None:
        """The fit of a table; None if it has too few sizes."""
        same = (table.op, table.ranks, table.nodes, table.points[-1].size_bytes)
        for x in self.links:
            if (x.op, x.ranks, x.nodes, float(x.curve.size_bytes[-1])) == same:
                return x
        return None

    def disturbed_bytes(self, table: Table) -> list[float]:
        """Sizes that clearly took longer than larger ones: the fitted curve lowers them."""
        link = self.link_of(table)
        if link is None:
            return []
        taken = dict(zip(link.curve.size_bytes.tolist(), link.curve.time_s, strict=True))
        return [
            p.size_bytes
            for p in table.points
            if p.time_s > DISTURBED * taken.get(p.size_bytes, p.time_s)
        ]


def imported(path: Path, asked: Asked) -> Imported:
    """Read a file. Raises ImportFileError or ScenarioError if it cannot be used."""
    if asked.format not in ("auto", *FORMATS):
        raise ScenarioError(
            f"--format {shown(asked.format)} is none of auto, {', '.join(FORMATS)}."
        )
    if asked.date is not None and not _DATE.fullmatch(asked.date):
        raise ScenarioError(f"--date {shown(asked.date)} is no date like 2026-03-31.")
    given = None if asked.gpu is None else facts.accelerator(names.canonical(asked.gpu)).name
    content = read_bytes(path)
    if asked.format == "profile" or (asked.format == "auto" and profiler.is_one(content)):
        sha256, found = hashlib.sha256(content).hexdigest(), profiler.parse(content, path.name)
        text = Text(name=path.name, sha256=sha256, num_bytes=len(content), lines=())
        return _imported(text, "profile", given, "", profile=found)
    text = text_of(content, path.name)
    kind = asked.format if asked.format != "auto" else _format_of(text.lines)
    if kind == "log":
        steady = training_log.steady_state(text.lines, asked.run, per_gpu=asked.per_gpu)
        return _imported(text, kind, given, steady.device, steady=steady)
    if kind == "mamf-finder":
        one = mamf.parse(text.lines)
        plain = _imported(text, kind, given, one.device, mamf=one)
        return _learned(plain, of_mamf(one, **_origin(plain, asked)))
    tables = nccl_tests.tables(text.lines, op=asked.op, ranks=asked.ranks, nodes=asked.nodes)
    device = next((t.device for t in tables if t.device), "")
    plain = _imported(text, kind, given, device, tables=tables)
    made = of_tables(tables, **_origin(plain, asked))
    return _learned(plain, made, links=constants.links(made.collectives))


def _format_of(lines: Sequence[str]) -> str:
    if nccl_tests.is_one(lines):
        return "nccl-tests"
    if mamf.is_one(lines):
        return "mamf-finder"
    if training_log.is_one(lines):
        return "log"
    raise ImportFileError(
        "The file is in no format that is read: tables of nccl-tests, output of mamf-finder, a "
        f"training log ({', '.join(training_log.LOOKED_FOR)}), a trace of the torch profiler. "
        "--format says which it should be, and then what is missing."
    )


def _imported(text: Text, kind: str, given: str | None, device: str, **found: Any) -> Imported:
    named = _named_by(device)
    if given is not None and named is not None and given != named:
        raise ScenarioError(f"--gpu is {given}, and the file is of {shown(device)}: {named}.")
    return Imported(
        format=kind,
        file=text.name,
        sha256=text.sha256,
        num_bytes=text.num_bytes,
        accelerator=given or named,
        is_given=given is not None,
        **found,
    )


def _origin(plain: Imported, asked: Asked) -> dict[str, Any]:
    """What a result keeps of the file that it was made from."""
    return {
        "sha256": plain.sha256,
        "num_bytes": plain.num_bytes,
        "accelerator": plain.accelerator or "unknown",
        "date": asked.date,
    }


def _named_by(device: str) -> str | None:
    """The accelerator for a driver's name, if it is one that has figures."""
    found = names.canonical_from_feed(device) if device else None
    return found if found in facts.accelerators() else None


def _learned(plain: Imported, document: ImportResult, links: tuple[Link, ...] = ()) -> Imported:
    """The import with its constants added, if the accelerator is known."""
    if plain.accelerator is None:
        note = "The file does not say which accelerator it is of: --gpu names it."
        return replace(plain, links=links, notes=(*plain.notes, note))
    chip: Accelerator = facts.accelerator(plain.accelerator)
    found = constants.fitted(document, chip, efficiency(GENERIC))
    if constants.switch_adds(links, chip):
        plain = replace(plain, notes=(*plain.notes, constants.SWITCH_ADDS))
    return replace(plain, links=links, document=document, constants=found.constants)

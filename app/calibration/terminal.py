"""Calibrations on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd
from rich.table import Table

from app.calibration import document as tables
from app.calibration import words
from app.calibration.added import Added
from app.document.terminal import console, print_wrapped
from app.forecast.calibration_files import Kept
from app.forecast.calibrations import Calibration
from runners.calibration.validity import Judged


def print_listed(
    found: Iterable[Kept], stale: Mapping[str, tuple[str, ...]], sentence: str
) -> None:
    """Every result, the newest first, and why some are old or damaged."""
    out, kept = console(), list(found)
    if not kept:
        print_wrapped(
            out,
            "There is no calibration: `runcast calibrate` measures nodes, `runcast calibrations "
            "add FILE` keeps what it brings back.",
        )
    else:
        out.print(_table(tables.listed(kept, stale)))
    for k in kept:
        for said in (k.problem, *stale.get(k.id, ())):
            if said:
                print_wrapped(out, f"{k.id}: {said}", indent="   ", first=" - ")
    if sentence:
        print_wrapped(out, f"Notes are not shown: {sentence}")


def print_added(added: Added) -> None:
    """What was kept, and how it is used."""
    out, kept = console(), added.kept
    done = "Kept" if added.is_new else "It was here already:"
    print_wrapped(out, f"{done} {words.kept_label(kept)}.")
    _print_flags(added.judged)
    for sentence in added.sentences:
        print_wrapped(out, sentence)
    out.print(f"runcast plan ... --calibration {kept.id}", soft_wrap=True)


def print_shown(kept: Kept, c: Calibration, stale: tuple[str, ...]) -> None:
    """Everything that one result says."""
    out = console()
    print_wrapped(out, f"{words.kept_label(kept)}: {c.judged.status}.")
    if kept.note:
        print_wrapped(out, f"Note: {kept.note}")
    for sentence in stale:
        print_wrapped(out, f"Old: {sentence}" if kept.measured_on else sentence)
    out.print()
    frame = tables.constants(c)
    short = {"Measured rows": "Rows", "Leave-one-out error": "Left-out error"}
    out.print(_table(frame.drop(columns=["From", "What it is"]).rename(columns=short)))
    print_wrapped(out, f"All {words.measured_label(c)}. {words.missing_sentence(c)}".strip())
    print_wrapped(out, words.held_out_sentence(c.fitted.held_out))
    print_wrapped(out, words.nodes_sentence(c))
    if c.fitted.links:
        out.print("\nLinks:")
    for link in c.fitted.links:
        print_wrapped(out, words.link_sentence(link), indent="   ", first=" - ")
    _print_flags(c.judged)
    out.print("\nProvenance:")
    for row in tables.provenance(c).itertuples(index=False):
        print_wrapped(out, f"{row.What}: {row.Value}", indent="   ", first=" - ")


def _print_flags(judged: Judged) -> None:
    out = console()
    if judged.flags:
        out.print("\nFlags:")
    for flag in judged.flags:
        said = f"{flag.severity}: {flag.sentence} {words.MEANINGS.get(flag.code, '')}".strip()
        print_wrapped(out, said, indent="   ", first=" - ")


def _table(frame: pd.DataFrame) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in frame.columns:
        numeric = pd.api.types.is_numeric_dtype(frame[name])
        table.add_column(str(name), justify="right" if numeric else "left", overflow="fold")
    for row in frame.itertuples(index=False):
        table.add_row(*(str(v) for v in row))
    return table

"""What `runcast calibrations` prints: the list of results, an added result, a result in full."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from app.calibration import document, words
from app.calibration.added import Added
from app.document.blocks import Block, Bullets, Paragraph
from app.forecast.calibration_files import Kept
from app.forecast.calibrations import Calibration
from runners.calibration.validity import Judged

NONE = (
    "There is no calibration: `runcast calibrate` measures nodes, `runcast calibrations add FILE` "
    "keeps what it brings back."
)


def listed_blocks(
    found: Iterable[Kept], stale: Mapping[str, tuple[str, ...]], sentence: str
) -> Iterator[Block]:
    """All results, newest first, and why some are stale or damaged."""
    kept = tuple(found)
    yield document.listed(kept, stale) if kept else Paragraph(NONE)
    why = ((k.id, text) for k in kept for text in (k.problem, *stale.get(k.id, ())) if text)
    yield Bullets(tuple(f"{name}: {text}" for name, text in why))
    if sentence:
        yield Paragraph(f"Notes are not shown: {sentence}")


def added_blocks(added: Added) -> Iterator[Block]:
    """The result that was added, and how to use it."""
    yield Paragraph(words.added_sentence(added))
    yield from _flags(added.judged)
    yield from map(Paragraph, added.sentences)
    yield Paragraph(f"runcast plan ... --calibration {added.kept.id}")


def shown_blocks(kept: Kept, c: Calibration, stale: tuple[str, ...]) -> Iterator[Block]:
    """Everything that one result contains."""
    yield Paragraph(f"{kept.label}: {c.judged.status}.")
    if kept.note:
        yield Paragraph(f"Note: {kept.note}")
    for sentence in stale:
        yield Paragraph(f"Old: {sentence}" if kept.measured_on else sentence)
    yield document.constants(c).without("From", "What it is")
    yield Paragraph(f"All {c.origin.label}. {words.missing_sentence(c)}".strip())
    yield Paragraph(words.held_out_sentence(c.fitted.held_out))
    yield Paragraph(words.nodes_sentence(c))
    if c.fitted.links:
        yield Bullets(tuple(map(words.link_sentence, c.fitted.links)), "Links")
    yield from _flags(c.judged)
    facts = tuple(f"{what}: {value}" for what, value in document.provenance(c).rows)
    yield Bullets(facts, "Provenance")


def _flags(judged: Judged) -> Iterator[Block]:
    flags = (f"{f.severity}: {f.sentence} {words.MEANINGS.get(f.code, '')}" for f in judged.flags)
    if judged.flags:
        yield Bullets(tuple(map(str.strip, flags)), "Flags")

"""A run so far as blocks: the screen of a terminal."""

from __future__ import annotations

from app.document.blocks import Block, Bullets, Paragraph, Section
from app.watch.diagnosis import cause_sentences
from app.watch.moves import Move, move_sentences
from app.watch.run import State
from app.watch.words import alert_sentence, event_sentence, state_sentences

MORE_CAUSES = 3  # of an alert
NEWEST = 5  # alerts, and events, on one screen


def blocks(state: State, moves: tuple[Move, ...] | None = None) -> tuple[Block | Section, ...]:
    """Everything that fits one screen, most important first."""
    found: list[Block | Section] = [Paragraph(text, strong=True) for text in state.mismatches]
    found += [Paragraph(text) for text in state_sentences(state)]
    alerts = state.alerts[-NEWEST:]
    if alerts:
        older = len(state.alerts) - len(alerts)
        title = "Alerts" + (f", {older} older ones left out" if older else "")
        found.append(Bullets(tuple(alert_sentence(a, state) for a in alerts), title))
        causes = tuple(cause_sentences(alerts[-1], state, MORE_CAUSES))
        if causes:
            found.append(Bullets(causes, "Likely causes of the last one, in order"))
    if events := [e for e in state.events if e.kind != "start_up"][-NEWEST:]:
        found.append(Bullets(tuple(map(event_sentence, events)), "Last events"))
    if moves is not None:
        found.append(Bullets(tuple(move_sentences(state, moves)), "Stay or move"))
    found += [Paragraph(text) for text in state.notes]
    return tuple(found)

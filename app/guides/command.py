"""`runcast decide`: the published decision tables, answered, on a terminal and as JSON."""

from __future__ import annotations

from typing import Annotated

from app.command.options import AsJson, Text, print_json, text_option


def decide(
    table: Annotated[Text, text_option("--table", "A,B", "These tables only.")] = None,
    as_json: AsJson = False,
) -> None:
    """Answer the decision tables of published guides, row by row."""
    from app.guides.decisions import decisions_of

    found = decisions_of(_tables(table))
    if as_json:
        from app.guides.as_json import decisions_json

        print_json(decisions_json(found))
    else:
        from app.document.terminal import print_document
        from app.guides.document import blocks

        print_document(blocks(found))


def _tables(text: Text) -> tuple[str, ...]:
    """The letters of `--table`, each once; all where none is given."""
    from core.errors import ScenarioError, shown
    from hardware.decision_tables import TABLES

    if text is None:
        return tuple(TABLES)
    asked = [part.strip().upper() for part in text.split(",") if part.strip()]
    for letter in asked:
        if letter not in TABLES:
            known = ", ".join(f"{k} ({v.lower()})" for k, v in TABLES.items())
            raise ScenarioError(f"--table {shown(letter)} is not one of {known}.")
    if not asked:
        raise ScenarioError("--table names no table: give letters, as in --table A,D.")
    return tuple(dict.fromkeys(asked))

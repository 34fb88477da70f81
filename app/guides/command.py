"""`runcast advice`: published decision tables with our answers, on a terminal and as JSON."""

from __future__ import annotations

from typing import Annotated

from app.command.options import AsJson, Text, print_json, text_option


def advice(
    table: Annotated[Text, text_option("--table", "A,B", "These tables only.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the advice of published guides, with our answers."""
    from app.guides.document import rows_of

    rows = rows_of(_tables(table))
    if as_json:
        from app.guides.as_json import advice_json

        print_json(advice_json(rows))
    else:
        from app.document.terminal import print_document
        from app.guides.document import blocks

        print_document(blocks(rows))


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

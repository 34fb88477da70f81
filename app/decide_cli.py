"""`runcast decide`: the published decision tables, answered, on a terminal and as JSON."""

from __future__ import annotations

from typing import Annotated

import typer

Text = str | None


def decide(
    table: Annotated[
        Text,
        typer.Option("--table", metavar="A,B", help="These tables only.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Recommend a strategy for every row of the published decision tables, and say why."""
    from app.decisions import decisions_of

    found = decisions_of(_tables(table))
    if as_json:
        import orjson

        from app.decision_json import decisions_json

        options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        typer.echo(orjson.dumps(decisions_json(found), option=options), nl=False)
    else:
        from app.decision_terminal import print_decisions

        print_decisions(found)


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

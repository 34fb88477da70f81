"""`runcast schema`: the JSON Schema of a document that a command prints or reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.command.options import print_json
from app.document.echo import echo
from core.errors import unknown_name

FOLDER = Path(__file__).parent
CALIBRATION = "calibration"  # calib-result/1, of its model
DIALECT = "https://json-schema.org/draft/2020-12/schema"
STORED = ("plan", "audit")  # by docs/json_schemas.py


def schema(
    document: Annotated[
        str, typer.Argument(metavar="DOCUMENT", help=f"{', '.join((*STORED, CALIBRATION))}.")
    ],
) -> None:
    """Print the JSON Schema of a document.

    Of `runcast plan --json`, `runcast audit --json`, or a calibration's result file.
    """
    if document in STORED:
        echo((FOLDER / f"{document}.schema.json").read_text(encoding="utf-8").rstrip())
    elif document == CALIBRATION:
        from runners.calibration.result import CalibResult

        print_json({"$schema": DIALECT, **CalibResult.model_json_schema(by_alias=True)})
    else:
        raise unknown_name("document", document, (*STORED, CALIBRATION))

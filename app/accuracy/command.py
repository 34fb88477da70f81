"""`runcast validate` and `runcast fit`: compare forecasts with published runs, and refit them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Annotated

import typer

from app.command.options import AsJson, Text, print_json, text_option
from core.errors import ScenarioError


def validate(
    runs: Annotated[Text, text_option("--runs", "FILE", "Measured runs.")] = None,
    models: Annotated[Text, text_option("--models", "FILE", "Their models.")] = None,
    own: Annotated[
        Text,
        text_option(
            "--own", "FILE", "Runs of your own: their measured throughput moves the forecasts."
        ),
    ] = None,
    pairs: Annotated[Text, text_option("--pairs", "FILE", "Pairs of runs with one change.")] = None,
    out: Annotated[Text, text_option("--out", "FILE", "Write one prediction a row.")] = None,
    readme: Annotated[
        Text, text_option("--readme", "FILE", "Rewrite the accuracy block of this file.")
    ] = None,
    as_json: AsJson = False,
    columns: Annotated[
        bool, typer.Option("--columns", help="List the columns of a file of runs that are read.")
    ] = False,
) -> None:
    """Forecast measured runs and score the forecasts."""
    if columns:
        from app.accuracy.read_columns import columns_table
        from app.document.terminal import print_document

        print_document([columns_table()])
        return
    if runs is None or models is None:
        missing = [f"--{n}" for n, v in (("runs", runs), ("models", models)) if v is None]
        raise ScenarioError(f"Missing {', '.join(missing)}: `runcast validate --help` says what.")
    from app.accuracy import as_json as validation_json
    from app.accuracy import validate as validation

    report = validation.validate(
        Path(runs),
        Path(models),
        Path(pairs) if pairs else None,
        own_path=Path(own) if own else None,
    )
    if out is not None:
        validation_json.write_out(report, Path(out))
    if readme is not None:
        from app.accuracy.readme import rewrite
        from hardware.cross_validation import choice_figures, cross_validation

        rewrite(Path(readme), report, cross_validation(), choice_figures())
    if as_json:
        print_json(validation_json.report_json(report))
    else:
        from app.accuracy.sections import report_blocks
        from app.document.terminal import print_document

        print_document(report_blocks(report))


def fit(
    write: Annotated[bool, typer.Option("--write", help="Replace the shipped tables.")] = False,
    ablate: Annotated[
        bool, typer.Option("--ablate", help="Fit again without each ingredient (minutes).")
    ] = False,
) -> None:
    """Fit the efficiencies to the shipped runs; cross-validate.

    Prints what was found; --write replaces the shipped tables (docs/accuracy.md).
    """
    from app.accuracy.fit import refit, shipped_residuals
    from app.accuracy.fit_report import ablation, choice_rows, figures, fit_blocks
    from app.document.terminal import print_document
    from hardware.cross_validation import write_choices, write_cross_validation
    from hardware.efficiency import read_entries, write_entries
    from hardware.residuals.table import write_residuals

    today = dt.datetime.now(dt.UTC).date()
    if ablate:
        print_document([ablation(read_entries(), today)])
        return
    result = refit(read_entries(), today)
    found = list(figures(result, today))
    if write:
        write_entries(result.entries)
        write_cross_validation(found)
        write_choices(choice_rows(result, today))
        write_residuals(shipped_residuals(result))
    print_document(fit_blocks(result, found))

"""`runcast compare`: the log of a run next to its forecast."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.command.given import Given
from app.command.options import AsJson, Text, print_json, takes_fields, text_option

if TYPE_CHECKING:
    from app.imports.compare import Comparison


@takes_fields
def compare(
    given: Given,
    log: Annotated[str, typer.Argument(metavar="LOG", help="The log of a training run.")],
    layout: Annotated[
        Text, text_option("--layout", "KEY=N,..", "tp=8,pp=4,sharding=zero1,...: what was run.")
    ] = None,
    tokens_of: Annotated[
        Text, text_option("--tokens-of", "gpu|job", "Whose tokens/s a plain log prints.")
    ] = None,
    append: Annotated[
        Text, text_option("--append", "FILE", "Add it to this file of measured runs (CSV).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say how the forecast of a run did, from its log.

    TorchTitan, Megatron, DeepSpeed, Hugging Face Trainer, anything with tokens/s.
    """
    from app.imports.compare import compared, whose
    from app.imports.document import compare_json
    from app.imports.row import append as append_row
    from app.imports.row import row_of
    from core.errors import ScenarioError

    found = compared(Path(log), given, layout, per_gpu=whose(tokens_of))
    try:
        row = row_of(found)
    except ScenarioError:
        if append is not None:
            raise
        row = None
    done = "" if append is None or row is None else append_row(Path(append), row)
    if as_json:
        print_json(compare_json(found, row, done))
    else:
        _print(found, row, done)


def _print(found: Comparison, row: dict[str, str] | None, done: str) -> None:
    from app.document.terminal import console, print_wrapped
    from app.imports.document import anchor_options, anchor_sentences, compare_sentences
    from app.imports.row import line_of
    from app.plan.answer_document import PAGE

    out = console()
    for sentence in compare_sentences(found):
        print_wrapped(out, sentence, indent="  ", first="")
    out.print()
    for sentence in anchor_sentences(found):
        print_wrapped(out, sentence)
    # Never wrapped, so that it can be copied.
    for option in anchor_options(found):
        out.print(f"  {option}", soft_wrap=True)
    if found.link is not None:
        out.print(f"Link: {PAGE}?{found.link}", soft_wrap=True)
    out.print()
    if done:
        print_wrapped(out, done)
    elif row is not None:
        print_wrapped(out, "As a measured run (`--append FILE` adds it to a file of yours):")
        out.print(",".join(row), soft_wrap=True)
        out.print(line_of(row.values()).rstrip(), soft_wrap=True)

"""`runcast import` and `runcast compare`: what other tools measured, next to a forecast."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.command.given import Given
from app.command.options import AsJson, Text, print_json, takes_fields, text_option

if TYPE_CHECKING:
    from app.imports.compare import Comparison


def import_file(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What the tool printed or wrote.")],
    format_: Annotated[
        Text, text_option("--format", "F", "nccl-tests, mamf-finder, log or profile; seen.")
    ] = None,
    gpu: Annotated[Text, text_option("--gpu", "NAME", "The accelerator it ran on.")] = None,
    op: Annotated[Text, text_option("--op", "OP", "nccl-tests: all_reduce, all_gather, ..")] = None,
    ranks: Annotated[Text, text_option("--ranks", "N", "nccl-tests: GPUs.")] = None,
    nodes: Annotated[Text, text_option("--nodes", "N", "nccl-tests: machines.")] = None,
    seq_len: Annotated[Text, text_option("--seq-len", "N", "log: tokens of a sequence.")] = None,
    global_batch_size: Annotated[
        Text, text_option("--global-batch-size", "N", "log: sequences of a step.")
    ] = None,
    num_gpus: Annotated[Text, text_option("--num-gpus", "N", "log: GPUs of the job.")] = None,
    tokens_of: Annotated[
        Text, text_option("--tokens-of", "gpu|job", "log: whose tokens/s it prints.")
    ] = None,
    date: Annotated[Text, text_option("--date", "DATE", "When it ran: 2026-03-31.")] = None,
    out: Annotated[
        Text, text_option("--out", "FILE", "Write an import-result/1 (docs/imports.md).")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep it as a calibration, for --calibration ID.")
    ] = False,
    note: Annotated[Text, text_option("--note", "TEXT", "With --keep: what to remember.")] = None,
    as_json: AsJson = False,
) -> None:
    """Read what other tools measured: links, matmuls, logs.

    nccl-tests, mamf-finder, training logs, traces of the torch profiler.
    """
    from app.imports.compare import count, facts_of, whose
    from app.imports.document import import_json, import_sentences
    from app.imports.file import imported
    from core.errors import ScenarioError, shown

    typed = {"seq_len": seq_len, "global_batch_size": global_batch_size, "num_gpus": num_gpus}
    run = facts_of({name: value for name, value in typed.items() if value is not None})
    if num_gpus and "num_gpus" not in run:
        raise ScenarioError(f"--num-gpus {shown(num_gpus)} is several: a log is of one job.")
    read = imported(
        Path(file), format_=format_ or "auto", gpu=gpu, op=op, ranks=count("--ranks", ranks),
        nodes=count("--nodes", nodes), run=run, per_gpu=whose(tokens_of), date=date,
    )  # fmt: skip
    if note is not None and not keep:
        raise ScenarioError("--note is of what --keep keeps: give both.")
    if (out is not None or keep) and read.document is None:
        what = "--out writes" if out is not None else "--keep keeps"
        raise ScenarioError(
            f"{what} what nccl-tests or mamf-finder measured of a known accelerator (--gpu); of "
            f"this file there is nothing to {'write' if out is not None else 'keep'}."
        )
    added = None
    if keep and read.document is not None:
        from app.calibration.added import keep as keep_result

        added = keep_result(read.document, note=note or "")
    if out is not None and read.document is not None:
        Path(out).write_text(read.document.model_dump_json(by_alias=True, indent=1) + "\n")
    if as_json:
        print_json(import_json(read, added))
        return
    from app.calibration.document import added_blocks
    from app.document.terminal import console, print_document, print_wrapped

    screen = console()
    for sentence in import_sentences(read):
        print_wrapped(screen, sentence, indent="  ", first="")
    if added is not None:
        print_document(added_blocks(added))


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

"""`runcast import`: what other tools measured, next to what a forecast assumes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.command.options import AsJson, Text, print_json, text_option


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
    from app.imports.as_json import import_json
    from app.imports.file import Asked, imported
    from app.imports.values import count, facts_of, whose
    from app.imports.words import import_sentences
    from core.errors import ScenarioError, shown

    typed = {"seq_len": seq_len, "global_batch_size": global_batch_size, "num_gpus": num_gpus}
    run = facts_of({name: value for name, value in typed.items() if value is not None})
    if num_gpus and run.num_gpus is None:
        raise ScenarioError(f"--num-gpus {shown(num_gpus)} is several: a log is of one job.")
    asked = Asked(
        format=format_ or "auto",
        gpu=gpu,
        op=op,
        ranks=count("--ranks", ranks),
        nodes=count("--nodes", nodes),
        run=run,
        per_gpu=whose(tokens_of),
        date=date,
    )
    found = imported(Path(file), asked)
    if note is not None and not keep:
        raise ScenarioError("--note is of what --keep keeps: give both.")
    if (out is not None or keep) and found.document is None:
        what = "--out writes" if out is not None else "--keep keeps"
        raise ScenarioError(
            f"{what} what nccl-tests or mamf-finder measured of a known accelerator (--gpu); of "
            f"this file there is nothing to {'write' if out is not None else 'keep'}."
        )
    added = None
    if keep and found.document is not None:
        from app.calibration.added import keep as keep_result

        added = keep_result(found.document, note=note or "")
    if out is not None and found.document is not None:
        Path(out).write_text(found.document.model_dump_json(by_alias=True, indent=1) + "\n")
    if as_json:
        print_json(import_json(found, added))
        return
    from app.calibration.document import added_blocks
    from app.document.terminal import console, print_document, print_wrapped

    screen = console()
    for sentence in import_sentences(found):
        print_wrapped(screen, sentence, indent="  ", first="")
    if added is not None:
        print_document(added_blocks(added))

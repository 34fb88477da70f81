"""`runcast audit`: what a claim about a training run implies, and whether it is plausible."""

from __future__ import annotations

from typing import Annotated

from app.command.options import AsJson, Config, Model, SeqLen, Text, print_json, text_option


def audit(
    model: Model = None,
    config: Config = None,
    tokens: Annotated[Text, text_option("--tokens", "N", "Tokens trained on: 1e12, 15T.")] = None,
    gpu: Annotated[Text, text_option("--gpu", "NAME", "The accelerator.")] = None,
    num_gpus: Annotated[Text, text_option("--num-gpus", "N", "How many of it.")] = None,
    days: Annotated[Text, text_option("--days", "D", "How long it took.")] = None,
    gpu_hours: Annotated[
        Text, text_option("--gpu-hours", "H", "Instead of days, or checked against them.")
    ] = None,
    tokens_per_s: Annotated[
        Text, text_option("--tokens-per-s", "R", "Of the whole run; instead of days, or checked.")
    ] = None,
    mfu: Annotated[
        Text, text_option("--mfu", "F", "0.45, 45% or 45-50%; instead of days, or checked.")
    ] = None,
    usd: Annotated[Text, text_option("--usd", "U", "Dollars of the run.")] = None,
    usd_per_gpu_hour: Annotated[
        Text, text_option("--usd-per-gpu-hour", "U", "Price of one GPU for an hour.")
    ] = None,
    precision: Annotated[
        Text, text_option("--precision", "P", "bf16, fp8, nvfp4, ...; all if left out.")
    ] = None,
    task: Annotated[
        Text, text_option("--task", "T", "pretrain, sft, lora or qlora; pretrain if left out.")
    ] = None,
    seq_len: SeqLen = None,
    global_batch_size: Annotated[
        Text, text_option("--global-batch-size", "N", "Sequences a step, for the forecast.")
    ] = None,
    params: Annotated[
        Text, text_option("--params", "N", "Active parameters to count, such as 70B.")
    ] = None,
    memory_gb: Annotated[
        Text, text_option("--memory-gb", "GB", "The claimed memory of one GPU.")
    ] = None,
    programme: Annotated[
        Text, text_option("--programme", "LINK", "Of all its stages, or of a published programme.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what a claim about a run implies, and whether it can be.

    Against the dense peaks, the best published runs, our forecast, memory, failures and prices.
    """
    from app.audit.audit import audit_of
    from app.audit.claim import claim_of

    texts = {
        "model": model,
        "config": config,
        "tokens": tokens,
        "gpu": gpu,
        "num_gpus": num_gpus,
        "days": days,
        "gpu_hours": gpu_hours,
        "tokens_per_s": tokens_per_s,
        "mfu": mfu,
        "usd": usd,
        "usd_per_gpu_hour": usd_per_gpu_hour,
        "precision": precision,
        "task": task,
        "seq_len": seq_len,
        "global_batch_size": global_batch_size,
        "params": params,
        "memory_gb": memory_gb,
    }
    if programme is not None:
        from app.audit.programme import programme_claim
        from app.document.terminal import print_document
        from app.programme import claim

        asked, best, compared = programme_claim(programme, texts)
        if as_json:
            print_json(claim.claim_json(best, compared))
        else:
            print_document(claim.blocks(asked, best, compared))
        return
    found = audit_of(claim_of(texts))
    if as_json:
        from app.audit.as_json import audit_json

        print_json(audit_json(found))
    else:
        from app.audit.document import blocks
        from app.document.terminal import print_document

        print_document(blocks(found))

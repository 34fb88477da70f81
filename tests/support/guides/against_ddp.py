"""What a way to train costs compared with DDP: guides print one figure, we forecast the case.

DDP is timed as if every GPU had enough memory for a replica, which no GPU has for most of these
models. So the figure is the price of not fitting, including recompute and smaller batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from app.document import format as fmt
from tests.support.guides import cases
from tests.support.guides.cases import DATA_PARALLEL, slowdown, timed
from tests.support.guides.claim_text import Evaluations, Ours
from tests.support.guides.one_case import Fields, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One row of a guide's table: jobs, and the ways to run them that the guide advises."""

    jobs: Mapping[str, Fields]
    ways: Mapping[str, Fields]


_SFT: Fields = {"task": "sft", "seq_len": 4096}
_PRETRAIN_70B: Fields = {"model": "llama3.1-70b", "seq_len": 8192, "global_batch_size": 512}
_FSDP = {**DATA_PARALLEL, "sharding": "fsdp2"}
_ZERO2 = {**DATA_PARALLEL, "sharding": "zero2"}
_ZERO3 = {**DATA_PARALLEL, "sharding": "zero3"}
_TP8: Fields = {"tp": 8, "pp": 1, "cp": 1}
CASES: dict[str, _Case] = {
    "ddp_lora": _Case(
        jobs={
            "LoRA of 7B on 8 H100": {
                "model": "llama2-7b", "task": "lora", "seq_len": 4096, "num_gpus": 8,
                "global_batch_size": 128,
            },
        },
        ways={"DDP": {**DATA_PARALLEL, "sharding": "ddp"}},
    ),
    "ddp_fsdp": _Case(
        jobs={
            f"{size} on 8 H100": {
                **_SFT, "model": f"llama2-{size.lower()}", "num_gpus": 8, "global_batch_size": 128,
            }
            for size in ("7B", "13B")
        },
        ways={"FSDP2": _FSDP, "ZeRO-2": _ZERO2},
    ),
    "ddp_zero3": _Case(
        jobs={
            f"{size} on 32 H100": {
                **_SFT, "model": model, "num_gpus": 32, "global_batch_size": 256,
            }
            for size, model in (("32B", "qwen2.5-32b"), ("70B", "llama3.1-70b"))
        },
        ways={"ZeRO-3": _ZERO3, "HSDP": {**DATA_PARALLEL, "sharding": "hsdp"}},
    ),
    "ddp_tp": _Case(
        jobs={f"70B on {n} H100": {**_PRETRAIN_70B, "num_gpus": n} for n in (64, 128)},
        ways={
            "ZeRO-3 + TP8": {**_TP8, "sharding": "zero3"},
            "FSDP2 + TP8": {**_TP8, "sharding": "fsdp2"},
        },
    ),
    "ddp_3d": _Case(
        jobs={
            "175B on 512 H100": {
                "model": "gpt3-175b", "seq_len": 2048, "num_gpus": 512, "global_batch_size": 1536,
            },
            "405B on 1,024 H100": {
                "model": "llama3.1-405b", "seq_len": 8192, "num_gpus": 1024,
                "global_batch_size": 1024,
            },
        },
        ways={"3D (TP8)": {"tp": 8, "cp": 1, "sharding": "zero1"}},
    ),
}  # fmt: skip


def _against_ddp(name: str) -> Ours:
    found: dict[str, float] = {}
    best: list[str] = []
    for job, fields in CASES[name].jobs.items():
        ddp = cases.timed_if_it_fitted({**fields, **DATA_PARALLEL, "sharding": "ddp"})
        for way, choice in CASES[name].ways.items():
            found[f"{way} for {job}"] = slowdown(timed({**fields, **choice}), ddp)
        best.append(_best_line(job, timed(fields), ddp))
    return cases.range_of(found.values(), f"{cases.listed(found)}. {' '.join(best)}")


def _best_line(job: str, best: Run | None, ddp: Run) -> str:
    """The fastest way that fits, and what DDP would need."""
    if best is None:
        return f"Nothing fits {job}."
    return (
        f"Fastest for {job}: {fmt.layout_short(best.layout)} at {slowdown(best, ddp):.2g}x; DDP "
        f"would need {fmt.gib(ddp.need_bytes)} a GPU."
    )


EVALUATED: Evaluations = {name: partial(_against_ddp, name) for name in CASES}

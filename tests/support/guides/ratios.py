"""Claims about how much longer a step takes: with recompute, with offload, in a named layout, and
than with DDP. DDP is timed as if every GPU had enough memory for a replica, which no GPU has for
most of these models: the figure is the price of not fitting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from app.document import format as fmt
from core.model.presets import preset
from tests.support.guides.claim_text import Evaluations, Ours, listed, range_of, text_of
from tests.support.guides.one_case import (
    DATA_PARALLEL,
    Fields,
    Run,
    longest_differences,
    slowdown,
    timed,
    timed_if_it_fitted,
)

# Recompute: one layout with and without it, on cases that differ in everything else.
_RECOMPUTED: Mapping[str, Fields] = {
    "Llama 2 7B, ZeRO-3 on 8 H100": {
        **DATA_PARALLEL, "model": "llama2-7b", "num_gpus": 8, "seq_len": 4096,
        "global_batch_size": 64, "sharding": "zero3", "micro_batch_size": 1,
    },
    "Llama 3.1 8B at 8,192 tokens": {
        **DATA_PARALLEL, "model": "llama3.1-8b", "num_gpus": 8, "seq_len": 8192,
        "global_batch_size": 64, "sharding": "zero3", "micro_batch_size": 1,
    },
    "Llama 3.1 70B, TP8 PP4 on 64 H100": {
        "model": "llama3.1-70b", "num_gpus": 64, "seq_len": 8192, "global_batch_size": 512,
        "tp": 8, "pp": 4, "cp": 1, "sharding": "zero1", "micro_batch_size": 1,
    },
}  # fmt: skip
# Offload costs time once per step, so the tokens of a step decide its relative cost.
_70B_ON_8: Fields = {**DATA_PARALLEL, "model": "llama3.1-70b", "num_gpus": 8, "seq_len": 4096}
_BATCHES = (8, 64, 512)  # sequences per step: 33k, 262k and 2.1M tokens
_CPU = {"sharding": "zero3", "offload_optimizer": "cpu"}
_NVME = {"sharding": "zero3", "offload_optimizer": "nvme", "offload_params": "nvme"}
_ETHERNET_GBIT_PER_S = (10, 25, 100)  # of a machine of 8 GPUs


def _recompute(kind: str) -> Ours:
    found = {
        case: slowdown(
            timed_if_it_fitted({**fields, "recompute": kind}),
            timed_if_it_fitted({**fields, "recompute": "none"}),
        )
        for case, fields in _RECOMPUTED.items()
    }
    return range_of(found.values(), f"{kind} recompute over none. {listed(found)}")


def _batches(run: Fields, over: Fields) -> dict[str, float]:
    """How much slower one way to run 70B on 8 H100 is than another, for several sequences per
    step."""
    return {
        f"{batch} sequences a step": slowdown(
            timed({**_70B_ON_8, **run, "global_batch_size": batch}),
            timed_if_it_fitted({**_70B_ON_8, **over, "global_batch_size": batch}),
        )
        for batch in _BATCHES
    }


def _cpu() -> dict[str, float]:
    return _batches(_CPU, {"sharding": "zero3"})


def _offload_times() -> Ours:
    found = _cpu()
    return range_of(found.values(), f"Llama 3.1 70B on 8 H100. {listed(found)}")


def _offload_loss() -> Ours:
    lost = {case: 1 - 1 / x for case, x in _cpu().items()}
    return range_of(lost.values(), f"Llama 3.1 70B on 8 H100. {listed(lost, '%')}")


def _offload_against_ddp() -> Ours:
    cpu, nvme = (_batches(run, {"sharding": "ddp"}) for run in (_CPU, _NVME))
    return range_of(
        [*cpu.values(), *nvme.values()],
        f"Llama 3.1 70B on 8 H100, over DDP if it fitted. Optimizer on the host: {listed(cpu)}. "
        f"Optimizer and weights on NVMe: {listed(nvme)}",
    )


def _on_ethernet() -> Ours:
    case = {**_70B_ON_8, "num_gpus": 32, "global_batch_size": 256}
    ddp = timed_if_it_fitted({**case, "sharding": "ddp"})
    found = {
        f"{gbit} Gbit/s a machine": slowdown(
            timed({**case, **_CPU, "offload_params": "cpu", "network_gbit_per_gpu": gbit / 8}),
            ddp,
        )
        for gbit in _ETHERNET_GBIT_PER_S
    }
    return range_of(
        found.values(),
        "Llama 3.1 70B on 32 H100, 256 sequences a step, over DDP if it fitted and had 3,200 "
        f"Gbit/s. {listed(found)}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """One printed layout and the job we assume for it: guides give neither batch nor length."""

    job: Fields
    layout: Fields


_70B = {"model": "llama3.1-70b", "seq_len": 8192, "global_batch_size": 512}
_405B = {"model": "llama3.1-405b", "seq_len": 8192, "global_batch_size": 1024}
# The open model nearest to a 405B with experts: 400 billion parameters, 17 billion active.
_MOE = {"model": "llama4-maverick", "seq_len": 8192, "global_batch_size": 1024}
NAMED: dict[str, Named] = {
    "layout_70b_64": Named(job={**_70B, "num_gpus": 64}, layout={"tp": 8, "pp": 4, "cp": 1}),
    "layout_70b_128": Named(job={**_70B, "num_gpus": 128}, layout={"tp": 8, "pp": 4, "cp": 1}),
    "layout_70b_512": Named(job={**_70B, "num_gpus": 512}, layout={"tp": 8, "pp": 8, "cp": 2}),
    "layout_405b_256": Named(job={**_405B, "num_gpus": 256}, layout={"tp": 8, "pp": 8, "cp": 2}),
    "layout_405b_1024": Named(job={**_405B, "num_gpus": 1024}, layout={"tp": 8, "pp": 8, "cp": 1}),
    "layout_moe_256": Named(job={**_MOE, "num_gpus": 256}, layout={"tp": 8, "pp": 8, "cp": 1}),
}


def compared(name: str) -> tuple[Run | None, Run | None]:
    """A named layout and the best one found; None: nothing of that kind fits.

    What the name leaves open (chunks, sharding, recompute) is searched. A layout that is in real
    use is timed even at a memory risk too high for a plan.
    """
    found = NAMED[name]
    named, best = timed({**found.job, **found.layout}, even_odds=True), timed(found.job)
    if named and best and named.step_s < best.step_s:  # the search does not try cp at short lengths
        best = named
    return named, best


def _layout(name: str) -> Ours:
    named, best = compared(name)
    if best is None:
        return range_of((), "no layout fits the memory of these GPUs")
    if named is None:
        return range_of((), f"the named layout does not fit; best found {text_of(best)}")
    gap = ", ".join(f"{part} {more}" for part, more in longest_differences(named, best)[:2])
    job = NAMED[name].job
    return range_of(
        [slowdown(named, best)],
        f"{preset(str(job['model'])).name}, {job['global_batch_size']:,} sequences of "
        f"{job['seq_len']:,} tokens a step. {text_of(named)}. "
        f"Best found {text_of(best)}" + (f". Longest differences: {gap}" if gap else ""),
    )


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
        ddp = timed_if_it_fitted({**fields, **DATA_PARALLEL, "sharding": "ddp"})
        for way, choice in CASES[name].ways.items():
            found[f"{way} for {job}"] = slowdown(timed({**fields, **choice}), ddp)
        best.append(_best_line(job, timed(fields), ddp))
    return range_of(found.values(), f"{listed(found)}. {' '.join(best)}")


def _best_line(job: str, best: Run | None, ddp: Run) -> str:
    """The fastest way that fits, and what DDP would need."""
    if best is None:
        return f"Nothing fits {job}."
    return (
        f"Fastest for {job}: {fmt.layout_short(best.layout)} at {slowdown(best, ddp):.2g}x; DDP "
        f"would need {fmt.gib(ddp.need_bytes)} a GPU."
    )


EVALUATED: Evaluations = {
    "selective_time": partial(_recompute, "selective"),
    "full_time": partial(_recompute, "full"),
    "offload_cpu_times": _offload_times,
    "offload_cpu_loss": _offload_loss,
    "offload_vs_ddp": _offload_against_ddp,
    "offload_ethernet": _on_ethernet,
    **{name: partial(_layout, name) for name in NAMED},
    **{name: partial(_against_ddp, name) for name in CASES},
}

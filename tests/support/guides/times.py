"""Claims about how much longer a step takes with recompute, with offload, in a named layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from core.model.presets import preset
from tests.support.guides import cases
from tests.support.guides.cases import DATA_PARALLEL, listed, range_of, slowdown
from tests.support.guides.claim_text import Evaluations, Ours
from tests.support.guides.one_case import Fields, Run

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
            cases.timed_if_it_fitted({**fields, "recompute": kind}),
            cases.timed_if_it_fitted({**fields, "recompute": "none"}),
        )
        for case, fields in _RECOMPUTED.items()
    }
    return range_of(found.values(), f"{kind} recompute over none. {listed(found)}")


def _batches(run: Fields, over: Fields) -> dict[str, float]:
    """How much slower one way to run 70B on 8 H100 is than another, for several sequences per
    step."""
    return {
        f"{batch} sequences a step": slowdown(
            cases.timed({**_70B_ON_8, **run, "global_batch_size": batch}),
            cases.timed_if_it_fitted({**_70B_ON_8, **over, "global_batch_size": batch}),
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


def _against_ddp() -> Ours:
    cpu, nvme = (_batches(run, {"sharding": "ddp"}) for run in (_CPU, _NVME))
    return range_of(
        [*cpu.values(), *nvme.values()],
        f"Llama 3.1 70B on 8 H100, over DDP if it fitted. Optimizer on the host: {listed(cpu)}. "
        f"Optimizer and weights on NVMe: {listed(nvme)}",
    )


def _on_ethernet() -> Ours:
    case = {**_70B_ON_8, "num_gpus": 32, "global_batch_size": 256}
    ddp = cases.timed_if_it_fitted({**case, "sharding": "ddp"})
    found = {
        f"{gbit} Gbit/s a machine": slowdown(
            cases.timed(
                {**case, **_CPU, "offload_params": "cpu", "network_gbit_per_gpu": gbit / 8}
            ),
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
    named, best = cases.timed({**found.job, **found.layout}, even_odds=True), cases.timed(found.job)
    if named and best and named.step_s < best.step_s:  # the search does not try cp at short lengths
        best = named
    return named, best


def _layout(name: str) -> Ours:
    named, best = compared(name)
    if best is None:
        return range_of((), "no layout fits the memory of these GPUs")
    if named is None:
        return range_of((), f"the named layout does not fit; best found {cases.text_of(best)}")
    gap = ", ".join(f"{part} {more}" for part, more in cases.longest_differences(named, best)[:2])
    job = NAMED[name].job
    return range_of(
        [slowdown(named, best)],
        f"{preset(str(job['model'])).name}, {job['global_batch_size']:,} sequences of "
        f"{job['seq_len']:,} tokens a step. {cases.text_of(named)}. "
        f"Best found {cases.text_of(best)}" + (f". Longest differences: {gap}" if gap else ""),
    )


EVALUATED: Evaluations = {
    "selective_time": partial(_recompute, "selective"),
    "full_time": partial(_recompute, "full"),
    "offload_cpu_times": _offload_times,
    "offload_cpu_loss": _offload_loss,
    "offload_vs_ddp": _against_ddp,
    "offload_ethernet": _on_ethernet,
    **{name: partial(_layout, name) for name in NAMED},
}

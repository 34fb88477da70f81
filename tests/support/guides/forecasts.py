"""Our own forecast for the cases that guides print, and what makes 70B fit 8 H100."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from app.document import format as fmt
from app.forecast import answer as forecast_answer
from core.scenario import Scenario
from core.search.plan import Plan
from hardware.efficiency import GENERIC
from tests.support.guides.claim_text import (
    FORECAST_DIGITS,
    Evaluations,
    Ours,
    figure,
    number,
    range_of,
)
from tests.support.guides.one_case import H100, Fields
from tests.support.guides.strategies import ON_GPU

_BIG: Fields = {"gpu": H100, "cloud": "aws", "seq_len": 8192, "num_tokens": 1e9}
_70B_ON_8 = {**_BIG, "model": "llama3.1-70b", "num_gpus": 8, "global_batch_size": 64}
_70B_ON_256 = {
    **_BIG, "model": "llama3.1-70b", "num_gpus": 256, "global_batch_size": 1024, "num_tokens": 1e12,
}  # fmt: skip
_QLORA: Fields = {
    "task": "qlora", "num_gpus": 1, "seq_len": 2048, "global_batch_size": 16, "num_tokens": 1e7,
}  # fmt: skip
# The case, what guides print of it, and the fields of the scenario.
_CASES: tuple[tuple[str, str, Fields], ...] = (
    (
        "70B on 8 H100, states on the GPUs",
        "45 to 50% MFU, 30 h for 1B tokens",
        {**_70B_ON_8, **ON_GPU},
    ),
    (
        "70B on 8 H100, optimizer on the host",
        "45 to 50% MFU, 30 h for 1B tokens",
        {**_70B_ON_8, "offload_optimizer": "cpu"},
    ),
    (
        "405B on 32 H100, optimizer on the host",
        "35 to 40% MFU, 50 to 60 h for 1B tokens",
        {**_BIG, "model": "llama3.1-405b", "num_gpus": 32, "global_batch_size": 128,
         "offload_optimizer": "cpu"},
    ),
    ("70B on 256 H100, bf16, 1T tokens", "25 days", _70B_ON_256),
    ("70B on 256 H100, fp8, 1T tokens", "25 days", {**_70B_ON_256, "precision": "fp8"}),
    (
        "7B QLoRA on one 16 GB card",
        "fits in 16 GB",
        {**_QLORA, "model": "llama2-7b", "gpu": "V100-16GB", "precision": "fp16"},
    ),
    (
        "13B QLoRA on one 24 GB card",
        "fits in 24 GB",
        {**_QLORA, "model": "llama2-13b", "gpu": "RTX4090"},
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """One case: what the guide prints and what we forecast; without a plan, why there is none."""

    case: str
    printed: str
    plan: Plan | None
    nothing_fits: str

    @property
    def text(self) -> str:
        """The forecast in one line."""
        if self.plan is None:
            return self.nothing_fits
        p = self.plan
        return (
            f"{fmt.days(p.wall_clock_hours)} at {fmt.percent(p.mfu)} MFU "
            f"({fmt.tokens_per_s(p.tokens_per_s.p10)} to "
            f"{fmt.tokens_per_s(p.tokens_per_s.p90)}), "
            f"{fmt.gib(sum(p.memory_bytes.values()))} of {fmt.gib(p.memory_capacity_bytes)}, "
            f"{fmt.layout(p.layout)}"
        )


def forecasts() -> tuple[Forecast, ...]:
    """Every case, worked out now. Takes the fastest plan, because a guide's MFU is of a good run;
    of no particular stack, because the guide names none."""
    found = []
    for case, printed, fields in _CASES:
        asked = Scenario.parse({"stack": GENERIC, **fields, "rank_by": "time"})
        answer = forecast_answer.answer(asked, top=1)
        plan, why = next(iter(answer.plans), None), answer.nothing_fits or ""
        found.append(Forecast(case=case, printed=printed, plan=plan, nothing_fits=why))
    return tuple(found)


_JOB: Fields = {
    "model": "llama3.1-70b", "seq_len": 8192, "global_batch_size": 64, "num_tokens": 1e9,
    "rank_by": "usd", **ON_GPU,
}  # fmt: skip
_ON_8_H100: Fields = {"gpu": H100, "num_gpus": 8}
OFFLOAD = "optimizer on the host"
# Change -> fields of the scenario. Every change trains all weights.
_WAYS: Mapping[str, Fields] = {
    OFFLOAD: {**_ON_8_H100, "offload_optimizer": "cpu"},
    "optimizer on NVMe": {**_ON_8_H100, "offload_optimizer": "nvme"},
    "8-bit AdamW": {**_ON_8_H100, "optimizer": "adamw_8bit"},
    "16 H100": {"gpu": H100, "num_gpus": 16},
    "32 H100": {"gpu": H100, "num_gpus": 32},
    "64 H100": {"gpu": H100, "num_gpus": 64},
    "8 H200": {"gpu": "H200-141GB-SXM", "num_gpus": 8},
    "16 H200": {"gpu": "H200-141GB-SXM", "num_gpus": 16},
    "8 MI300X": {"gpu": "MI300X", "num_gpus": 8},
    "8 B200": {"gpu": "B200-180GB", "num_gpus": 8},
    "16 B200": {"gpu": "B200-180GB", "num_gpus": 16},
    "8 B300": {"gpu": "B300", "num_gpus": 8},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """One change of the job and its cheapest plan; None if it does not fit either."""

    change: str
    plan: Plan | None

    @property
    def usd(self) -> float:
        """Dollars for 1 billion tokens; infinite if nothing fits or there is no price."""
        return self.plan.usd.p50 if self.plan and self.plan.usd else math.inf

    @property
    def text(self) -> str:
        """Dollars, hours, seller, date of the price, and layout."""
        if self.plan is None:
            return "does not fit either"
        p = self.plan
        return (
            f"{fmt.usd(self.usd, 3) if p.usd else 'no price'} and {fmt.days(p.hours.p50)} "
            f"for 1B tokens, {fmt.layout_short(p.layout)}; {p.offer.provider}, "
            f"{fmt.usd_per_hour(p.usd_per_gpu_hour)} a GPU, observed {p.offer.observed_at}"
        )


@cache
def fixes() -> tuple[Fix, ...]:
    """Every change, sorted by dollars for 1 billion tokens; those that do not fit come last."""
    found = []
    for change, fields in _WAYS.items():
        asked = Scenario.parse({**_JOB, "stack": GENERIC, **fields})  # the guide names no stack
        answer = forecast_answer.answer(asked, top=1)
        found.append(Fix(change=change, plan=next(iter(answer.plans), None)))
    return tuple(sorted(found, key=lambda f: (f.plan is None, f.usd)))


def _offload_over_cheapest() -> Ours:
    ranked = [f for f in fixes() if math.isfinite(f.usd)]
    offload = next((f for f in ranked if f.change == OFFLOAD), None)
    if offload is None:
        return range_of((), "with the optimizer on the host nothing fits 8 H100")
    times = offload.usd / ranked[0].usd
    fastest = min(ranked, key=lambda f: f.plan.hours.p50 if f.plan else math.inf)
    return range_of(
        [times],
        f"{figure(offload.usd, 'USD', 3)} / {figure(ranked[0].usd, 'USD', 3)} "
        f"({ranked[0].change}) = {number(times, FORECAST_DIGITS)}. In order: "
        + "; ".join(f"{f.change} {figure(f.usd, 'USD', 3)}" for f in ranked)
        + f". Fastest: {fastest.change}. Not enough: "
        + ", ".join(f.change for f in fixes() if f.plan is None),
    )


EVALUATED: Evaluations = {"70b_cheapest_fix": _offload_over_cheapest}

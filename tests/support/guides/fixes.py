"""70B does not fit on 8 H100: changes that make it fit, each at today's prices, cheapest first."""

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
from tests.support.guides.cases import H100, range_of
from tests.support.guides.claim_text import FORECAST_DIGITS, Evaluations, Ours, figure, number
from tests.support.guides.one_case import Fields
from tests.support.guides.strategies import ON_GPU

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

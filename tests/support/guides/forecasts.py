"""Our own forecast for the cases that guides print: their model and devices, our MFU."""

from __future__ import annotations

from dataclasses import dataclass

from app.document import format as fmt
from app.forecast import answer as forecast_answer
from core.scenario import Scenario
from core.search.plan import Plan
from hardware.efficiency import GENERIC
from tests.support.guides.cases import H100
from tests.support.guides.one_case import Fields
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

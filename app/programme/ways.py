"""Ways to buy the machines of a programme: the cheapest contract of each kind of purchase."""

from __future__ import annotations

from typing import get_args

from app.forecast.search_memory import SearchMemory
from app.programme.contract import Contract
from app.programme.programme import programme_of
from core.machine.offer import Purchase
from core.scenario import Scenario

ALL = 1000  # contracts: every offer of one accelerator


def ways_to_buy(
    scenario: Scenario, best: Contract, *, memory: SearchMemory | None = None
) -> tuple[Contract, ...]:
    """For each kind the cheapest contract for as many of the same GPUs, one in doubt only if there
    is no other, in the order of kinds; of its own kind the contract itself. () where stages have
    machines of their own."""
    if not best.is_one_set:
        return ()
    first = best.stages[0]
    wide = scenario.model_copy(
        update={
            "gpu": (first.offer.accelerator,), "num_gpus": (first.num_gpus,),
            "purchase": get_args(Purchase), "plan": "", "stages_may_move": False,
        }
    )  # fmt: skip
    cheapest: dict[str, Contract] = {first.offer.purchase: best}
    found = programme_of(wide, top=ALL, memory=memory).contracts
    for contract in sorted(found, key=lambda c: (bool(c.against), c.usd)):
        cheapest.setdefault(contract.stages[0].offer.purchase, contract)
    return tuple(cheapest[k] for k in get_args(Purchase) if k in cheapest)

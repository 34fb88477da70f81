"""The budget turned round: how many tokens the main stage may have on one contract."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from app.programme.stages import StageRun
from core.cost.run_cost import RunCost
from core.numeric import as_float
from core.programme.stage import Stage, label
from core.programme.tokens import main_stage
from core.scenario import Scenario

FAR, HALVINGS = 1e4, 40  # times the tokens now, and of the range in which the factor lies


def moved_with_main(stages: Sequence[Stage], main: int) -> list[bool]:
    """Which stages are the main one, or a share of it."""
    names = [label(stages, n) for n in range(len(stages))]

    def root(n: int) -> int:
        stage = stages[n]
        if stage.share is None:
            return n
        return root(names.index(stage.of)) if stage.of else main

    return [root(n) == main for n in range(len(stages))]


def most_main_tokens(
    scenario: Scenario, runs: Sequence[StageRun], totals: Callable[[Sequence[float]], RunCost]
) -> float | None:
    """Tokens of the main stage with which the whole keeps the budget, as expected, and the
    deadline, as surely as asked; shares of it grow with it. None: neither is given, or a budget
    but no price; 0: not even without it. `totals` are those at this many times the tokens of
    each stage."""
    if scenario.budget_usd is None and scenario.deadline_days is None:
        return None
    stages = [r.stage for r in runs]
    main = main_stage(stages, [r.tokens for r in runs])
    moved = moved_with_main(stages, main)

    def keeps(factor: float) -> bool:
        found = totals([factor if m else 1.0 for m in moved])
        usd = as_float(found.paid.mean)
        return (scenario.budget_usd is None or usd <= scenario.budget_usd) and (
            scenario.deadline_days is None
            or as_float(found.chance_on_time) >= scenario.deadline_confidence
        )

    if scenario.budget_usd is not None and math.isnan(
        as_float(totals([1.0] * len(runs)).paid.mean)
    ):
        return None
    low, high = math.log(1 / FAR), math.log(FAR)
    if not keeps(math.exp(low)):
        return 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(math.exp(middle)) else (low, middle)
    return math.exp(low) * runs[main].tokens

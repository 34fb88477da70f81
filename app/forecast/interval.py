"""How long a plan takes, as a range, and how many tokens its run processes."""

from __future__ import annotations

from core.scenario import Scenario
from core.scenario.task_size import tokens_of
from core.search.plan import Interval, Plan


def wall_clock_hours(scenario: Scenario, plan: Plan) -> Interval:
    """P10 (fast), P50 and P90 (slow) duration in hours; the slow end uses the throughput's P10."""
    at = plan.tokens_per_s
    to_hours = plan.wall_clock_hours * at.p50
    return Interval(p10=to_hours / at.p90, p50=plan.wall_clock_hours, p90=to_hours / at.p10)


def run_tokens(scenario: Scenario) -> float:
    """Tokens that the GPUs process during the run, padding included."""
    return tokens_of(
        num_tokens=scenario.num_tokens,
        num_examples=scenario.num_examples,
        tokens_per_example=scenario.tokens_per_example,
        seq_len=scenario.seq_len,
        epochs=scenario.epochs,
        packing_efficiency=scenario.packing_efficiency,
    )

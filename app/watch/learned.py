"""What a run teaches the next plan: its speed as a measurement, its stops and its checkpoints."""

from __future__ import annotations

from app.document import format as fmt
from app.imports.forecast import anchored
from app.watch.run import State
from core.failures.failures import GPUS_PER_COUNTED_NODE
from core.scenario import Scenario
from core.units import DAY_S

LEAST_STEPS = 20


def with_speed(scenario: Scenario, state: State) -> Scenario | None:
    """The scenario with the measured speed as its anchor; None: too few steps were logged."""
    if state.speed is None or state.num_steps < LEAST_STEPS:
        return None
    run = state.held.run
    return anchored(
        scenario, state.speed / run.num_gpus, gpu=run.accelerator, num_gpus=run.num_gpus,
        layout=run.layout,
    )  # fmt: skip


def failure_fields(state: State) -> dict[str, float]:
    """Fields of a scenario as this run had them; {} without a restart and a checkpoint. Each stop
    counts as one of its machines: a log does not tell failures of machines from those of software.
    """
    found: dict[str, float] = {}
    restarts = [e for e in state.events if e.kind == "restart"]
    if restarts and state.elapsed_s > 0:
        nodes = max(state.held.run.num_gpus / GPUS_PER_COUNTED_NODE, 1.0)
        redone = sum(e.tokens_redone for e in restarts) / state.outlook.speed.p50
        down = max(sum(e.lost_s for e in restarts) - redone, 0.0) / len(restarts)
        found["failures_per_node_day"] = len(restarts) / (state.elapsed_s / DAY_S) / nodes
        found |= {"job_failures_per_day": 0.0, "detection_s": 0.0, "wait_s": 0.0, "restart_s": down}
    if state.checkpoint_s is not None:
        found["checkpoint_s"] = state.checkpoint_s
    return {name: float(f"{value:.4g}") for name, value in found.items()}


def failure_sentence(fields: dict[str, float], state: State) -> str:
    """What the fields say."""
    parts = []
    if "restart_s" in fields:
        count = sum(e.kind == "restart" for e in state.events)
        parts.append(
            f"{count} restarts in {fmt.days(state.elapsed_s / 3600)}, each down for "
            f"{fmt.days(fields['restart_s'] / 3600)}: "
            f"{fields['failures_per_node_day']:.3g} failures per node-day"
        )
    if "checkpoint_s" in fields:
        parts.append(f"a checkpoint stops training for {fields['checkpoint_s']:.3g} s")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""

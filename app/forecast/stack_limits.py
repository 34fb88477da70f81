"""What the stack of a scenario cannot do, and the choices that it leaves to the search."""

from __future__ import annotations

from core.errors import ScenarioError
from core.layout.layouts import SEARCHED_RECOMPUTE
from core.machine.accelerator import Accelerator
from core.scenario import Scenario
from hardware.stack_support import lacks, support_of

DEGREES = {
    "tp": "tensor parallelism",
    "pp": "pipeline parallelism",
    "cp": "context parallelism",
    "ep": "expert parallelism",
    "etp": "tensor parallelism of experts",
}


def check_stack(scenario: Scenario) -> None:
    """Raise ScenarioError for a task, number format or degree that the stack does not have."""
    wanted: list[tuple[str, str, str]] = [("tasks", scenario.task, f"task {scenario.task}")]
    wanted.append(("precisions", scenario.precision, f"precision {scenario.precision}"))
    for name, what in DEGREES.items():
        if (getattr(scenario, name) or 1) > 1:
            wanted.append(("degrees", name, f"{what} ({name})"))
    for column, value, what in wanted:
        if sentence := lacks(scenario.stack, column, value, what):
            raise ScenarioError(sentence)


def runs_on(stack: str, accelerator: Accelerator) -> bool:
    """Whether the stack runs on accelerators of this vendor; true where nothing is known."""
    support = support_of(stack)
    return support is None or accelerator.vendor in {*support.vendors, "custom"}


def degree(scenario: Scenario, name: str) -> int | None:
    """The degree that the scenario gives; 1 if its stack has none; None: searched."""
    given: int | None = getattr(scenario, name)
    support = support_of(scenario.stack)
    if given is None and support is not None and name not in support.degrees:
        return 1
    return given


def layer_split(scenario: Scenario) -> str:
    """How the stack can divide layers among stages; any way where nothing is known."""
    support = support_of(scenario.stack)
    return "any" if support is None else support.layer_split


def recomputes(scenario: Scenario, usual: tuple[str, ...]) -> tuple[str, ...]:
    """The recompute modes to search: those given, else the usual ones of the stack, else all that
    it has."""
    support = support_of(scenario.stack)
    if scenario.recompute or usual or support is None:
        return tuple(scenario.recompute) or usual
    return tuple(r for r in SEARCHED_RECOMPUTE if r in support.recomputes)

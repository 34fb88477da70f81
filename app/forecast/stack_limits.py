"""Software stacks of a scenario: those that take it, what each cannot do, and the choices that each
leaves to the search.

A variant is the scenario with every automatic choice fixed; today the only one is its stack.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.errors import ScenarioError
from core.layout.layouts import SEARCHED_RECOMPUTE
from core.machine.accelerator import Accelerator
from core.scenario import Scenario
from core.scenario.types import AUTO
from core.search.plan import Plan
from hardware import facts
from hardware.efficiency import GENERIC, stacks
from hardware.stack_support import Support, lacks, support_of, supports

DEGREES = {
    "tp": "tensor parallelism",
    "pp": "pipeline parallelism",
    "cp": "context parallelism",
    "ep": "expert parallelism",
    "etp": "tensor parallelism of experts",
}
SEARCHED_OFFLOADS = ("cpu/none", "cpu/cpu")  # optimizer/weights


def as_planned(scenario: Scenario, plan: Plan) -> Scenario:
    """The scenario with the automatic choices that a plan made: what the plan is computed from."""
    if scenario.stack == plan.stack:
        return scenario
    return scenario.model_copy(update={"stack": plan.stack})


def variants_of(scenario: Scenario) -> tuple[Scenario, ...]:
    """The scenario with each stack that takes it, in the order of the table; of equally fast ones
    the first wins. The last is of no particular stack: for what no other runs on."""
    if scenario.stack != AUTO:
        return (scenario,)
    names = [name for name in supports() if not obstacle(scenario, name)]
    return tuple(scenario.model_copy(update={"stack": n}) for n in (*names, GENERIC))


def asked_of(variants: Sequence[Scenario], accelerator: str) -> list[int]:
    """The numbers of the variants that are asked about an accelerator, by its name: those whose
    stack runs on it, else the last."""
    chip = facts.accelerators().get(accelerator)  # None: the user's own, on which any stack runs
    own = range(len(variants) - 1)
    runs = [n for n in own if chip is None or runs_on(variants[n].stack, chip)]
    return runs or [len(variants) - 1]


def software(scenario: Scenario) -> str:
    """The stack whose habits and rates count: no particular one where the scenario has none yet."""
    return GENERIC if scenario.stack == AUTO else scenario.stack


def check_stack(scenario: Scenario) -> None:
    """Raise ScenarioError for a task, number format or degree that the stack does not have."""
    for column, value, what in _needs(scenario):
        if sentence := lacks(scenario.stack, column, value, what):
            raise ScenarioError(sentence)


def obstacle(scenario: Scenario, stack: str) -> str:
    """The first thing that a stack with a launch file cannot do for a scenario, in a few words; ''
    if it takes it."""
    support, habits = supports()[stack], stacks()[stack]
    for column, value, what in (*_needs(scenario), *_layout_needs(scenario, support)):
        if not support.takes(column, value):
            return f"no {what}"
    if support.models and scenario.model not in support.models:
        return f"no configuration of {scenario.model}"
    for name, given, has in (
        ("sharding", scenario.sharding, habits.shardings),
        ("recompute", scenario.recompute, support.recomputes),
    ):
        if given and not set(given) & set(has):
            return f"no {name} {' or '.join(given)}"
    return ""


def _needs(scenario: Scenario) -> Iterator[tuple[str, str, str]]:
    """What a scenario needs of its stack: the column of the table, the value, and words."""
    yield "tasks", scenario.task, f"task {scenario.task}"
    yield "precisions", scenario.precision, f"precision {scenario.precision}"
    for name, what in DEGREES.items():
        if (getattr(scenario, name) or 1) > 1:
            yield "degrees", name, f"{what} ({name})"


def _layout_needs(scenario: Scenario, support: Support) -> Iterator[tuple[str, str, str]]:
    """What the fixed parts of the layout need besides degrees."""
    if (scenario.pp or 1) > 1:
        yield "schedules", scenario.schedule, f"schedule {scenario.schedule}"
    if (scenario.cp or 1) > 1:
        method = scenario.context_parallel
        yield "context_methods", method, f"{method} context parallelism"
    given = (scenario.offload_optimizer, scenario.offload_params)
    places = "/".join("none" if p == "search" else p for p in given)
    if places != "none/none":
        yield "offloads", places, f"offload of optimizer/weights to {places}"


def runs_on(stack: str, accelerator: Accelerator) -> bool:
    """Whether the stack runs on accelerators of this vendor; true where nothing is known."""
    support = support_of(stack)
    return support is None or accelerator.vendor in {*support.vendors, "custom"}


def is_compared(variants: Sequence[Scenario], accelerator: Accelerator) -> bool:
    """Whether an accelerator is compared: a stack runs on it, or the scenario names it and leaves
    the stack open."""
    own = variants[:-1] or variants
    is_open = len(variants) > 1 and accelerator.name in variants[0].gpu
    return is_open or any(runs_on(v.stack, accelerator) for v in own)


def degree(scenario: Scenario, name: str) -> int | None:
    """The degree that the scenario gives; 1 if its stack has none, or not in the way that the
    scenario asks for; None: searched."""
    given: int | None = getattr(scenario, name)
    support = support_of(scenario.stack)
    if given is not None or support is None:
        return given
    lacking = name not in support.degrees or (
        (name == "pp" and scenario.schedule not in support.schedules)
        or (name == "cp" and scenario.context_parallel not in support.context_methods)
    )
    return 1 if lacking else None


def shardings(scenario: Scenario) -> tuple[str, ...]:
    """The strategies to search: those given that the stack has, else all given, else the stack's;
    empty is any."""
    has = stacks()[software(scenario)].shardings
    both = tuple(s for s in scenario.sharding if s in has)
    return both or tuple(scenario.sharding) or has


def layer_split(scenario: Scenario) -> str:
    """How the stack can divide layers among stages; any way where nothing is known."""
    support = support_of(scenario.stack)
    return "any" if support is None else support.layer_split


def recomputes(scenario: Scenario, usual: tuple[str, ...]) -> tuple[str, ...]:
    """The recompute modes to search: those given that the stack has, else all given, else the usual
    ones of the stack, else all that it has."""
    support = support_of(scenario.stack)
    given = tuple(scenario.recompute)
    if support is None:
        return given or usual
    if given:
        return tuple(r for r in given if r in support.recomputes) or given
    return usual or tuple(r for r in SEARCHED_RECOMPUTE if r in support.recomputes)


def searched_offloads(scenario: Scenario) -> frozenset[str]:
    """What the search may try to keep on the host, as optimizer/weights."""
    support = support_of(scenario.stack)
    return frozenset(s for s in SEARCHED_OFFLOADS if support is None or s in support.offloads)

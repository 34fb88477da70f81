"""What a software stack may do to be faster, where the scenario leaves it open: torch.compile,
which every job of such a stack takes, and CUDA graphs, which are one more choice of its search.

hardware/stack_habits.csv has the stacks and since when: `may_compile`; `may_graph`, whose value is
full (the whole step is a graph) or partial (layers are); and `graph_reserve`, the share of memory
that graphs hold in addition.
"""

from __future__ import annotations

from core.scenario import Scenario
from core.time.software import decimal_year
from hardware.efficiency import Stack
from hardware.stack_support import habit

SHARES = {"full": 1.0, "partial": 0.5}  # of a step: core.layout.workload


def _habit(scenario: Scenario, stack: Stack, quantity: str) -> str:
    return habit(stack, quantity, decimal_year(scenario.software_date))


def compiles(scenario: Scenario, stack: Stack) -> bool:
    """Whether the model is compiled: as the scenario says, else where the stack can. In the
    forecast a compiled model is never slower, nor larger."""
    if scenario.compile is not None:
        return scenario.compile
    return bool(_habit(scenario, stack, "may_compile"))


def compiles_loss(scenario: Scenario, stack: Stack) -> bool:
    """Whether the loss is compiled, too: not where a stack compiles its layers only."""
    return compiles(scenario, stack) and _habit(scenario, stack, "compiled_loss") == "1"


def can_graph(scenario: Scenario, stack: Stack) -> bool:
    """Whether the stack can run a step, or its layers, as CUDA graphs."""
    return bool(_habit(scenario, stack, "may_graph"))


def graphs_of(scenario: Scenario, stack: Stack) -> float:
    """The share of a step that CUDA graphs are; 0 where the search has not chosen them."""
    if not scenario.cuda_graphs:
        return 0.0
    return SHARES[_habit(scenario, stack, "may_graph") or "full"]


def graph_reserve(scenario: Scenario, stack: Stack) -> float:
    """Memory that CUDA graphs hold in addition, as a share of what is live."""
    if not scenario.cuda_graphs:
        return 0.0
    return float(_habit(scenario, stack, "graph_reserve") or 0.0)


def words_of(scenario: Scenario, stack: Stack) -> list[str]:
    """What is assumed of both where nobody asked for them, one sentence each."""
    found = []
    if scenario.compile is None and compiles(scenario, stack):
        found.append(
            f"{stack.name} compiles the model, without the minutes that this takes at first; "
            "compile=0 says otherwise."
        )
    if scenario.cuda_graphs and can_graph(scenario, stack):
        more = graph_reserve(scenario, stack)
        found.append(
            f"{stack.name} runs CUDA graphs, which hold {more:.0%} more memory (as one run of "
            "TorchTitan printed); cuda_graphs=0 says otherwise."
        )
    return found

"""Software stacks of a scenario: those that take it, what each cannot do, and the choices that each
leaves to the search.

A variant is the scenario with every automatic choice fixed: its stack, and its precision. What a
launch file takes is asked of its recipe, with small made-up jobs (`file_of`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

from app.scenario.model import model_of
from core.errors import ScenarioError
from core.layout.layouts import RECOMPUTE
from core.layout.precision import precision
from core.machine.accelerator import Accelerator, offers_precision
from core.scenario import Scenario, task_size
from core.scenario.types import AUTO
from core.search.plan import Layout
from hardware import facts
from hardware.efficiency import GENERIC, Stack, stacks
from hardware.habits import options
from hardware.habits.built_on import stack_named
from hardware.stack_support import Support, lacks, support_of, supports
from runners.recipes.job import Habits, Header, RecipeJob
from runners.recipes.registry import target, targets

DEGREES = {
    "tp": "tensor parallelism",
    "pp": "pipeline parallelism",
    "cp": "context parallelism",
    "ep": "expert parallelism",
    "etp": "tensor parallelism of experts",
}
SEARCHED_OFFLOADS = ("cpu/none", "cpu/cpu")  # optimizer/weights
FP8 = ("fp8", "fp8_rowwise", "fp8_blockwise", "mxfp8")  # the least work first
RANKS = 8  # data-parallel ranks of a made-up job


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFile:
    """What the launch file of a stack takes of a job."""

    why: str = ""  # why it takes no such job; '' if it takes one
    shardings: tuple[str, ...] = ()
    recomputes: tuple[str, ...] = ()
    # Pairs of a sharding and what does not go with it: a degree, dp, or an offload.
    apart: tuple[tuple[str, str], ...] = ()


def targets_of(stack: str) -> list[str]:
    """The kinds of launch file of a stack, its own first: accelerate has two, and a launcher of
    the same name, which starts anything."""
    support = support_of(stack)
    own = [] if support is None else [support.target]
    named = (n for n, t in targets().items() if n.startswith(f"{stack}-") and t.kind == "stack")
    return [*own, *(n for n in named if n not in own)]


def file_of(scenario: Scenario, stack: str) -> LaunchFile:
    """What the launch file of a stack takes of a scenario's job and fixed layout."""
    support, has = supports()[stack], stacks()[stack].shardings
    given = tuple(r for r in scenario.recompute if r in support.recomputes)
    vendors = tuple(sorted(support.vendors))
    return _file_of(
        stack,
        made_up(scenario, stack),
        vendors,
        tuple(s for s in has if s in scenario.sharding) or has,
        given or tuple(r for r in RECOMPUTE if r in support.recomputes),
        tuple(d for d in DEGREES if d in support.degrees),
    )


def made_up(scenario: Scenario, stack: str) -> RecipeJob:
    """A small job with what a scenario fixes."""
    model = model_of(scenario)
    places = _places(scenario)
    layout = Layout(
        tp=scenario.tp or 1, pp=scenario.pp or 1, cp=scenario.cp or 1, ep=scenario.ep or 1,
        etp=scenario.etp or 1, virtual_stages=scenario.virtual_stages or 1,
        dp_replicate=1, dp_shard=RANKS, sharding="ddp", recompute="none",
        micro_batch_size=1, num_microbatches=64 * (scenario.pp or 1), schedule=scenario.schedule,
        context_parallel=scenario.context_parallel,
        reshard_after_forward=scenario.reshard_after_forward,
        offload_optimizer=places[0], offload_params=places[1],
    )  # fmt: skip
    return RecipeJob(
        name="job", header=Header(product="", link="", prices="", forecast=(), assumptions=()),
        model_id=model.id, model_label=model.label, model=model.transformer,
        seq_len=scenario.seq_len, global_batch_size=0, num_steps=1, layout=layout,
        num_gpus=0, num_nodes=1, gpus_per_node=0, precision=scenario.precision,
        optimizer=scenario.optimizer, task=scenario.task, lora_rank=scenario.lora_rank,
        lora_targets=scenario.lora_targets,
        compiled=options.compiles(scenario, stacks()[stack]), accelerator="",
        vendor="", provider="", instance_type="", region="", purchase="", fabric="",
        memory_bytes_per_gpu=0.0, usable_bytes_per_gpu=0.0,
        habits=Habits(
            cuda_graphs=bool(scenario.cuda_graphs), chunked_loss=bool(scenario.chunked_loss),
            packed=is_packed(scenario),
        ),
    )  # fmt: skip


def packed_tokens_of(scenario: Scenario) -> float | None:
    """Mean length of examples that share a sequence; None where none do."""
    return task_size.packed_example_tokens(
        tokens_per_example=scenario.tokens_per_example,
        seq_len=float(scenario.seq_len),
        packing_efficiency=scenario.packing_efficiency,
    )


def is_packed(scenario: Scenario) -> bool:
    """Whether the launch file asks for packing: sequences are full, or examples share them."""
    return scenario.packing_efficiency == 1 or packed_tokens_of(scenario) is not None


@lru_cache(maxsize=1024)
def _file_of(
    stack: str,
    job: RecipeJob,
    vendors: tuple[str, ...],
    shardings: tuple[str, ...],
    recomputes: tuple[str, ...],
    degrees: tuple[str, ...],
) -> LaunchFile:
    kinds = [target(name) for name in targets_of(stack)]

    def why(sharding: str, recompute: str, **changed: Any) -> str:
        """Why no file takes such a layout; '' if one does."""
        ranks = int(changed.pop("dp", RANKS))
        copies = 2 if sharding == "hsdp" else 1
        lay = replace(
            job.layout, sharding=sharding, recompute=recompute, dp_replicate=copies,
            dp_shard=ranks // copies, **changed,
        )  # fmt: skip
        gpus = lay.tp * lay.pp * lay.cp * ranks
        batch = ranks * lay.num_microbatches
        asked = replace(job, layout=lay, num_gpus=gpus, gpus_per_node=gpus, global_batch_size=batch)
        of_vendor = [replace(asked, vendor=v) for v in vendors]
        reasons = [next(filter(None, map(kind.refuses, of_vendor)), "") for kind in kinds]
        return "" if "" in reasons else reasons[0]

    tried = {pair: why(*pair) for pair in product(shardings, recomputes)}
    taken = [pair for pair, reason in tried.items() if not reason]
    if not taken:
        return LaunchFile(why=next(iter(tried.values()), "no recompute mode of its own"))
    one = dict(reversed(taken))
    apart = []
    for sharding, recompute in one.items():
        changes: dict[str, dict[str, Any]] = {
            d: {d: 2} for d in degrees if getattr(job.layout, d) == 1
        }
        for name in SEARCHED_OFFLOADS:
            optimizer, weights = name.split("/")
            changes[name] = {"offload_optimizer": optimizer, "offload_params": weights}
        if "etp" in changes:
            changes["etp"] |= {"tp": 2}
        apart += [
            (sharding, name)
            for name, change in changes.items()
            if why(sharding, recompute, **change)
        ]
    found = tuple(one)
    if "ddp" in shardings and "ddp" not in one and not why("ddp", taken[0][1], dp=1):
        found += ("ddp",)  # one rank has nothing to shard
        apart.append(("ddp", "dp"))
    recomputes = tuple(dict.fromkeys(r for _, r in taken))
    return LaunchFile(shardings=found, recomputes=recomputes, apart=tuple(apart))


def variants_of(scenario: Scenario) -> tuple[Scenario, ...]:
    """The scenario with its automatic choices fixed: with each stack that takes it, in the order of
    the table, and then with no particular stack, for what no other runs on; each in the precision
    that is asked for and, if that is allowed, in the first recipe of fp8 that it takes; each
    without CUDA graphs and, where it can, with them. Of equally fast variants the first wins."""
    names = [scenario.stack]
    if scenario.stack == AUTO:
        names = [*(name for name in supports() if not obstacle(scenario, name)), GENERIC]
    found = []
    for name in names:
        base = scenario.model_copy(update={"stack": name, "allow_fp8": False})
        found.append(base)
        if scenario.allow_fp8:
            in_fp8 = (base.model_copy(update={"precision": p}) for p in FP8)
            found += [next((v for v in in_fp8 if _takes(v)), base)]
    if scenario.cuda_graphs is None:
        found = [v for base in found for v in _with_and_without_graphs(base)]
    return tuple(dict.fromkeys(found))


def _with_and_without_graphs(base: Scenario) -> list[Scenario]:
    """A variant without CUDA graphs and, where its stack can, with them."""
    eager, graphs = (base.model_copy(update={"cuda_graphs": on}) for on in (False, True))
    able = options.can_graph(base, stack_named(base.stack)) and _takes(graphs)
    return [eager, graphs] if able else [eager]


def _takes(variant: Scenario) -> bool:
    """Whether the stack of a variant takes its automatic choices."""
    if support_of(variant.stack) is None:
        return True
    return not obstacle(variant, variant.stack)


def not_taking(scenario: Scenario) -> dict[str, str]:
    """Why each stack that is not asked does not take a scenario, by its name and version; empty if
    the scenario names its stack."""
    if scenario.stack != AUTO:
        return {}
    return {s.label: why for name, s in supports().items() if (why := obstacle(scenario, name))}


def asked_of(variants: Sequence[Scenario], accelerator: str) -> list[int]:
    """The numbers of the variants that are asked about an accelerator, by its name: those whose
    stack runs on it, of them those that bring a training program; if there is none, those of no
    particular stack."""
    chip = facts.accelerators().get(accelerator)  # None: the user's own, on which any stack runs
    able = [n for n, v in enumerate(variants) if chip is None or _has_format(v, chip)]
    if chip is None or chip.vendor != "nvidia":  # graphs that nobody asked for
        eager = [n for n in able if not variants[n].cuda_graphs]
        able = eager or able
    own = [n for n in able if variants[n].stack != GENERIC]
    runs = [n for n in own if chip is None or runs_on(variants[n].stack, chip)]
    whole = [n for n in runs if (s := support_of(variants[n].stack)) is None or s.tasks]
    return whole or runs or [n for n in able if n not in own] or [len(variants) - 1]


def _has_format(variant: Scenario, chip: Accelerator) -> bool:
    recipe = precision(variant.precision)
    return offers_precision(chip, name=recipe.name, matmul_bits=recipe.matmul_bits)


def software(scenario: Scenario) -> str:
    """The stack whose habits and rates count: no particular one where the scenario has none yet."""
    return GENERIC if scenario.stack == AUTO else scenario.stack


def stack_of(scenario: Scenario) -> Stack:
    """The stack whose habits count, by its name or that of software that is built on it."""
    return stack_named(software(scenario))


def is_unknown(stack: Stack) -> bool:
    """Whether no rates were measured of a stack itself: of no particular one, or built on one."""
    return stack.name == GENERIC or bool(stack.software)


def check_stack(scenario: Scenario) -> None:
    """Raise ScenarioError for a task, number format or degree that the stack does not have. Of
    software of a named date nothing is known but of the version that the launch file is for."""
    if scenario.software_date:
        return
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
    return file_of(scenario, stack).why


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
    places = "/".join(_places(scenario))
    if places != "none/none":
        yield "offloads", places, f"offload of optimizer/weights to {places}"


def _places(scenario: Scenario) -> tuple[str, str]:
    """Where a scenario keeps optimizer and weights; the device, where the search decides."""
    optimizer, weights = scenario.offload_optimizer, scenario.offload_params
    return ("none" if optimizer == "search" else optimizer), (
        "none" if weights == "search" else weights
    )


def runs_on(stack: str, accelerator: Accelerator) -> bool:
    """Whether the stack runs on accelerators of this vendor; true where nothing is known."""
    support = support_of(stack)
    return support is None or accelerator.vendor in {*support.vendors, "custom"}


def is_compared(variants: Sequence[Scenario], accelerator: Accelerator) -> bool:
    """Whether an accelerator is compared: a stack runs on it, or the scenario names it and leaves
    the stack open."""
    own = [v for v in variants if v.stack != GENERIC] or variants
    is_open = len(own) < len(variants) and accelerator.name in variants[0].gpu
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


def layer_split(scenario: Scenario) -> str:
    """How the stack can divide layers among stages; any way where nothing is known."""
    support = support_of(scenario.stack)
    return "any" if support is None else support.layer_split


def choices_of(scenario: Scenario) -> dict[str, Any]:
    """What the stack of a scenario leaves of the choices of a search: its own strategies and
    recompute modes, those given among them, degrees, and what its launch file does not combine."""
    degrees = {name: degree(scenario, name) for name in DEGREES}
    stack, name = stack_of(scenario), software(scenario)
    usual = tuple(stack.recompute.split())
    # Where the user names a stack that has no launch file for the job, the job is as asked.
    refused = support_of(name) is None or obstacle(scenario, name)
    if refused:
        return {
            "shardings": tuple(scenario.sharding) or stack.shardings,
            "recomputes": tuple(scenario.recompute) or usual,
            **degrees,
        }
    file = file_of(scenario, name)
    modes = [r for r in usual or RECOMPUTE[:-1] if r in file.recomputes]
    return {
        "shardings": file.shardings,
        "recomputes": file.recomputes if scenario.recompute or not modes else tuple(modes),
        "apart": file.apart,
        **degrees,
    }

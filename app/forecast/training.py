"""What a scenario trains and which choices it fixes, as core's types."""

from __future__ import annotations

from dataclasses import replace
from math import nan

import numpy as np

from app.forecast import stack_limits
from app.scenario.model import NamedModel, model_of
from core.evidence import uncertainty
from core.layout import optimizers
from core.layout.layouts import Choices
from core.layout.precision import precision
from core.layout.routing import MAX_VIO, MAX_VIO_OF_BIAS, natural_load
from core.layout.sharding import (
    ADAMW_STATE_BYTES,
    GRADIENT_BYTES,
    INDEX,
    held_gradient_bytes,
    model_state_bytes_per_param,
    reduced_gradient_bytes,
)
from core.layout.workload import OFFLOAD, Workload
from core.machine.efficiency import Efficiency
from core.model import adapters
from core.money import cost as money_cost
from core.numeric import as_float
from core.scenario import Scenario, task_size
from core.search.job import Question
from core.time.software import decimal_year, is_since
from hardware.efficiency import GENERIC, Stack, efficiency, stacks
from hardware.habits import options
from hardware.habits.adapters import (
    LINEAR_LOSS,
    adapter_fields,
    runs_eagerly,
)
from hardware.habits.flags import differences, settled
from hardware.habits.optimizers import factors_by_operator, lists_tensors
from hardware.habits.workload_fields import expert_words, workload_fields
from hardware.model_facts import balances_by_bias
from hardware.stack_support import habit as habit_of
from hardware.stack_support import support_of

PARTIAL = 0.5  # of core.layout.workload.Workload.cuda_graphs: parts of a step are graphs
SEARCH = "search"  # value of a scenario's offload that lets the search decide
HELD = {2.0: "16 bits", 4.0: "fp32", 6.0: "16 bits and an fp32 sum"}


def question_of(scenario: Scenario) -> Question:
    """The question that a scenario asks of each machine."""
    work = workload_of(scenario, model_of(scenario))
    return Question(work=work, eff=efficiency_of(scenario, work), choices=choices_of(scenario))


def tokens_of(scenario: Scenario) -> float:
    """Tokens that the GPUs process during the run, padding included."""
    return task_size.tokens_of(
        num_tokens=scenario.num_tokens,
        num_examples=scenario.num_examples,
        tokens_per_example=scenario.tokens_per_example,
        seq_len=float(scenario.seq_len),
        epochs=scenario.epochs,
        packing_efficiency=scenario.packing_efficiency,
    )


def num_steps_of(scenario: Scenario) -> float:
    """Optimizer steps of the run."""
    return as_float(
        money_cost.num_steps(
            num_tokens=tokens_of(scenario),
            seq_len=scenario.seq_len,
            global_batch_size=scenario.global_batch_size,
        )
    )


def _document_tokens(scenario: Scenario, stack: Stack) -> float:
    """Mean length of the examples that attention keeps apart; NaN: it covers the sequence."""
    length = stack_limits.packed_tokens_of(scenario)
    year = decimal_year(scenario.software_date)
    masks = scenario.task != "pretrain" and habit_of(stack, "masks_documents", year) == "1"
    return length if masks and length is not None else nan


def workload_of(scenario: Scenario, model: NamedModel) -> Workload:
    """Training work of a scenario, with the habits of its stack in hardware/stacks.csv."""
    recipe = precision(scenario.precision)
    optimizer = optimizers.optimizer(scenario.optimizer)
    stack = stacks()[stack_limits.software(scenario)]
    wishes = asked(scenario, stack)
    does = {habit: settled(stack.name, habit, wanted) for habit, wanted in wishes.items()}
    year = decimal_year(scenario.software_date)
    trained, weight_bytes = 1.0, 2.0
    if scenario.task in ("lora", "qlora"):
        trained = as_float(
            adapters.trained_fraction(
                model.transformer,
                rank=float(scenario.lora_rank),
                on_mlp=scenario.lora_targets == "all",
            )
        )
    if scenario.task == "qlora":
        weight_bytes = adapters.nf4_bytes_per_param(
            double_quantisation=scenario.double_quantisation
        )
    return Workload(
        model=model.transformer,
        seq_len=float(scenario.seq_len),
        global_batch_size=float(scenario.global_batch_size),
        matmul_bits=float(recipe.matmul_bits),
        quantised_bytes=recipe.quantised_bytes,
        gathers_in_8_bits=recipe.name == "fp8" and habit_of(stack, "float8_gathers", year) == "1",
        document_tokens=_document_tokens(scenario, stack),
        optimizer_state_bytes=optimizer.state_bytes,
        ends_state_bytes=nan if optimizer.ends_state_bytes is None else optimizer.ends_state_bytes,
        orthogonalises=optimizer.orthogonalises,
        lists_tensors=lists_tensors(
            stack,
            year,
            optimizer=optimizer.name,
            tunes=scenario.task != "pretrain",
            compiled=options.compiles(scenario, stack),
        ),
        factors_by_operator=factors_by_operator(stack, year, factors=optimizer.factors),
        gradient_bytes=GRADIENT_BYTES[scenario.gradient_dtype or stack.gradient_dtype],
        offload_optimizer=OFFLOAD[said_place(scenario.offload_optimizer)],
        paged_optimizer=scenario.paged_optimizer,
        offload_params=OFFLOAD[said_place(scenario.offload_params)],
        offloads_activations=float(scenario.offload_activations),
        trained_fraction=trained,
        weight_bytes=weight_bytes,
        adapters=scenario.task in ("lora", "qlora"),
        **adapter_fields(stack, scenario.task, year, targets=scenario.lora_targets),
        unfused_attention=scenario.attention == "unfused",
        fused_heads_of=float(habit_of(stack, "fused_heads_of", year) or 1),
        flash2=does["attention"] == "flash2",
        compiled=options.compiles(scenario, stack),
        eager_norms=runs_eagerly(
            stack,
            year,
            tunes=scenario.task != "pretrain",
            loss=_loss_of(stack, year, does["loss"]),
        ),
        compiled_loss=options.compiles_loss(scenario, stack),
        cuda_graphs=options.graphs_of(scenario, stack) or PARTIAL * scenario.cuda_graph_parts,
        chunked_loss=does["loss"] == "chunked",
        loss_chunk_by_width=_loss_of(stack, year, does["loss"]) == LINEAR_LOSS,
        software_year=year,
        **workload_fields(stack, year),
        async_tp=scenario.async_tp == "on"
        or (not scenario.async_tp and bool(is_since(year, stack.async_tp_since))),
        overlaps_gradients=does["gradient_overlap"] == "on",
        sums_whole_gradients=habit_of(stack, "gradient_sums", year) == "whole",
        overlaps_weights=does["param_overlap"] == "on",
        routes_by_masks=habit_of(stack, "routes_by_masks", year) == "1",
        overlaps_experts=scenario.moe_overlap,
        deduplicates=does["dispatcher"] == "per_node",
        host_slowdown=scenario.host_slowdown,
        capacity_factor=scenario.capacity_factor or 0.0,
        expert_imbalance=nan if scenario.expert_imbalance is None else scenario.expert_imbalance,
        router_max_vio=_max_vio(scenario),
    )


def _loss_of(stack: Stack, year: float, loss: str) -> str:
    """The word of a run for its loss: Liger's comes with kernels for norms and rotation."""
    liger = loss == "chunked" and habit_of(stack, "chunks_loss_with", year) == LINEAR_LOSS
    return LINEAR_LOSS if liger else loss


def _max_vio(scenario: Scenario) -> float:
    return MAX_VIO_OF_BIAS if balances_by_bias(scenario.model) else MAX_VIO


def asked(scenario: Scenario, stack: Stack) -> dict[str, str]:
    """Habits that a scenario asks for and a stack may do otherwise (hardware/habits/flags.csv)."""
    overlaps = is_since(decimal_year(scenario.software_date), stack.gradient_overlap_since)
    return {
        "gradient_overlap": scenario.gradient_overlap or ("on" if overlaps else "off"),
        "param_overlap": scenario.param_overlap or "on",
        "attention": scenario.attention,
        "loss": "chunked" if chunks_loss(scenario, stack) else "whole",
        "dispatcher": scenario.moe_dispatcher,
    }


def chunks_loss(scenario: Scenario, stack: Stack) -> bool:
    """Whether the loss is computed in pieces: as the scenario says, else as the stack does."""
    if scenario.chunked_loss is not None:
        return scenario.chunked_loss
    return stack.chunks_loss(pretrains=scenario.task == "pretrain")


def efficiency_of(scenario: Scenario, work: Workload) -> Efficiency:
    """The efficiency profile of the stack, with error widths for this scenario. `generic` is no
    particular software, so it is as uncertain as an unknown one; experts and adapters are harder to
    forecast."""
    name = stack_limits.software(scenario)
    eff = efficiency(name)
    known = uncertainty.Circumstances(
        unknown_stack=float(name == GENERIC),
        experts=float(np.any(np.asarray(work.model.num_experts) > 0)),
        adapters=float(bool(work.adapters)),
    )
    return replace(
        eff,
        throughput_sigma=uncertainty.throughput_sigma(eff, known),
        memory_sigma=uncertainty.memory_sigma(eff, known),
        fragmentation=eff.fragmentation + options.graph_reserve(scenario, stacks()[name]),
    )


def habits_of(scenario: Scenario, sharding: str, *, ep: int) -> tuple[str, ...]:
    """What is assumed of the software where the scenario does not say, one sentence each."""
    stack = stacks()[stack_limits.software(scenario)]
    found = [f"{stack.name}: {stack.note}."] if stack.name != GENERIC and stack.note else []
    if support_of(stack.name) is None:
        found.append(f"No launch file starts this plan: {stack.name} has none.")
    if scenario.chunked_loss is None and chunks_loss(scenario, stack):
        whose = "software for fine-tuning" if stack.name == GENERIC else stack.name
        found.append(
            f"The loss is computed in pieces, as {whose} can: the logits never exist as a whole; "
            "chunked_loss=0 says otherwise."
        )
    if scenario.moe_overlap:
        found.append(
            "Expert traffic is assumed to run beside computation: the launch file leaves it to you "
            "(--overlap-moe-expert-parallel-comm of Megatron-LM)."
        )
    apart = _document_tokens(scenario, stack)
    if apart == apart:
        found.append(
            f"Examples of {apart:,.0f} tokens share a sequence, and attention keeps them apart, as "
            f"{stack.name} does: it costs what their lengths need, which are taken to be spread as "
            "widely as their mean."
        )
    if ep > 1 and scenario.expert_imbalance is scenario.capacity_factor is None:
        model = model_of(scenario).transformer
        load = natural_load(
            num_experts=model.num_experts, experts_per_token=model.experts_per_token, ep=ep,
            max_vio=_max_vio(scenario),
        )  # fmt: skip
        means = "a bias for each" if balances_by_bias(scenario.model) else "an auxiliary loss"
        found.append(
            f"Experts are assumed to be as busy as training with {means} leaves them "
            f"(arXiv:2408.15664): the busiest of {ep} ranks has {as_float(load):.2f} times the "
            "mean; expert_imbalance=1 says that they are balanced."
        )
    year = decimal_year(scenario.software_date)
    found += expert_words(stack, year, model_of(scenario).transformer)
    found += options.words_of(scenario, stack)
    found += [
        f"{stack.name} differs in the {text}; the forecast is of what it does."
        for text in differences(stack.name, asked(scenario, stack))
    ]
    if not scenario.gradient_dtype:
        habit = GRADIENT_BYTES[stack.gradient_dtype]
        strategy = INDEX[sharding]
        held = float(held_gradient_bytes(strategy=strategy, gradient_bytes=habit))
        as_held = habit_of(stack, "reduces_as_held", decimal_year(scenario.software_date)) == "1"
        reduced = float(
            reduced_gradient_bytes(strategy=strategy, gradient_bytes=habit, as_held=as_held)
        )
        states = float(
            model_state_bytes_per_param(strategy=strategy, shards=1.0, gradient_bytes=habit)
        ) + (optimizers.optimizer(scenario.optimizer).state_bytes - ADAMW_STATE_BYTES)
        whose = f"{stack.name} does" if stack.gradient_dtype else f"{sharding} does"
        found.append(
            f"Gradients are assumed to be held in {HELD[held]} and reduced in {reduced:g} bytes, "
            f"as {whose}: {states:.3g} bytes of weights, gradients and optimizer states per "
            "trained parameter before sharding; gradient_dtype says otherwise."
        )
    return tuple(found)


def choices_of(scenario: Scenario) -> Choices:
    """The layout choices that the scenario fixes, and what its stack supports."""
    return Choices(
        **stack_limits.choices_of(scenario),
        virtual_stages=scenario.virtual_stages,
        micro_batch_size=scenario.micro_batch_size,
        schedule=scenario.schedule,
        context_method=scenario.context_parallel,
        reshard=scenario.reshard_after_forward,
        fetches_params=said_place(scenario.offload_params) != "none",
        offloads=any(
            said_place(p) != "none" for p in (scenario.offload_params, scenario.offload_optimizer)
        ),
        dp_shard=scenario.dp_shard,
        searches_offload=searches_offload(scenario),
        tp_across_nodes=scenario.tp_across_nodes,
        layer_split=stack_limits.layer_split(scenario),
    )


def said_place(place: str) -> str:
    """Where a scenario places something. If the search decides, the device until it finds
    better."""
    return "none" if place == SEARCH else place


def searches_offload(scenario: Scenario) -> bool:
    """Whether the search tries host memory: only if the scenario gives no offload at all. A value
    for the optimizer or the weights applies to both, as in links older than the search."""
    return scenario.offload_optimizer == scenario.offload_params == SEARCH

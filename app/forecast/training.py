"""What a scenario trains and which choices it fixes, as core's types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import nan
from typing import Any

import numpy as np

from app.forecast import stack_limits
from app.scenario.model import NamedModel, model_of
from core.evidence import uncertainty
from core.layout import optimizers
from core.layout.layouts import Choices
from core.layout.precision import precision
from core.layout.routing import MAX_VIO, MAX_VIO_OF_BIAS, max_vio_of_alike, natural_load
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
from hardware.efficiency import GENERIC, Stack, efficiency
from hardware.habits import options
from hardware.habits.adapters import (
    LINEAR_LOSS,
    adapter_fields,
    runs_eagerly,
)
from hardware.habits.flags import differences, settled
from hardware.habits.optimizers import factors_by_operator, lists_tensors
from hardware.habits.remat import policy_fields
from hardware.habits.workload_fields import expert_words, workload_fields
from hardware.model_facts import balances_by_bias
from hardware.stack_support import habit as habit_of
from hardware.stack_support import support_of

ADAPTERS = ("lora", "qlora")
XLA = "xla"
SEQUENCE_PARALLEL = decimal_year("2022-06")  # published in May 2022
# Words of a scenario's loss kernel whose ranks hold the whole vocabulary. A loss of 16-bit logits
# holds them, their log-softmax and the gradient of each (pytorch/pytorch@0321fa774:
# aten/src/ATen/native/LossNLL.cpp), where software that does not say so holds fp32.
WHOLE, SIXTEEN_BIT, SIXTEEN_BIT_LOGITS = "standard", "standard_16", 8.0
WEIGHT_BYTES = {"bf16": 2.0, "fp32": 4.0}
# How a dispatcher of a scenario runs the experts, in place of the stack's habit.
EXPERT_SWITCHES = ("loops_experts", "routes_by_masks", "runs_every_expert")
EXPERTS_RUN = {"grouped": "", "masks": "routes_by_masks", "loop": "loops_experts"}
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
    stack = stack_limits.stack_of(scenario)
    does = settings_of(scenario, stack)
    year = decimal_year(scenario.software_date)
    tunes, has_adapters = scenario.task != "pretrain", scenario.task in ADAPTERS
    compiled, unfused = options.compiles(scenario, stack), scenario.attention == "unfused"
    loss = scenario.loss_kernel or _loss_of(stack, year, does["loss"])
    trained = 1.0
    if has_adapters:
        trained = as_float(
            adapters.trained_fraction(
                model.transformer,
                rank=float(scenario.lora_rank),
                on_mlp=scenario.lora_targets == "all",
            )
        )
    of_stack = workload_fields(stack, year)
    of_stack["reduces_as_held"] |= bool(scenario.gradient_dtype)
    if scenario.moe_dispatcher in EXPERTS_RUN:
        switch = EXPERTS_RUN[scenario.moe_dispatcher]
        of_stack |= {name: name == switch for name in EXPERT_SWITCHES}
    if loss == SIXTEEN_BIT:
        of_stack["logit_bytes"] = SIXTEEN_BIT_LOGITS
    return Workload(
        model=model.transformer,
        seq_len=float(scenario.seq_len),
        global_batch_size=float(scenario.global_batch_size),
        matmul_bits=float(recipe.matmul_bits),
        quantised_bytes=recipe.quantised_bytes,
        quantised_weight_bytes=recipe.quantised_weight_bytes,
        gathers_in_8_bits=recipe.name == "fp8" and habit_of(stack, "float8_gathers", year) == "1",
        document_tokens=_document_tokens(scenario, stack),
        optimizer_state_bytes=optimizer.state_bytes,
        ends_state_bytes=nan if optimizer.ends_state_bytes is None else optimizer.ends_state_bytes,
        sets_state_type=optimizer.sets_state_type,
        orthogonalises=optimizer.orthogonalises,
        lists_tensors=lists_tensors(
            stack, year, optimizer=optimizer.name, tunes=tunes, compiled=compiled
        ),
        factors_by_operator=factors_by_operator(stack, year, factors=optimizer.factors),
        gradient_bytes=GRADIENT_BYTES[scenario.gradient_dtype or stack.gradient_dtype],
        offload_optimizer=OFFLOAD[said_place(scenario.offload_optimizer)],
        paged_optimizer=scenario.paged_optimizer,
        offload_params=OFFLOAD[said_place(scenario.offload_params)],
        offloads_activations=scenario.offload_activations * scenario.activation_offload_share,
        recomputed_layers=scenario.recompute_share,
        trained_fraction=trained,
        weight_bytes=_frozen_bytes(scenario),
        adapters=has_adapters,
        **adapter_fields(stack, scenario.task, year, targets=scenario.lora_targets),
        # The compiler of XLA fuses what follows the scores, whatever the kernel is called.
        unfused_attention=unfused and stack.family != XLA,
        fused_heads_of=1.0 if unfused else float(habit_of(stack, "fused_heads_of", year) or 1),
        flash2=does["attention"] == "flash2",
        compiled=compiled,
        eager_norms=runs_eagerly(stack, year, tunes=tunes, said=scenario.norm_kernels, loss=loss),
        compiled_loss=loss == "compiled"
        or (not scenario.loss_kernel and options.compiles_loss(scenario, stack)),
        whole_logits=loss in (WHOLE, SIXTEEN_BIT),
        cuda_graphs=options.graphs_of(scenario, stack) or PARTIAL * scenario.cuda_graph_parts,
        chunked_loss=loss in ("chunked", LINEAR_LOSS),
        loss_chunk_by_width=loss == LINEAR_LOSS,
        software_year=year,
        **of_stack,
        **policy_fields(scenario.remat_policy, model.transformer),
        sequence_parallel=_splits_sequence(scenario, stack, year),
        async_tp=scenario.async_tp == "on"
        or (not scenario.async_tp and bool(is_since(year, stack.async_tp_since))),
        overlaps_gradients=does["gradient_overlap"] == "on",
        sums_whole_gradients=habit_of(stack, "gradient_sums", year) == "whole",
        overlaps_weights=does["param_overlap"] == "on",
        overlaps_experts=scenario.moe_overlap,
        deduplicates=does["dispatcher"] == "per_node",
        host_slowdown=scenario.host_slowdown,
        capacity_factor=scenario.capacity_factor or 0.0,
        expert_imbalance=nan if scenario.expert_imbalance is None else scenario.expert_imbalance,
        router_max_vio=_max_vio(scenario),
    )


def _frozen_bytes(scenario: Scenario) -> float:
    """Bytes of a frozen weight beside adapters."""
    if scenario.task == "qlora":
        return adapters.nf4_bytes_per_param(double_quantisation=scenario.double_quantisation)
    return 4.0 if scenario.task == "lora" and scenario.weight_dtype == "fp32" else 2.0


def _splits_sequence(scenario: Scenario, stack: Stack, year: float) -> bool:
    """Whether tensor parallelism comes with sequence parallelism (arXiv:2205.05198): as the
    scenario says, else as the stack does at its date."""
    if scenario.sequence_parallel is not None:
        return scenario.sequence_parallel
    return year >= SEQUENCE_PARALLEL and habit_of(stack, "sequence_parallel", year) != "0"


def _loss_of(stack: Stack, year: float, loss: str) -> str:
    """The word of a run for its loss: Liger's comes with kernels for norms and rotation."""
    liger = loss == "chunked" and habit_of(stack, "chunks_loss_with", year) == LINEAR_LOSS
    return LINEAR_LOSS if liger else loss


def _max_vio(scenario: Scenario) -> float:
    if scenario.filler_data:
        return max_vio_of_alike()
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


def settings_of(scenario: Scenario, stack: Stack) -> dict[str, str]:
    """Habits as the forecast takes them: as asked, or, of software of today, as its launch file has
    them (hardware/habits/flags.csv). Software of a named date ran as the scenario says."""
    wishes = asked(scenario, stack)
    if scenario.software_date:
        return wishes
    return {habit: settled(stack.name, habit, wanted) for habit, wanted in wishes.items()}


def profile_of(scenario: Scenario, table: Mapping[str, Efficiency] | None = None) -> Efficiency:
    """The efficiency profile of the stack, with what the scenario says of weights and graphs.
    `table`: profiles by stack, in place of those of hardware/efficiency.csv. Software that is built
    on a stack is as uncertain as an unknown one."""
    stack = stack_limits.stack_of(scenario)
    eff = efficiency(stack.name, table)
    changes: dict[str, Any] = {}
    if stack.software:
        generic = efficiency(GENERIC, table)
        changes = {name: getattr(generic, name) for name in ("throughput_sigma", "memory_sigma")}
    if scenario.weight_dtype:
        changes["own_weight_bytes"] = WEIGHT_BYTES[scenario.weight_dtype]
    if reserve := options.graph_reserve(scenario, stack):
        changes["fragmentation"] = eff.fragmentation + reserve
    return replace(eff, **changes) if changes else eff


def efficiency_of(scenario: Scenario, work: Workload) -> Efficiency:
    """The efficiency profile of the stack, with error widths for this scenario. `generic` is no
    particular software, so it is as uncertain as an unknown one; experts and adapters are harder to
    forecast."""
    eff = profile_of(scenario)
    stack = stack_limits.stack_of(scenario)
    known = uncertainty.Circumstances(
        unknown_stack=float(stack_limits.is_unknown(stack)),
        experts=float(np.any(np.asarray(work.model.num_experts) > 0)),
        adapters=float(bool(work.adapters)),
    )
    return replace(
        eff,
        throughput_sigma=uncertainty.throughput_sigma(eff, known),
        memory_sigma=uncertainty.memory_sigma(eff, known),
    )


def habits_of(scenario: Scenario, sharding: str, *, ep: int) -> tuple[str, ...]:
    """What is assumed of the software where the scenario does not say, one sentence each."""
    stack = stack_limits.stack_of(scenario)
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

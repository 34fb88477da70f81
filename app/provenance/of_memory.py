"""Where the memory of a plan comes from: peak, parts, capacity and the chance of running out."""

from __future__ import annotations

import numpy as np

from app.document import vocabulary
from app.forecast.case import Case
from app.provenance.of_facts import (
    dimensions_of,
    fractions,
    of_accelerator,
    of_layout,
    of_model,
    of_scenario,
)
from app.provenance.record import LEFT, Record, record, undated
from core.layout.pipeline import microbatches_in_flight, microbatches_on_last_stage
from core.layout.sharding import column
from core.layout.workload import layers_of_fullest_stage
from core.memory.activations import kept_bytes
from core.memory.counters import settled_bytes
from core.memory.layer_memory import one_layer
from core.memory.logits import logits_bytes
from core.memory.memory import live_bytes, stage_bytes
from core.memory.reserve import reserve_of
from core.memory.stage_params import stage_params
from core.memory.states import communicators
from core.numeric import as_float

STATES = {
    "parameters": "Model states",
    "gradients": "Model states",
    "optimizer": "Optimizers",
}
RESTS_ON = {
    "parameters": ("own_weight_bytes",),
    "gradients": ("own_weight_bytes",),
    "optimizer": ("own_weight_bytes",),
    "activations": ("activation_copies", "compiled_kept", "selective_kept", "routed_copies"),
    "logits": ("held_logits_bytes", "compiled_logits"),
    "buffers": ("communicator_bytes", "step_bytes", "bucket_copies"),
    "reserve": (),
}


def memory_records(case: Case) -> tuple[Record, ...]:
    """The peak and its parts, the capacity, and the chance of running out."""
    plan = case.plan
    parts = tuple(_part(case, name, size) for name, size in plan.memory_bytes.items())
    peak = record(
        "peak_memory_bytes", "Peak memory per GPU", sum(plan.memory_bytes.values()), "B",
        formula=" + ".join(p.key for p in parts), inputs=parts, topic="Peak memory",
    )  # fmt: skip
    capacity = of_accelerator(
        case.machine.accelerator, "memory_bytes", "B", key="memory_capacity_bytes",
        label="Usable memory of the device",
    )  # fmt: skip
    sigma = record(
        "memory_sigma", "Width of the memory forecast (log)", case.eff.memory_sigma, "",
        topic="Interval",
        inputs=fractions(case.scenario.stack, "memory_sigma", "memory_unknown_stack_sigma"),
    )  # fmt: skip
    out = record(
        "probability_oom", "Chance of out of memory", plan.probability_oom, "probability",
        topic="Interval", inputs=(capacity, peak, sigma),
        formula="erfc(ln(memory_capacity_bytes / peak_memory_bytes) / memory_sigma / sqrt(2)) / 2",
    )  # fmt: skip
    return peak, *parts, capacity, out


def _part(case: Case, name: str, size: float) -> Record:
    first = _fuller_is_first(case)
    topic, formula = "Peak memory", "0"
    inputs: tuple[Record, ...] = ()
    if name in STATES:
        topic = STATES[name]
        formula, inputs = _states(case, name, size, first=first)
    elif name == "activations":
        topic = "Activations"
        formula, inputs = _activations(case, size, first=first)
    elif name == "logits" and size > 0:
        formula, inputs = _logits(case)
    elif name == "buffers":
        formula, inputs = _buffers(case, size)
    elif name == "reserve":
        formula, inputs = _reserve(case)
    return record(
        f"memory_{name}_bytes", vocabulary.memory_part(name), size, "B", formula=formula,
        inputs=(*inputs, *fractions(case.scenario.stack, *RESTS_ON[name])), topic=topic,
        note="" if case.plan.layout.pp == 1 else f"of the {'first' if first else 'last'} stage",
    )  # fmt: skip


def _fuller_is_first(case: Case) -> bool:
    """Whether the first pipeline stage needs at least as much memory as the last."""
    first, last = (
        sum(as_float(v) for v in stage_bytes(case.work, case.lay, case.eff, first=end).values())
        for end in (True, False)
    )
    return first >= last


def _states(case: Case, name: str, size: float, *, first: bool) -> tuple[str, tuple[Record, ...]]:
    params = stage_params(case.work, case.lay, first=first)
    sharded = column(case.lay.strategy, f"shards_{name}") > 0
    held = as_float(params.held(sharded).all)
    of_gpu = record(
        f"held_{name}", f"Parameters whose {vocabulary.memory_part(name).lower()} one GPU holds",
        held, "parameters", topic="Model states",
        note="those of its stage and tensor-parallel rank, over the shards of "
        f"{case.plan.layout.sharding}",
        inputs=(*of_layout(case.plan, "tp", "pp", "dp_shard"), dimensions_of(case)),
    )  # fmt: skip
    each = record(
        f"{name}_bytes_per_param", "Bytes of each, on average", size / held, "bytes",
        topic=STATES[name], inputs=(_format_of(case, name),),
        note=f"as strategy, stack and optimizer keep them; 0 on the host; {LEFT}",
    )  # fmt: skip
    return f"{of_gpu.key} * {each.key}", (of_gpu, each)


def _format_of(case: Case, name: str) -> Record:
    """The scenario field that sets the format of the weights, gradients or optimizer states."""
    field = {"optimizer": "optimizer", "gradients": "gradient_dtype"}.get(name, "task")
    value = str(getattr(case.scenario, field))
    is_default = value == type(case.scenario).model_fields[field].default
    ref = "the default of this field: nobody gave another one" if is_default else "typed in"
    return record(
        field, field.replace("_", " ").capitalize(), None, "", "assumed" if is_default else "given",
        text=value or "as the stack or the strategy does", source=undated(ref, value),
    )  # fmt: skip


def _activations(case: Case, size: float, *, first: bool) -> tuple[str, tuple[Record, ...]]:
    work, lay = case.work, case.lay
    in_flight = microbatches_in_flight if first else microbatches_on_last_stage
    flight = as_float(in_flight(
        pp=lay.pp, virtual_stages=lay.virtual_stages, schedule=lay.schedule,
        num_microbatches=np.maximum(lay.num_microbatches, 1.0)))  # fmt: skip
    layers = as_float(layers_of_fullest_stage(work, pp=lay.pp))
    kept = as_float(kept_bytes(
        one_layer(work, lay, case.eff), recompute=lay.recompute, layers_in_flight=flight * layers,
        offloaded=work.offloads_activations))  # fmt: skip
    inputs = (
        record("layers_of_stage", "Layers of the largest pipeline stage", layers, "",
               topic="Pipeline"),
        record("microbatches_in_flight", "Micro-batches whose activations are kept at once",
               flight, "", topic="Pipeline"),
        record("kept_of_layer_bytes", "Kept of one layer and micro-batch",
               kept / (flight * layers), "B", topic="Activations",
               inputs=(of_scenario(case.scenario, "seq_len"),
                       *of_layout(case.plan, "micro_batch_size")),
               note=f"{case.plan.layout.recompute} recompute"),
        record("recomputed_bytes", "The layer in backward, computed again", size - kept, "B",
               topic="Activations", note=f"less what the logits' memory covers; {LEFT}"),
    )  # fmt: skip
    formula = "layers_of_stage * microbatches_in_flight * kept_of_layer_bytes + recomputed_bytes"
    return formula, inputs


def _logits(case: Case) -> tuple[str, tuple[Record, ...]]:
    lay, vocabulary_size = case.plan.layout, as_float(case.work.model.vocab_size)
    number = lay.micro_batch_size * as_float(case.work.seq_len) / lay.cp * vocabulary_size / lay.tp
    each = as_float(logits_bytes(case.work, case.lay, case.eff)) / number
    inputs = (
        *of_layout(case.plan, "micro_batch_size"),
        of_scenario(case.scenario, "seq_len"),
        *of_layout(case.plan, "cp", "tp"),
        of_model(case.scenario, "vocab_size", "Vocabulary", vocabulary_size, "tokens"),
        record("bytes_per_logit", "Bytes per logit: copies and gradient", each, "bytes",
               topic="Peak memory"),
    )  # fmt: skip
    return "micro_batch_size * seq_len / cp * vocab_size / tp * bytes_per_logit", inputs


def _buffers(case: Case, size: float) -> tuple[str, tuple[Record, ...]]:
    groups = as_float(communicators(case.lay))
    inputs = (
        record("num_communicators", "Process groups of more than one rank", groups, "",
               note="one for each of data, tensor, pipeline, context, expert parallelism in use"),
        record("gathered_bytes", "Weights gathered, gradients and copies of a moment",
               size - groups * as_float(case.eff.communicator_bytes), "B", topic="Peak memory",
               note=LEFT),
    )  # fmt: skip
    return "num_communicators * efficiency_communicator_bytes + gathered_bytes", inputs


def _reserve(case: Case) -> tuple[str, tuple[Record, ...]]:
    parts = live_bytes(case.work, case.lay, case.eff)
    live = sum(as_float(v) for v in parts.values())
    fixed = reserve_of(case.cluster, case.eff, live=0.0)
    reserve, pool, fragmentation = fractions(
        case.scenario.stack, "reserve_bytes", "memory_pool", "fragmentation"
    )
    settled = as_float(settled_bytes(case.lay, case.eff, parts))
    inputs = (
        record("context_bytes", "Context and workspaces, at most a tenth of the device, or what a "
               "pool leaves of it", fixed, "B", topic="Peak memory", inputs=(reserve, pool)),
        fragmentation,
        record("live_bytes", "All other parts", live, "B", topic="Peak memory"),
        record("settled_bytes", "Of them what is allocated once: weights, optimizer states, flat "
               "gradients, buffers of communicators", settled, "B", topic="Peak memory"),
    )  # fmt: skip
    part = "efficiency_fragmentation * (live_bytes - settled_bytes)"
    return f"context_bytes + {part}", inputs

"""Where the memory of a plan comes from: peak, parts, capacity and the chance of running out."""

from __future__ import annotations

import numpy as np

from app.document import vocabulary as words
from app.forecast.case import Case
from app.provenance.of_facts import fraction, fractions, of_accelerator, of_layout, of_model
from app.provenance.of_step import seq_len
from app.provenance.record import LEFT, Record, by_topic, record
from core.layout.layouts import Layouts
from core.layout.pipeline import (
    layers_of_largest_stage,
    microbatches_in_flight,
    microbatches_on_last_stage,
)
from core.layout.sharding import column
from core.machine.accelerator import Source
from core.memory.activations import kept_bytes
from core.memory.memory import (
    StageParams,
    communicators,
    live_bytes,
    logits_bytes,
    one_layer,
    reserve_bytes,
    stage_bytes,
    stage_params,
)
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
        "peak_memory_bytes", "Peak memory per GPU", float(sum(plan.memory_bytes.values())), "B",
        "computed", formula=" + ".join(p.key for p in parts), inputs=parts,
        topic=by_topic("Peak memory"),
    )  # fmt: skip
    capacity = of_accelerator(
        case.machine.accelerator, "memory_bytes", "B", key="memory_capacity_bytes",
        label="Usable memory of the device",
    )  # fmt: skip
    return peak, *parts, capacity, _oom(case, peak, capacity)


def _oom(case: Case, peak: Record, capacity: Record) -> Record:
    sigma = record(
        "memory_sigma", "Width of the memory forecast (log)", as_float(case.eff.memory_sigma), "",
        "computed", topic=by_topic("Interval"),
        inputs=fractions(case.scenario.stack, "memory_sigma", "memory_unknown_stack_sigma"),
    )  # fmt: skip
    return record(
        "probability_oom", "Chance of out of memory", case.plan.probability_oom, "probability",
        "computed", topic=by_topic("Interval"), inputs=(capacity, peak, sigma),
        formula="erfc(ln(memory_capacity_bytes / peak_memory_bytes) / memory_sigma / sqrt(2)) / 2",
    )  # fmt: skip


def _part(case: Case, name: str, size: float) -> Record:
    first = _fuller_is_first(case)
    rests = fractions(case.scenario.stack, *RESTS_ON[name])
    if name in STATES:
        formula, inputs = _states(case, name, size, first=first)
    elif name == "activations":
        formula, inputs = _activations(case, size, first=first)
    elif name == "logits" and size > 0:
        formula, inputs = _logits(case, size)
    elif name == "buffers":
        formula, inputs = _buffers(case, size)
    elif name == "reserve":
        formula, inputs = _reserve(case, size)
    else:
        formula, inputs = "0", ()
    topic = STATES.get(name) or {"activations": "Activations"}.get(name, "Peak memory")
    end = "" if case.plan.layout.pp == 1 else f"of the {'first' if first else 'last'} stage"
    return record(
        f"memory_{name}_bytes", words.memory_part(name), size, "B", "computed", formula=formula,
        inputs=(*inputs, *rests), topic=by_topic(topic), note=end,
    )  # fmt: skip


def _fuller_is_first(case: Case) -> bool:
    """Whether the first pipeline stage needs at least as much memory as the last."""
    first, last = (
        sum(as_float(v) for v in stage_bytes(case.work, case.lay, case.eff, first=end).values())
        for end in (True, False)
    )
    return first >= last


def _held(lay: Layouts, params: StageParams, what: str) -> float:
    """For how many parameters of its stage one GPU keeps `what`: weights, gradients, optimizer."""
    sharded = column(lay.strategy, f"shards_{what}") > 0
    dense = params.dense / np.where(sharded, params.dense_shards, 1.0)
    return as_float(dense + params.experts / np.where(sharded, params.expert_shards, 1.0))


def _states(case: Case, name: str, size: float, *, first: bool) -> tuple[str, tuple[Record, ...]]:
    params = stage_params(case.work, case.lay, first=first)
    held = _held(case.lay, params, name)
    sharding = case.plan.layout.sharding
    of_gpu = record(
        f"held_{name}", f"Parameters whose {words.memory_part(name).lower()} one GPU holds", held,
        "parameters", "computed", topic=by_topic("Model states"),
        note=f"those of its stage and tensor-parallel rank, over the shards of {sharding}",
        inputs=(of_layout(case.plan, "tp", "Tensor-parallel degree"),
                of_layout(case.plan, "pp", "Pipeline stages"),
                of_layout(case.plan, "dp_shard", "Ranks that share states"),
                _model(case)),
    )  # fmt: skip
    each = record(
        f"{name}_bytes_per_param", "Bytes of each, on average", size / held, "bytes", "computed",
        topic=by_topic(STATES[name]),
        note=f"as strategy, stack and optimizer keep them; 0 on the host; {LEFT}",
        inputs=_choices(case, name),
    )  # fmt: skip
    return f"{of_gpu.key} * {each.key}", (of_gpu, each)


def _choices(case: Case, name: str) -> tuple[Record, ...]:
    """The scenario fields that set the format of the weights, gradients or optimizer states."""
    fields = {"optimizer": ("optimizer",), "gradients": ("gradient_dtype",)}.get(name, ("task",))
    return tuple(_choice(case, f) for f in fields)


def _choice(case: Case, field: str) -> Record:
    value = str(getattr(case.scenario, field))
    is_default = value == type(case.scenario).model_fields[field].default
    ref = "the default of this field: nobody gave another one" if is_default else "typed in"
    return record(
        field, field.replace("_", " ").capitalize(), None, "", "assumed" if is_default else "given",
        text=value or "as the stack or the strategy does",
        source=Source(ref=ref, date="", printed=value),
    )  # fmt: skip


def _model(case: Case) -> Record:
    label = f"Dimensions of {case.model.label}"
    return of_model(case.scenario, "model_dimensions", label, None, "")


def _activations(case: Case, size: float, *, first: bool) -> tuple[str, tuple[Record, ...]]:
    work, lay = case.work, case.lay
    in_flight = microbatches_in_flight if first else microbatches_on_last_stage
    flight = as_float(in_flight(
        pp=lay.pp, virtual_stages=lay.virtual_stages, schedule=lay.schedule,
        num_microbatches=np.maximum(lay.num_microbatches, 1.0)))  # fmt: skip
    layers = as_float(layers_of_largest_stage(num_layers=work.model.num_layers, pp=lay.pp))
    kept = as_float(kept_bytes(
        one_layer(work, lay, case.eff), recompute=lay.recompute, layers_in_flight=flight * layers,
        offloaded=work.offloads_activations))  # fmt: skip
    topic = by_topic("Activations")
    inputs = (
        record("layers_of_stage", "Layers of the largest pipeline stage", layers, "", "computed",
               topic=by_topic("Pipeline")),
        record("microbatches_in_flight", "Micro-batches whose activations are kept at once",
               flight, "", "computed", topic=by_topic("Pipeline")),
        record("kept_of_layer_bytes", "Kept of one layer and micro-batch",
               kept / (flight * layers), "B", "computed", topic=topic,
               inputs=(seq_len(case), of_layout(case.plan, "micro_batch_size",
                                                "Sequences per micro-batch")),
               note=f"{case.plan.layout.recompute} recompute"),
        record("recomputed_bytes", "The layer in backward, computed again", size - kept, "B",
               "computed", topic=topic, note=f"less what the logits' memory covers; {LEFT}"),
    )  # fmt: skip
    formula = "layers_of_stage * microbatches_in_flight * kept_of_layer_bytes + recomputed_bytes"
    return formula, inputs


def _logits(case: Case, size: float) -> tuple[str, tuple[Record, ...]]:
    lay, cp = case.plan.layout, float(case.plan.layout.cp)
    vocabulary = as_float(case.work.model.vocab_size)
    number = lay.micro_batch_size * as_float(case.work.seq_len) / cp * vocabulary / lay.tp
    each = as_float(logits_bytes(case.work, case.lay, case.eff)) / number
    inputs = (
        of_layout(case.plan, "micro_batch_size", "Sequences per micro-batch"),
        seq_len(case),
        of_layout(case.plan, "cp", "Context-parallel degree"),
        of_layout(case.plan, "tp", "Tensor-parallel degree"),
        of_model(case.scenario, "vocab_size", "Vocabulary", vocabulary, "tokens"),
        record("bytes_per_logit", "Bytes per logit: copies and gradient", each, "bytes", "computed",
               topic=by_topic("Peak memory")),
    )  # fmt: skip
    formula = "micro_batch_size * seq_len / cp * vocab_size / tp * bytes_per_logit"
    return formula, inputs


def _buffers(case: Case, size: float) -> tuple[str, tuple[Record, ...]]:
    groups = as_float(communicators(case.lay))
    each = as_float(case.eff.communicator_bytes)
    inputs = (
        record("num_communicators", "Process groups of more than one rank", groups, "", "computed",
               note="one for each of data, tensor, pipeline, context, expert parallelism in use"),
        record("gathered_bytes", "Weights gathered, gradients and copies of a moment",
               size - groups * each, "B", "computed", topic=by_topic("Peak memory"), note=LEFT),
    )  # fmt: skip
    return "num_communicators * efficiency_communicator_bytes + gathered_bytes", inputs


def _reserve(case: Case, size: float) -> tuple[str, tuple[Record, ...]]:
    live = sum(as_float(v) for v in live_bytes(case.work, case.lay, case.eff).values())
    fixed = as_float(reserve_bytes(live=0.0, memory_bytes=case.cluster.memory_bytes, eff=case.eff))
    stack = case.scenario.stack
    inputs = (
        record("context_bytes", "Context and workspaces, at most a tenth of the device", fixed,
               "B", "computed", topic=by_topic("Peak memory"),
               inputs=(fraction(stack, "reserve_bytes"),)),
        fraction(stack, "fragmentation"),
        record("live_bytes", "All other parts", live, "B", "computed",
               topic=by_topic("Peak memory")),
    )  # fmt: skip
    return "context_bytes + efficiency_fragmentation * live_bytes", inputs

"""Where the time of a step comes from: its parts, each down to rates and fitted fractions."""

from __future__ import annotations

from math import log2

import numpy as np

from app.document import vocabulary
from app.forecast.case import Case
from app.provenance.of_facts import (
    ceiling_of,
    fraction,
    fractions,
    measured_constants,
    network_of,
    of_accelerator,
    of_layout,
    of_model,
    of_scenario,
)
from app.provenance.record import LEFT, Record, record, undated
from core.layout.pipeline import bubble_fraction
from core.layout.workload import layers_of_fullest_stage
from core.memory.stage_params import stage_params
from core.numeric import as_float
from core.time import state_traffic, traffic
from core.time.layer import layer_seconds
from core.time.rates import rates
from core.time.repeated import repeated_collectives, repeated_share
from core.time.software import software_factor

MOVED = "measurement_factor"
# Parts of a step: the row of hardware/formulas.csv, and the fractions that the part depends on.
RESTS_ON: dict[str, tuple[str, tuple[str, ...]]] = {
    "matmul": ("Matrix products", ("matmul", "matmul_unhidden", "wave", "kernel_s")),
    "attention": ("Attention", ("attention_forward", "attention_in_step", "attention_backward",
                                "attention_half_tokens", "attention_half_head_dim")),
    "experts": ("Matrix products", ("matmul", "grouped_matmul", "matmul_unhidden", "kernel_s")),
    "memory_bound": ("Elementwise operators", ("memory", "elementwise", "onchip", "compiled")),
    "head_loss": ("Matrix products", ("matmul", "logits_bytes", "memory")),
    "recompute": ("Activations", ("selective_recompute", "full_recompute")),
    "tp_exposed": ("Collectives", ("scale_up", "hop", "tp_exposed")),
    "cp_exposed": ("Overlap", ("scale_up", "scale_out", "scale_out_doubling", "hop", "cp_exposed",
                               "overlap_window")),
    "ep_exposed": ("Overlap", ("all_to_all", "all_to_all_hop", "ep_exposed",
                               "ep_network_exposed")),
    "pp_exposed": ("Collectives", ("scale_out", "hop", "pp_exposed")),
    "dp_exposed": ("Overlap", ("scale_up", "scale_out", "scale_out_doubling", "hop", "dp_exposed",
                               "fsdp_exposed", "overlap_window", "overlap_slowdown")),
    "offload_exposed": ("Overlap", ("host_link", "nvme_bytes_per_s", "overlap_slowdown")),
    "bubble": ("Pipeline", ()),
    "optimizer": ("Optimizers", ("memory", "host_bytes_per_s")),
    "overhead": ("Elementwise operators", ("host_s", "queue", "straggler")),
}  # fmt: skip
OF_NETWORK = {"cp_exposed", "ep_exposed", "pp_exposed", "dp_exposed"}
OF_LAYER = ("matmul", "attention", "experts", "memory_bound")
OF_MEMORY = {"memory_bound", "optimizer", "head_loss"}


def step_record(case: Case) -> Record:
    """The whole step: the sum of its parts."""
    parts = tuple(_part(case, name, s) for name, s in case.plan.step_s.items() if s > 0)
    return record(
        "step_s", "Time of one step", case.step_s, "s",
        formula=" + ".join(p.key for p in parts), inputs=parts, topic="Overlap",
    )  # fmt: skip


# --- parts of a step -----------------------------------------------------------------------------


def _part(case: Case, name: str, seconds: float) -> Record:
    topic, quantities = RESTS_ON[name]
    formula, inputs, note = _formula_of(case, name, seconds / case.moved)
    if case.moved != 1.0:
        formula = f"({formula}) * {MOVED}"
        inputs = (*inputs, _measurement(case))
    return record(
        f"step_{name}_s", vocabulary.step_part(name), seconds, "s", formula=formula,
        inputs=(*inputs, *_rests_on(case, name, quantities)), topic=topic, note=note,
    )  # fmt: skip


def _measurement(case: Case) -> Record:
    given = case.scenario.anchor_tokens_per_s_per_gpu
    printed = "" if given is None else f"{given:g} tokens/s a GPU"
    return record(
        MOVED, "What measured runs, yours first, multiply seconds by", case.moved, "", "measured",
        source=undated("your measurement, typed in", printed),
    )  # fmt: skip


def _rests_on(case: Case, name: str, quantities: tuple[str, ...]) -> tuple[Record, ...]:
    """Facts and fitted fractions that a part depends on; its formula names only a few."""
    accelerator, found = case.machine.accelerator, []
    if name in OF_MEMORY:
        found.append(of_accelerator(accelerator, "memory_bytes_per_s", "B/s"))
    if name in OF_NETWORK | {"tp_exposed"}:
        found.append(of_accelerator(accelerator, "scale_up_bytes_per_s", "B/s"))
    if name in OF_NETWORK and case.plan.num_nodes > 1:
        found.append(network_of(case.scenario, case.machine))
    found += fractions(case.scenario.stack, *quantities)
    return (*found, *measured_constants(case.scenario, case.machine))


def _formula_of(case: Case, name: str, own_s: float) -> tuple[str, tuple[Record, ...], str]:
    """The formula, inputs and note of a part before it is adjusted to a measurement."""
    label, topic = vocabulary.step_part(name), RESTS_ON[name][0]
    if name in OF_LAYER:
        return _of_layers(case, name)
    if name == "recompute":
        return _recompute(case)
    if name == "tp_exposed":
        return _tensor_parallel(case)
    if name == "bubble":
        return _bubble(case, own_s)
    if name == "dp_exposed":
        return _data_parallel(case, own_s)
    if name == "overhead":
        return _overhead(case, own_s)
    if name in ("head_loss", "pp_exposed", "cp_exposed", "ep_exposed"):
        m = microbatches(case)
        one = record(f"{name}_of_microbatch_s", f"{label}, of a micro-batch",
                     own_s / (m.value or 1.0), "s", note=LEFT, topic=topic)  # fmt: skip
        return f"num_microbatches * {one.key}", (m, one), "the micro-batch's share of the part"
    one = record(f"{name}_of_step_s", f"{label}, as computed", own_s, "s", topic=topic, note=LEFT)
    return one.key, (one,), ""


def microbatches(case: Case) -> Record:
    """Micro-batches per step: the batch over the ranks times the sequences of a micro-batch."""
    lay = case.plan.layout
    ranks = record("data_parallel_ranks", "Data-parallel ranks", lay.dp_replicate * lay.dp_shard,
                   "", note="the GPUs over tp x pp x cp")  # fmt: skip
    return record(
        "num_microbatches", "Micro-batches per step", lay.num_microbatches, "", topic="Pipeline",
        formula="global_batch_size / (data_parallel_ranks * micro_batch_size)",
        inputs=(of_scenario(case.scenario, "global_batch_size"), ranks,
                *of_layout(case.plan, "micro_batch_size")),
    )  # fmt: skip


def layers_of_stage(case: Case) -> Record:
    """Layers of the largest pipeline stage."""
    total = as_float(case.work.model.num_layers)
    layers = of_model(case.scenario, "num_layers", "Layers of the model", total, "")
    by_cost = bool(np.any(case.work.stages_by_cost))
    return record(
        "layers_of_stage", "Layers of the largest pipeline stage",
        layers_of_fullest_stage(case.work, pp=case.plan.layout.pp), "",
        formula="" if by_cost else "ceil(num_layers / pp)",
        inputs=(layers, *of_layout(case.plan, "pp")), topic="Pipeline",
        note="dealt by their matrices, those of the LM head included" if by_cost else "",
    )  # fmt: skip


def _recompute(case: Case) -> tuple[str, tuple[Record, ...], str]:
    one, topic = layer_seconds(case.work, case.lay, case.cluster, case.eff), "Activations"
    forward = sum(as_float(getattr(one, f"{p}_forward")) for p in OF_LAYER)
    inputs = (
        microbatches(case), layers_of_stage(case),
        record("forward_s", "Forward pass of one layer", forward, "s", topic=topic),
        record("repeated_share", "Share of it that is repeated",
               repeated_share(case.lay, case.work.model, one, case.eff), "",
               note=f"{case.plan.layout.recompute} recompute"),
    )  # fmt: skip
    return "num_microbatches * layers_of_stage * forward_s * repeated_share", inputs, ""


def _of_layers(case: Case, name: str) -> tuple[str, tuple[Record, ...], str]:
    one = layer_seconds(case.work, case.lay, case.cluster, case.eff)
    rate = (_linear_rate(case),) if name in ("matmul", "experts") else ()
    forward_s, backward_s = (
        record(f"{name}_{way}_s", f"{vocabulary.step_part(name)} of one layer, {way}",
               getattr(one, f"{name}_{way}"), "s", topic=RESTS_ON[name][0], inputs=rate)
        for way in ("forward", "backward")
    )  # fmt: skip
    formula = f"num_microbatches * layers_of_stage * ({forward_s.key} + {backward_s.key})"
    return formula, (microbatches(case), layers_of_stage(case), forward_s, backward_s), ""


def _linear_rate(case: Case) -> Record:
    """FLOP/s that the matmuls of linear layers reach."""
    rate = rates(case.work, case.cluster, case.eff)
    value, sixteen = as_float(rate.linear_flops_per_s), as_float(rate.head_flops_per_s)
    software = record(
        "software_factor", "Software of this year over that of 2024",
        software_factor(case.work.software_year, case.eff.software_per_year), "",
        topic="Matrix products", inputs=(fraction(case.scenario.stack, "software_per_year"),),
    )  # fmt: skip
    inputs = [
        of_accelerator(case.machine.accelerator, "bf16_flops_per_s", "FLOP/s",
                       key="peak_flops_per_s"),
        ceiling_of(case.machine, as_float(case.cluster.ceiling)),
        fraction(case.scenario.stack, "matmul"),
        software,
    ]  # fmt: skip
    power = as_float(np.asarray(case.cluster.power_share) ** case.eff.power_exponent)
    for key, label, factor, rests in (
        ("power_factor", "What a power limit leaves", power, "power_exponent"),
        ("precision_factor", "Speed-up of the precision over 16 bits", value / sixteen,
         "fp4_of_peak_ratio" if as_float(case.work.matmul_bits) == 4 else "fp8_of_peak_ratio"),
    ):  # fmt: skip
        if abs(factor - 1) > 1e-9:
            inputs.append(record(key, label, factor, "", topic="Matrix products",
                                 inputs=(fraction(case.scenario.stack, rests),)))  # fmt: skip
    return record(
        "linear_flops_per_s", "Rate of the matmuls", value, "FLOP/s", topic="Matrix products",
        formula=" * ".join(i.key for i in inputs), inputs=tuple(inputs),
    )  # fmt: skip


def _tensor_parallel(case: Case) -> tuple[str, tuple[Record, ...], str]:
    again = as_float(repeated_collectives(case.lay.recompute, case.work.model)[0])
    hides = bool(as_float(case.work.async_tp))
    inputs = (
        microbatches(case), layers_of_stage(case),
        record("tp_of_layer_s", "Tensor-parallel collectives of one layer",
               traffic.tensor_parallel_s(case.work, case.lay, case.cluster, case.eff), "s",
               topic="Collectives"),
        record("tp_exposed_share", "Share of them that does not hide",
               case.eff.tp_exposed if hides else 1.0, "",
               note="tp_exposed below" if hides else "all: they are not cut in pieces"),
        record("tp_again", "With those that recompute repeats", 1 + again / 2, "",
               note="full recompute repeats 2 of 4 all-reduces, that of a dense MLP 1"),
    )  # fmt: skip
    return " * ".join(i.key for i in inputs), inputs, ""


def _bubble(case: Case, own_s: float) -> tuple[str, tuple[Record, ...], str]:
    lay = case.plan.layout
    degrees = (microbatches(case), *of_layout(case.plan, "pp", "virtual_stages"))
    if lay.schedule in ("naive", "zero_bubble"):
        busy = record("busy_s", "Pipeline bubble of this schedule, as computed", own_s, "s",
                      topic="Pipeline", note=LEFT)  # fmt: skip
        return "busy_s", (busy, *degrees), f"schedule {lay.schedule}"
    idle = as_float(
        bubble_fraction(
            pp=lay.pp, virtual_stages=lay.virtual_stages, num_microbatches=lay.num_microbatches
        )
    )
    busy = record("busy_s", "Seconds that a stage computes in a step, on average", own_s / idle,
                  "s", topic="Pipeline", note=LEFT)  # fmt: skip
    return "busy_s * (pp - 1) / (virtual_stages * num_microbatches)", (busy, *degrees), ""


def _data_parallel(case: Case, own_s: float) -> tuple[str, tuple[Record, ...], str]:
    work, lay, cluster, eff = case.work, case.lay, case.cluster, case.eff
    params = stage_params(work, lay, first=True)
    layers = layers_of_fullest_stage(work, pp=lay.pp)
    before, last = state_traffic.gathers_of_step_s(work, lay, cluster, eff, params, layers)
    times = 1 if case.plan.layout.pp > 1 else case.plan.layout.num_microbatches
    gathers = (as_float(before) * (times - 1) + as_float(last)) / times
    rest = (lay, cluster, eff, params, work.trained_fraction, work.gradient_bytes)
    latency_s = state_traffic.buckets_latency_s(*rest)
    reduced = as_float(
        state_traffic.gradient_s(*rest, latency_s=latency_s) + state_traffic.replica_s(*rest)
    )
    reduced += as_float(
        state_traffic.updated_weights_s(work, lay, cluster, eff, params, latency_s=latency_s)
    )
    inputs = (
        record("gathers_s", "Weights gathered, gradients scattered, on average", gathers, "s",
               topic="Collectives of states"),
        record("num_gathers", "Times a step", times, "",
               note="once a step in a pipeline, else once a micro-batch"),
        record("reduced_s", "Gradients reduced, once a step", reduced, "s",
               topic="Collectives of states"),
        record("hidden_s", "Of it, behind computation", times * gathers + reduced - own_s, "s",
               topic="Overlap", note=LEFT),
    )  # fmt: skip
    return "num_gathers * gathers_s + reduced_s - hidden_s", inputs, ""


def _overhead(case: Case, own_s: float) -> tuple[str, tuple[Record, ...], str]:
    nodes = max(case.plan.num_gpus / as_float(case.cluster.gpus_per_node), 1.0)
    lost = as_float(case.eff.straggler) * log2(nodes)
    stragglers = case.step_s / case.moved * lost / (1 + lost)
    fixed = as_float(case.eff.step_s)
    inputs = (
        record("launches_s", "Waiting for the host to launch kernels", own_s - stragglers - fixed,
               "s", topic="Elementwise operators", note=LEFT),
        fraction(case.scenario.stack, "step_s", label="Fixed seconds of a step"),
        record("stragglers_s", "Waiting for the slowest node", stragglers, "s",
               note="the fraction straggler for each doubling of nodes, of the whole step"),
    )  # fmt: skip
    return "launches_s + efficiency_step_s + stragglers_s", inputs, ""

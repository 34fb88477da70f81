"""The inputs of a forecast in words: names, units, values, and what widens its interval."""

from __future__ import annotations

from app.document import format as fmt

# Name of each input, and the unit in which it is shown ('' for a plain number).
INPUTS = {
    "num_tokens": ("Training tokens", ""),
    "seq_len": ("Sequence length", ""),
    "global_batch_size": ("Global batch size", ""),
    "num_microbatches": ("Global batch", ""),
    "host_slowdown": ("Time to launch kernels", "times the usual"),
    "capacity_factor": ("Capacity factor of an expert", ""),
    "expert_imbalance": ("Expert imbalance", ""),
    "peak_flops_per_s": ("16-bit peak of a GPU", "TFLOP/s"),
    "memory_bytes": ("Memory of a GPU", "GiB"),
    "memory_bytes_per_s": ("Memory bandwidth of a GPU", "GB/s"),
    "scale_up_bytes_per_s": ("Link inside the node", "GB/s"),
    "scale_out_bytes_per_s": ("Network of a GPU", "Gbit/s"),
    "host_link_bytes_per_s": ("Link to the host", "GB/s"),
    "scale_up_hop_s": ("Latency inside the node", "us"),
    "scale_out_hop_s": ("Latency of the network", "us"),
    "power_share": ("Share of full power", ""),
    "usd_per_instance_hour": ("Price of an instance-hour", "USD/h"),
    "matmul": ("Matmul efficiency", ""),
    "memory": ("Share of memory bandwidth reached", ""),
    "scale_up": ("Share of the node's link reached", ""),
    "scale_out": ("Share of the network reached", ""),
    "scale_out_doubling": ("Share of the network lost per doubling of domains", ""),
    "scale_out_all_to_all": ("Share of the network that all-to-all gets", ""),
    "all_to_all": ("Share reached by all-to-all", ""),
    "grouped_matmul": ("Efficiency of expert matmuls", ""),
    "attention_forward": ("Attention efficiency", ""),
    "attention_in_step": ("Attention efficiency inside a step", ""),
    "attention_backward": ("Attention backward over forward", ""),
    "full_recompute": ("Share that full recompute repeats", ""),
    "selective_core": ("Selective recompute is that of the attention core", ""),
    "selective_recompute": ("Share that selective recompute repeats", ""),
    "tp_exposed": ("Share of tensor-parallel traffic exposed", ""),
    "cp_exposed": ("Share of context-parallel traffic exposed", ""),
    "ep_exposed": ("Share of expert traffic exposed", ""),
    "ep_network_exposed": ("Share of expert traffic exposed, network", ""),
    "pp_exposed": ("Share of pipeline traffic exposed", ""),
    "dp_exposed": ("Share of gradient traffic exposed", ""),
    "fsdp_exposed": ("Share of weight gathers exposed", ""),
    "straggler": ("Time added per doubling of nodes", ""),
    "elementwise": ("Elementwise traffic over the operator count", ""),
    "fp8_of_peak_ratio": ("FP8 speed-up reached", ""),
    "software_per_year": ("Speed gained by a year of software", ""),
    "matmul_unhidden": ("Matmul traffic that is not hidden", ""),
    "logits_bytes": ("Bytes moved per logit", "B"),
    "host_s": ("Host time to launch a layer", "us"),
    "expert_host_s": ("Host time to launch experts", "us"),
    "overlap_slowdown": ("Slowdown of computing beside traffic", ""),
    "overlap_window": ("Share of computing that hides traffic", ""),
    "duplicate_s": ("Time to add one more row of equal index", "us"),
    "step_s": ("Fixed time of a step", "ms"),
    "wave": ("Idle time of last waves that is lost", ""),
}
UNKNOWNS = {
    "throughput_sigma": "the forecast's own error on published runs of known stacks",
    "inferred_sigma": "settings that are not said",
    "unknown_stack_sigma": "the software stack, which is not named",
    "unmeasured_sigma": "the accelerator, whose matmul nobody measured",
    "unseen_accelerator_sigma": "the accelerator, of which no published run was fitted",
    "scale_sigma": "more GPUs than any published run that was fitted",
    "network_sigma": "congestion of a network that is a guess",
    "experts_sigma": "routed experts",
    "adapters_sigma": "adapters (LoRA)",
    "host_time_sigma": "how long a step waits for its host",
    "bandwidth_sigma": "how long a step passes over memory",
    "half_network_sigma": "the network between instances, which is a guess",
}


def input_name(name: str) -> str:
    """The name of an input of the forecast; a software fraction without one keeps its own."""
    return INPUTS[name][0] if name in INPUTS else name.replace("_", " ")


def input_value(name: str, value: float) -> str:
    """The value of an input with its unit: 450 GB/s, 100B."""
    unit = INPUTS.get(name, ("", ""))[1]
    if name == "memory_bytes":
        return fmt.gib(value)
    if name == "usd_per_instance_hour":
        return fmt.usd_per_hour(value)
    if name == "num_tokens":
        return fmt.tokens(value)
    if name in ("seq_len", "global_batch_size"):
        return fmt.count(value)
    if unit.startswith("times"):
        return f"{number(value)} {unit}"
    if unit in ("", "B"):
        return f"{number(value)}{' B' if unit else ''}"
    return f"{fmt.in_unit(value, unit)} {unit}".replace(" us", " µs")


def number(value: float) -> str:
    """A number as text: whole numbers in full, others with three digits."""
    return fmt.count(value) if float(value).is_integer() else fmt.in_unit(value, "count")

"""What was typed after `runcast`: the options that set a field of the scenario, one per line.

`plan` and `estimate` share them; a field without an option of its own is set with `--set`. The
table is text and not derived from `Scenario`, because `runcast --help` must not wait for pydantic;
a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What was typed: fields that have an option, the KEY=VALUE of every `--set`, and what these
    override: a model or its config, a link or a file."""

    options: Mapping[str, str]
    sets: tuple[str, ...] = ()
    model: str | None = None
    config: str | None = None
    link: str | None = None
    file: str | None = None

    @property
    def is_new(self) -> bool:
        """Whether neither a link nor a file, which set every field, is reopened."""
        return self.link is None and self.file is None


@dataclass(frozen=True, slots=True)
class FieldOption:
    """One option; without a metavar it is a switch that sets its field to true."""

    field: str
    metavar: str
    help: str


TABLE = (
    FieldOption("num_tokens", "N", "Training tokens: 1e12, 15T, 500B."),
    FieldOption("num_examples", "N", "Examples of a data set, instead of tokens."),
    FieldOption("tokens_per_example", "N", "Their mean length; one sequence if left out."),
    FieldOption("epochs", "N", "Passes over the data."),
    FieldOption("packing_efficiency", "F", "Share of each sequence that is data, up to 1."),
    FieldOption("seq_len", "N", "Tokens per sequence; 8k is 8192."),
    FieldOption("global_batch_size", "N", "Sequences per optimizer step."),
    FieldOption("gpu", "A,B", "Accelerators to compare; all if left out."),
    FieldOption("num_gpus", "8,64", "GPU counts to compare."),
    FieldOption("cloud", "A,B", "Providers to compare."),
    FieldOption("purchase", "A,B", "on_demand, spot, reserved_1y, reserved_3y, ..."),
    FieldOption("quotes", "WHO,GPU,USD", "A price you were offered: acme,h100,2.20; repeat."),
    FieldOption(
        "stages", "NAME,K=V,..", "A stage: long,tokens=800B,seq_len=128k; repeat, in order."
    ),
    FieldOption("stages_may_move", "", "Each stage may rent machines of its own."),
    FieldOption("price_book", "NAME", "With the prices of this book: `runcast prices book`."),
    FieldOption("max_price_age_days", "D", "Recommend no older price; auto, or 0 for any age."),
    FieldOption("deadline_days", "D", "End within D days."),
    FieldOption("deadline_confidence", "P", "With this chance; 0.9 if left out."),
    FieldOption("budget_usd", "U", "Cost at most U dollars."),
    FieldOption("rank_by", "usd|time", "Cheapest or fastest first."),
    FieldOption("task", "T", "pretrain, sft, lora or qlora."),
    FieldOption("lora_rank", "N", "Rank of the adapters."),
    FieldOption("lora_targets", "T", "Matrices that get adapters: qkv, attention or all."),
    FieldOption("precision", "P", "bf16, fp16, fp8, ..."),
    FieldOption("allow_fp8", "", "Search fp8 beside the precision, where the stack has it."),
    FieldOption("optimizer", "O", "adamw, adamw_8bit, adamw_bf16, adafactor, muon, sgd."),
    FieldOption("weight_dtype", "T", "Weights that are updated, or frozen, in bf16 or fp32."),
    FieldOption("gradient_dtype", "T", "Gradients held in bf16, fp32 or bf16_fp32 (both)."),
    FieldOption("sharding", "A,B", "ddp, zero1, zero2, zero3, fsdp1, fsdp2, hsdp, zeropp."),
    FieldOption("recompute", "A,B", "none, selective, norm_act, mlp, full, offload."),
    FieldOption("recompute_share", "F", "Share of the layers that full recompute covers."),
    FieldOption("remat_policy", "NAME", "MaxText's checkpoint policy: save_qkv_proj, ..."),
    FieldOption("sequence_parallel", "", "Beside tensor parallelism; if left out, as the stack."),
    FieldOption("tp", "N", "Fix the tensor-parallel degree."),
    FieldOption("pp", "N", "Fix the pipeline-parallel degree."),
    FieldOption("cp", "N", "Fix the context-parallel degree."),
    FieldOption("ep", "N", "Fix the expert-parallel degree."),
    FieldOption("etp", "N", "Fix the tensor-parallel degree of one expert."),
    FieldOption("virtual_stages", "N", "Fix the model chunks of a pipeline stage."),
    FieldOption("micro_batch_size", "N", "Fix the sequences per micro-batch."),
    FieldOption("schedule", "S", "naive, gpipe, 1f1b, interleaved or zero_bubble."),
    FieldOption("context_parallel", "M", "ring, all_gather or ulysses."),
    FieldOption(
        "offload_optimizer", "TO", "Optimizer states on the host: none, cpu, nvme or search."
    ),
    FieldOption("offload_params", "TO", "Weights on the host: none, cpu, nvme or search."),
    FieldOption("offload_activations", "", "Kept activations wait in the host's memory."),
    FieldOption("activation_offload_share", "F", "Share of the layers that offload them."),
    FieldOption("filler_data", "", "A benchmark of repeated tokens, which take the same experts."),
    FieldOption("compile", "", "With torch.compile; if left out, where the stack can."),
    FieldOption("cuda_graphs", "", "With CUDA graphs; if left out, where that is faster."),
    FieldOption("chunked_loss", "", "Cross-entropy in pieces; if left out, as the stack."),
    FieldOption("loss_kernel", "K", "standard, parallel, compiled, chunked, fused_linear, ..."),
    FieldOption("norm_kernels", "K", "Norms and rotation: eager or fused."),
    FieldOption("stack", "NAME", "Software stack to assume."),
    FieldOption("software_date", "YYYY-MM", "Date of its release."),
    FieldOption("moe_dispatcher", "D", "Tokens cross the network per_node or per_expert, ..."),
    FieldOption("async_tp", "X", "Tensor parallelism in pieces beside its matmuls: on or off."),
    FieldOption("gradient_overlap", "X", "Gradients are reduced during backward: on or off."),
    FieldOption("param_overlap", "X", "Sharded weights are gathered ahead: on or off."),
    FieldOption("moe_overlap", "", "Expert traffic runs beside computation."),
    FieldOption("cuda_graph_parts", "", "CUDA graphs hold parts of a step only."),
    FieldOption("network_reduction", "", "The network's switches add up all-reduces (SHARP)."),
    FieldOption("calibration", "ID,ID", "Use the rates of these: `runcast calibrations`."),
    FieldOption("host_slowdown", "X", "Time to launch kernels over the usual."),
    FieldOption("power_cap_watts", "W", "Power limit of one GPU."),
    FieldOption("network_gbit_per_gpu", "GBIT", "Measured network of one GPU, one direction."),
    FieldOption("network_kind", "K", "infiniband, roce, efa or ethernet."),
    FieldOption("gpus_per_node", "N", "GPUs of a machine, where you know yours."),
    FieldOption("scale_up_domain", "N", "GPUs that NVLink or its like joins."),
    FieldOption("most_gpus_on_demand", "N", "GPUs that a seller has without a reservation."),
    FieldOption("startup_minutes", "MIN", "From asking for machines until training begins; paid."),
    FieldOption("failures_per_node_day", "F", "Failures of 8 GPUs and their host, a day."),
    FieldOption("job_failures_per_day", "F", "Stops of the whole job beside them, a day."),
    FieldOption("checkpoint_s", "S", "How long a checkpoint stops training."),
    FieldOption("upload_s", "S", "How long it is then uploaded behind training (0)."),
    FieldOption("async_checkpoint", "", "Save behind training; if left out, as the stack can."),
    FieldOption("interval_s", "S", "Work between checkpoints; the best if left out."),
    FieldOption("detection_s", "S", "From a failure until the job is started again."),
    FieldOption("restart_s", "S", "From there until it trains: start, reading the checkpoint."),
    FieldOption("wait_s", "S", "Mean wait for a replacement machine."),
    FieldOption("node_start_s", "S", "Mean start of a machine; all of them after a preemption."),
    FieldOption("spares", "N", "Spare machines that need no waiting."),
    FieldOption("repair_s", "S", "Until a failed machine is a spare again; with --spares."),
    FieldOption("min_nodes", "N", "Elastic: goes on with fewer machines, down to these."),
    FieldOption("slow_probability", "F", "Chance that a node is 10% slow."),
    FieldOption("weibull_shape", "K", "Simulate uptimes of this shape: below 1 they are bursty."),
    FieldOption("preemptions_per_day", "F", "Of one spot instance, while it is up."),
    FieldOption("outage_hours", "H", "Mean time until spot capacity is back."),
    FieldOption("preemption_cv", "X", "Burstiness: deviation over mean of spot uptimes."),
    FieldOption("spot_zones", "N", "Spot markets that the job may move between."),
    FieldOption("reserved_utilisation", "F", "Share of a reservation's term that is used."),
    FieldOption("block_days", "D", "Window of a capacity block, paid whole."),
    FieldOption("experiment_share", "F", "Experiments and failed runs, over the run."),
    FieldOption("dataset_tb", "TB", "Data that is stored."),
    FieldOption("kept_checkpoints", "N", "Checkpoints that are stored at a time."),
    FieldOption("pue", "F", "Energy of the data centre over that of its machines."),
    FieldOption("usd_per_kwh", "U", "Price of electricity, for an owner."),
    FieldOption("grid_g_co2e_per_kwh", "G", "Carbon of the grid; of the region if left out."),
)
REPEATED = {
    "quotes": ";",
    "stages": ";",
}  # options that may be given several times: what joins their values
OPTION_OF = {  # options whose name differs from their field
    "num_tokens": "--tokens",
    "quotes": "--quote",
    "stages": "--stage",
    "async_checkpoint": "--asynchronous",
    **{
        f"{name}_s": f"--{name.replace('_', '-')}-seconds"
        for name in (
            "checkpoint", "upload", "interval", "detection", "restart", "wait", "node_start",
            "repair",
        )
    },
}  # fmt: skip


def option_of(field: str) -> str | None:
    """The option that sets a field; None if only `--set` does."""
    if all(o.field != field for o in TABLE):
        return None
    return OPTION_OF.get(field, f"--{field.replace('_', '-')}")

"""The field table of a scenario: what to train, on what, and how.

Each field has a default, a label, a help text, a group of the form, and bounds. The codec is
core/scenario/__init__.py.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from core.machine.offer import Purchase
from core.scenario.types import (
    AUTO,
    BOOK,
    LAYOUT,
    MONTH,
    NAME,
    PLAN,
    POLICY,
    SNAPSHOT,
    Amount,
    AsyncTp,
    Attention,
    Calibrations,
    ContextParallel,
    Count,
    Days,
    Degree,
    Dispatcher,
    Dollars,
    Flag,
    GpuCount,
    GradientDtype,
    Large,
    Length,
    LoraTargets,
    LossKernel,
    Made,
    Minutes,
    Name,
    Names,
    NetworkKind,
    NormKernels,
    Offload,
    Optimizer,
    Pinned,
    Precision,
    PriceAge,
    Quotes,
    RankBy,
    Rate,
    Recompute,
    Schedule,
    Sharding,
    Small,
    SomeGpus,
    Task,
    WeightDtype,
    amount,
    counts,
    field,
    listed,
    number,
)


class ScenarioFields(BaseModel):
    """What to train, on what, and how. Field order is the order of the form and of the link."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    model: Name = field(
        "llama3.1-8b", "Model", "A preset, or 'custom' with the dimensions of a config.json"
    )
    num_tokens: Amount = field(
        1e11, "Training tokens", "Tokens to train on: 1e12, 15T, 500B", le=1e16
    )
    seq_len: Length = field(
        8192, "Sequence length", "Tokens per sequence; 8k is 8192", ge=16, le=16_777_216
    )
    global_batch_size: Count = field(
        512, "Global batch size", "Sequences per optimizer step", le=4_194_304
    )
    gpu: Names = field((), "GPUs", "Accelerators to compare; none chosen means every one")
    num_gpus: Annotated[tuple[GpuCount, ...], BeforeValidator(counts), Field(max_length=32)] = (
        field((), "GPU counts", "GPUs in the job; none chosen means powers of two of a node")
    )
    cloud: Names = field((), "Clouds", "Providers to compare; none chosen means every one")
    purchase: Annotated[tuple[Purchase, ...], BeforeValidator(listed), Field(min_length=1)] = field(
        ("on_demand",), "Purchase", "on_demand, spot, reserved_1y, reserved_3y, ..."
    )
    deadline_days: Days = field(None, "Deadline (days)", "The run must end within this many days")
    budget_usd: Dollars = field(None, "Budget (USD)", "The run must cost at most this much")
    rank_by: RankBy = field("usd", "Rank by", "usd: cheapest first; time: fastest first")

    price_book: Annotated[str, Field(max_length=40, pattern=BOOK)] = field(
        "", "Price book", "Own and negotiated prices, by the name they have on this server",
        "advanced",
    )  # fmt: skip
    max_price_age_days: PriceAge = field(
        None, "Oldest price (days)",
        "Older ones are not recommended; empty: by kind of seller; 0: any age", "advanced",
    )  # fmt: skip
    deadline_confidence: Annotated[float, BeforeValidator(number)] = field(
        0.9, "Sure of the deadline", "Chance to end by it that a plan needs: 0.9 is nine in ten",
        "advanced", ge=0.5, le=0.999,
    )  # fmt: skip
    quotes: Quotes = field(
        (), "Quotes", "Prices that you were offered, each like acme,h100,2.20: who sells it, the "
        "GPU, dollars of a GPU-hour", "quotes",
    )  # fmt: skip

    precision: Precision = field("bf16", "Precision", "Number format of the matmuls", "advanced")
    allow_fp8: bool = field(
        False, "Search fp8, too", "Where device and stack have it and it is faster", "advanced"
    )
    sharding: Annotated[tuple[Sharding, ...], BeforeValidator(listed)] = field(
        (), "Sharding", "Data-parallel strategies to search; none means all", "advanced"
    )
    recompute: Annotated[tuple[Recompute, ...], BeforeValidator(listed)] = field(
        (), "Recompute", "Activation recompute to search; none means all", "advanced"
    )
    dp_shard: Degree = field(
        None, "Sharding group", "Ranks that share one copy; empty searches them for HSDP",
        "advanced",
    )  # fmt: skip
    tp: Degree = field(None, "Tensor parallel", "Fix the degree; empty searches", "advanced")
    tp_across_nodes: bool = field(
        False, "Tensor parallel across nodes", "Otherwise only over the fast link", "advanced"
    )
    pp: Degree = field(None, "Pipeline parallel", "Fix the degree; empty searches", "advanced")
    micro_batch_size: Degree = field(
        None, "Micro-batch size", "Sequences per replica and micro-batch", "advanced"
    )
    stack: Name = field(
        AUTO,
        "Software stack",
        "What trains: auto is the fastest with a launch file; generic has none",
        "advanced",
    )
    virtual_stages: Degree = field(
        None, "Virtual stages", "Chunks per pipeline rank; empty searches", "advanced"
    )
    cp: Degree = field(None, "Context parallel", "Fix the degree; empty searches", "advanced")
    ep: Degree = field(None, "Expert parallel", "Fix the degree; empty searches", "advanced")
    etp: Degree = field(None, "Expert tensor parallel", "Cuts one expert", "advanced")
    schedule: Schedule = field(
        "interleaved", "Pipeline schedule", "Interleaved 1F1B searches virtual stages", "advanced"
    )
    context_parallel: ContextParallel = field(
        "ring", "Context-parallel method", "ring, all_gather or ulysses", "advanced"
    )
    reshard_after_forward: bool = field(
        True, "Reshard after forward", "FSDP: free the weights until backward", "advanced"
    )
    optimizer: Optimizer = field("adamw", "Optimizer", "Its states take memory", "advanced")
    gradient_dtype: GradientDtype = field(
        "", "Gradient type", "bf16, fp32 or bf16_fp32 (both); empty: of the stack", "advanced"
    )
    offload_optimizer: Offload = field(
        "search", "Offload optimizer", "States and update on the host; search tries it", "advanced"
    )
    offload_params: Offload = field(
        "search", "Offload parameters", "Weights fetched from the host; search tries it",
        "advanced",
    )  # fmt: skip
    offload_activations: bool = field(
        False, "Offload activations", "Kept activations wait in the host's memory", "advanced"
    )
    activation_offload_share: Annotated[float, BeforeValidator(number)] = field(
        1.0, "Offloaded activations (share)", "Layers whose activations are offloaded; 1: all",
        "advanced", gt=0, le=1,
    )  # fmt: skip
    compile: Flag = field(
        None, "torch.compile", "Fuses elementwise operators; empty: where the stack can", "advanced"
    )
    cuda_graphs: Flag = field(
        None, "CUDA graphs", "No launch overhead; empty: where the stack can and it is faster",
        "advanced",
    )  # fmt: skip
    chunked_loss: Flag = field(
        None, "Chunked cross-entropy", "Logits in pieces; empty: of the stack", "advanced"
    )
    loss_kernel: LossKernel = field(
        "", "Loss kernel",
        "standard holds every logit on each rank; empty: as the chunked cross-entropy says",
        "advanced",
    )  # fmt: skip
    norm_kernels: NormKernels = field(
        "", "Norm kernels", "eager runs norms and rotation by operator; empty: of the stack",
        "advanced",
    )  # fmt: skip
    sequence_parallel: Flag = field(
        None, "Sequence parallel", "Beside tensor parallelism; empty: of the stack", "advanced"
    )
    recompute_share: Annotated[float, BeforeValidator(number)] = field(
        1.0,
        "Recomputed layers (share)",
        "Layers that full recompute covers; 1: all",
        "advanced",
        gt=0,
        le=1,
    )
    remat_policy: Annotated[str, Field(max_length=200, pattern=POLICY)] = field(
        "", "Checkpoint policy",
        "MaxText's, beside selective recompute, like save_qkv_proj; empty: of the stack",
        "advanced",
    )  # fmt: skip
    weight_dtype: WeightDtype = field(
        "", "Weight type",
        "bf16 or fp32, of updated weights or a frozen base; empty: of the stack", "advanced",
    )  # fmt: skip
    attention: Attention = field(
        "flash3", "Attention kernel", "flash3: the best of the device", "advanced"
    )
    software_date: Annotated[str, Field(max_length=7, pattern=MONTH)] = field(
        "", "Software date", "YYYY-MM of the stack; empty: the newest measured", "advanced"
    )
    moe_dispatcher: Dispatcher = field(
        "per_node", "Expert dispatcher",
        "Tokens cross the network per_node or per_expert; grouped, masks, loop: run so, too",
        "advanced",
    )  # fmt: skip
    async_tp: AsyncTp = field(
        "", "Async tensor parallel", "Overlapped with matmuls: on or off; empty: of the stack",
        "advanced",
    )  # fmt: skip
    gradient_overlap: AsyncTp = field(
        "", "Gradients during backward", "Reduced beside it: on or off; empty: of the stack",
        "advanced",
    )  # fmt: skip
    param_overlap: AsyncTp = field(
        "", "Weights gathered ahead", "Of their layer: on or off; empty is on", "advanced"
    )
    moe_overlap: bool = field(
        False, "Expert traffic overlapped", "All-to-all beside computation", "advanced"
    )
    cuda_graph_parts: bool = field(
        False, "CUDA graphs of parts", "Attention and router, say; the rest is launched", "advanced"
    )
    network_reduction: bool = field(
        False, "Reduction in the network", "Switches add up all-reduces (InfiniBand SHARP)",
        "advanced",
    )  # fmt: skip
    calibration: Calibrations = field(
        (), "Calibrations", "Ids of measured machines whose rates are used", "advanced"
    )
    host_slowdown: Annotated[float, BeforeValidator(number)] = field(
        1.0, "Host slowdown", "Time to launch kernels over the usual time", "advanced", gt=0, le=100
    )
    power_cap_watts: Rate = field(
        None, "Power cap (W)", "Of one GPU; empty: its full power", "advanced"
    )
    network_gbit_per_gpu: Rate = field(
        None,
        "Measured network (Gbit/s)",
        "Of one GPU, one direction; empty: as offered",
        "advanced",
    )
    network_kind: NetworkKind = field(
        "", "Kind of network", "infiniband, roce, efa or ethernet; empty: as offered", "advanced"
    )
    gpus_per_node: SomeGpus = field(
        None, "GPUs per machine", "Of the machines you have; empty: as offered", "advanced"
    )
    scale_up_domain: SomeGpus = field(
        None, "Scale-up domain", "GPUs joined by NVLink or its like; empty: as offered", "advanced"
    )
    most_gpus_on_demand: SomeGpus = field(
        None, "Most GPUs on demand", "Beyond it ask for a reservation; empty: usual of the seller",
        "advanced",
    )  # fmt: skip
    startup_minutes: Minutes = field(
        None, "Start-up (minutes)", "Until training begins, paid; empty: usual of the seller",
        "advanced",
    )  # fmt: skip
    capacity_factor: Annotated[
        Annotated[float, Field(ge=0.1, le=64)] | None, BeforeValidator(number)
    ] = field(None, "Capacity factor", "Of an expert; empty: dropless", "advanced")
    expert_imbalance: Annotated[
        Annotated[float, Field(ge=1, le=1024)] | None, BeforeValidator(number)
    ] = field(
        None,
        "Expert imbalance",
        "Busiest rank's tokens over the mean; 1: balanced; empty: as training leaves it",
        "advanced",
    )
    filler_data: bool = field(
        False, "Filler data", "A benchmark of repeated tokens, which all take the same experts",
        "advanced",
    )  # fmt: skip
    task: Task = field("pretrain", "Task", "pretrain, sft, lora or qlora", "advanced")
    continued: Flag = field(
        None, "Continued pretraining", "From trained weights; empty: as its tokens suggest",
        "advanced",
    )  # fmt: skip
    lora_rank: Count = field(16, "LoRA rank", "Of the adapters", "advanced", le=4096)
    lora_targets: LoraTargets = field(
        "all", "LoRA targets", "Matrices that get adapters: qkv, attention or all", "advanced"
    )
    double_quantisation: bool = field(
        True, "Double quantisation", "QLoRA: scales are quantised, too", "advanced"
    )
    paged_optimizer: bool = field(
        False, "Paged optimizer", "States may spill to the host's memory", "advanced"
    )

    # A data set instead of a token count: examples x their length x epochs.
    num_examples: Annotated[
        Annotated[float, Field(gt=0, le=1e15)] | None, BeforeValidator(amount)
    ] = field(None, "Examples", "Instead of training tokens", "task_size")
    tokens_per_example: Annotated[
        Annotated[float, Field(gt=0, le=16_777_216)] | None, BeforeValidator(amount)
    ] = field(None, "Tokens per example", "Mean length; empty is the sequence", "task_size")
    epochs: Annotated[float, BeforeValidator(number)] = field(
        1.0, "Epochs", "Passes over the data", "task_size", gt=0, le=10_000
    )
    packing_efficiency: Annotated[float, BeforeValidator(number)] = field(
        1.0, "Packing efficiency", "Share of each sequence that is data", "task_size", gt=0, le=1
    )

    # A measurement by the user: it rescales the forecast.
    anchor_tokens_per_s_per_gpu: Annotated[
        Annotated[float, Field(gt=0, le=1e9)] | None, BeforeValidator(number)
    ] = field(None, "Measured tokens/s/GPU", "On the machine and layout below", "anchor")
    anchor_gpu: Annotated[str, Field(max_length=80, pattern=NAME)] = field(
        "", "Measured on GPU", "Accelerator of the measurement", "anchor"
    )
    anchor_num_gpus: Annotated[GpuCount | None, BeforeValidator(number)] = field(
        None, "Measured on how many", "GPUs of the measurement", "anchor"
    )
    anchor_layout: Annotated[str, Field(max_length=400, pattern=LAYOUT)] = field(
        "", "Measured layout", "tp=8,pp=4,micro_batch_size=1,...", "anchor"
    )

    # A model that is not a preset: model=custom and its dimensions (core/model/transformer.py).
    num_layers: Small = field(None, "Layers", "", "custom_model")
    hidden_size: Large = field(None, "Hidden size", "", "custom_model")
    ffn_hidden_size: Large = field(None, "MLP size", "", "custom_model")
    num_attention_heads: Small = field(None, "Heads", "", "custom_model")
    num_kv_heads: Small = field(None, "KV heads", "", "custom_model")
    head_dim: Small = field(None, "Head dimension", "", "custom_model")
    vocab_size: Large = field(None, "Vocabulary", "", "custom_model")
    tied_embeddings: Flag = field(None, "Tied embeddings", "", "custom_model")
    gated_mlp: Flag = field(None, "Gated MLP", "", "custom_model")
    qkv_bias: Flag = field(None, "QKV bias", "", "custom_model")
    linear_bias: Flag = field(None, "Linear bias", "", "custom_model")
    norm_bias: Flag = field(None, "LayerNorm bias", "", "custom_model")
    qk_norm: Flag = field(None, "QK norm", "", "custom_model")
    norms_per_layer: Small = field(None, "Norms per layer", "", "custom_model")
    num_positions: Large = field(None, "Learned positions", "", "custom_model")
    alibi: Flag = field(None, "ALiBi instead of rotary positions", "", "custom_model")
    sliding_window: Large = field(None, "Sliding window", "", "custom_model")
    num_window_layers: Small = field(None, "Windowed layers", "", "custom_model")
    num_experts: Small = field(None, "Experts", "", "custom_model")
    experts_per_token: Small = field(None, "Experts per token", "", "custom_model")
    num_shared_experts: Small = field(None, "Shared experts", "", "custom_model")
    moe_ffn_hidden_size: Large = field(None, "Expert size", "", "custom_model")
    num_dense_layers: Small = field(None, "Dense layers", "", "custom_model")
    q_lora_rank: Large = field(None, "Query rank", "", "custom_model")
    kv_lora_rank: Large = field(None, "KV rank", "", "custom_model")
    qk_nope_head_dim: Large = field(None, "QK nope dimension", "", "custom_model")
    qk_rope_head_dim: Large = field(None, "QK rope dimension", "", "custom_model")
    v_head_dim: Large = field(None, "V dimension", "", "custom_model")
    # Typed layers: an attention output gate, MLP-only layers, state-space and linear-attention
    # mixers.
    attention_gate: Flag = field(None, "Attention output gate", "", "custom_model")
    num_mlp_layers: Small = field(None, "MLP-only layers", "", "custom_model")
    num_ssm_layers: Small = field(None, "State-space layers", "", "custom_model")
    ssm_inner_size: Large = field(None, "State-space inner size", "", "custom_model")
    ssm_state_size: Small = field(None, "State-space state size", "", "custom_model")
    ssm_num_heads: Small = field(None, "State-space heads", "", "custom_model")
    ssm_num_groups: Small = field(None, "State-space groups", "", "custom_model")
    ssm_conv_size: Small = field(None, "State-space convolution", "", "custom_model")
    ssm_dt_rank: Small = field(None, "State-space step rank", "", "custom_model")
    ssm_beside_attention: Flag = field(None, "State space beside attention", "", "custom_model")
    num_linear_layers: Small = field(None, "Linear-attention layers", "", "custom_model")
    linear_num_key_heads: Small = field(None, "Linear key heads", "", "custom_model")
    linear_num_value_heads: Small = field(None, "Linear value heads", "", "custom_model")
    linear_key_head_dim: Small = field(None, "Linear key dimension", "", "custom_model")
    linear_value_head_dim: Small = field(None, "Linear value dimension", "", "custom_model")
    linear_conv_size: Small = field(None, "Linear convolution", "", "custom_model")
    linear_gate_rank: Small = field(None, "Linear gate rank", "", "custom_model")

    # An accelerator that is not in the table: gpu=custom and these fields, in usual units.
    custom_tflop_per_s: Rate = field(
        None, "Peak (TFLOP/s)", "Dense 16-bit matmul peak of one device", "custom_gpu"
    )
    custom_memory_gib: Rate = field(None, "Memory (GiB)", "As the device reports it", "custom_gpu")
    custom_memory_gb_per_s: Rate = field(None, "Memory bandwidth (GB/s)", "", "custom_gpu")
    custom_scale_up_gb_per_s: Rate = field(
        None, "Link inside the node (GB/s)", "One direction, per device", "custom_gpu"
    )
    custom_scale_out_gbit_per_s: Rate = field(
        None, "Network (Gbit/s per GPU)", "One direction", "custom_gpu"
    )
    custom_gpus_per_node: Annotated[int, BeforeValidator(number)] = field(
        8, "GPUs per node", "", "custom_gpu", ge=1, le=1024
    )
    custom_usd_per_gpu_hour: Rate = field(
        None, "Price (USD per GPU-hour)", "Empty: plans have no dollars", "custom_gpu"
    )

    plan: Annotated[str, Field(max_length=200, pattern=PLAN)] = field(
        "", "Selected plan", "Id of the plan that the page shows in detail", "view"
    )
    pinned: Pinned = field(
        (), "Pinned plans", "Ids of up to four plans that are compared side by side", "view"
    )
    made: Made = field("", "Made with", "Version of Runcast that made the link", "view")
    prices: Annotated[str, Field(max_length=64, pattern=SNAPSHOT)] = field(
        "", "Price snapshot", "Id of the price snapshot that the answer used", "view"
    )

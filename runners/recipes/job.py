"""RecipeJob: the numbers and names of a plan that its launch files need.

What the planner does not know (a data set, a tokenizer, a learning rate) is not a field: a file
leaves it out or marks it, and never invents it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from core.errors import RuncastError, shown
from core.model.transformer import Transformer
from core.search.plan import Layout

NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")  # also legal in Kubernetes and SLURM


class RecipeError(RuncastError):
    """A file cannot be made from a plan or an option."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Content of the first lines of every file, so that the first minutes of the run can be
    compared."""

    product: str  # name and version
    link: str  # the query that reopens the plan
    prices: str  # id of the price snapshot
    forecast: tuple[str, ...]  # a sentence each: tokens/s with its interval, step time, memory
    assumptions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """What the forecast assumes of the software: a file switches each on or off."""

    overlaps_gradients: bool = True  # their reduction runs during backward
    overlaps_weights: bool = True  # and they are gathered ahead of their layer
    async_tp: bool = False  # tensor-parallel communication runs beside its matmuls
    reduces_in_fp32: bool = True  # gradients over the replicas
    cuda_graphs: bool = False
    chunked_loss: bool = False  # logits exist in pieces only
    # flash2; flash3 or newest: kernels of Hopper and of later devices; unfused: scores are written
    attention: str = "flash2"
    packed: bool = True  # sequences are full: examples are joined
    async_checkpoint: bool = False
    sends_once_per_node: bool = False  # tokens to experts, not once per expert


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The job whose weights another one begins with; its checkpoints lie beside the other's."""

    folder: str  # of its checkpoints
    name: str  # of the job
    num_steps: int
    is_same_stack: bool  # one stack cannot read the checkpoints of another
    is_whole: bool  # it saved whole weights, not adapters or shards of them


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeJob:
    """One training job, as planned."""

    name: str  # of the job; see `checked_name`
    header: Header
    model_id: str  # of the preset, or `custom`
    model_label: str
    model: Transformer
    seq_len: int
    global_batch_size: int  # sequences a step
    num_steps: int
    layout: Layout
    num_gpus: int
    num_nodes: int
    gpus_per_node: int
    precision: str  # of core.scenario.types.Precision
    optimizer: str
    task: str  # pretrain, sft, lora or qlora
    lora_rank: int
    lora_targets: str
    compiled: bool
    accelerator: str  # canonical
    vendor: str  # of the accelerator: nvidia, amd, another one's name, or custom
    provider: str
    instance_type: str
    region: str
    purchase: str
    fabric: str  # key of hardware/fabrics.csv, or '' without a source
    memory_bytes_per_gpu: float  # forecast peak
    usable_bytes_per_gpu: float
    # What launchers need in addition.
    nccl_fabrics: tuple[str, ...] = ()  # network between the nodes, of hardware/nccl_env.csv
    limit_hours: float | None = (
        None  # P90 of the run with failures; None: it never ends in practice
    )
    vcpus: int | None = None  # of a node's machine; None: no source prints it
    host_ram_gib: float | None = None
    checkpoint_bytes: float | None = None  # of the whole job; None: not known
    slice_gpus: int | None = None  # chips of a TPU's slice, which one fabric joins
    device_name: str = ""  # is in the name that nvidia-smi prints; empty: not known
    # What stacks need in addition.
    habits: Habits = Habits()
    start: Start | None = None  # None: it begins from nothing, or with weights of the user's
    checkpoint_steps: int = 0  # between checkpoints; 0: one at the end

    @property
    def dp(self) -> int:
        """Data-parallel degree."""
        return self.layout.dp_replicate * self.layout.dp_shard

    @property
    def save_every(self) -> int:
        """Steps between checkpoints, at most the whole run."""
        return min(self.checkpoint_steps or self.num_steps, self.num_steps)


def checked_name(name: str) -> str:
    """A job name that every launcher accepts; RecipeError for any other."""
    if not NAME.fullmatch(name):
        raise RecipeError(
            f"{shown(name)} is no name of a job: 1 to 40 of a-z, 0-9 and -, a letter or digit "
            "first and last."
        )
    return name


def check_job(job: RecipeJob) -> None:
    """Validate degrees, batch arithmetic, GPU count and memory. Real tools accept some of what is
    refused here. RecipeError names the first mistake."""
    lay, m = job.layout, job.model
    world = lay.tp * lay.pp * lay.cp * job.dp
    if world != job.num_gpus:
        raise RecipeError(
            f"tp {lay.tp} x pp {lay.pp} x cp {lay.cp} x dp {job.dp} is {world}, not the "
            f"{job.num_gpus} GPUs of the job."
        )
    batch = lay.micro_batch_size * lay.num_microbatches * job.dp
    if batch != job.global_batch_size:
        raise RecipeError(
            f"micro-batch {lay.micro_batch_size} x {lay.num_microbatches} micro-batches x dp "
            f"{job.dp} is {batch}, not the global batch of {job.global_batch_size}."
        )
    for what, count in (("attention heads", m.num_attention_heads), ("MLP size", m.ffn_hidden_size),
                        ("vocabulary", m.vocab_size)):  # fmt: skip
        if what != "vocabulary" and int(count) % lay.tp:
            raise RecipeError(f"The {what} of {int(count)} is not divided evenly by tp {lay.tp}.")
    kv_heads = int(m.num_kv_heads)
    if kv_heads and kv_heads % lay.tp and lay.tp % kv_heads:
        raise RecipeError(f"{kv_heads} KV heads and tp {lay.tp} do not divide one another.")
    if job.num_nodes * job.gpus_per_node < job.num_gpus:
        raise RecipeError(
            f"{job.num_nodes} nodes of {job.gpus_per_node} GPUs hold fewer than {job.num_gpus}."
        )
    if job.seq_len % (2 * lay.cp if lay.cp > 1 else 1):
        raise RecipeError(f"{job.seq_len} tokens are not cut evenly by cp {lay.cp} in two halves.")
    if job.memory_bytes_per_gpu > job.usable_bytes_per_gpu:
        raise RecipeError(
            f"The plan needs {job.memory_bytes_per_gpu / 2**30:.1f} GiB a GPU of "
            f"{job.usable_bytes_per_gpu / 2**30:.1f} that can be used."
        )

"""A job for tests of launch files. Its forecast means nothing."""

from __future__ import annotations

from core.model.presets import preset
from runners.recipes.job import Header, RecipeJob
from tests.made_up.plans import layout

HEADER = Header(
    product="Runcast 0",
    link="?v=1&model=llama3.1-8b",
    prices="0123456789ab",
    forecast=("100k tokens/s in all, P10 to P90 80k tokens/s to 120k tokens/s",),
    assumptions=("Nothing was measured.",),
)


def recipe_job(**changes: object) -> RecipeJob:
    """Two nodes of eight H100: tp 2, dp 8."""
    given = {
        "name": "a-job",
        "header": HEADER,
        "model_id": "llama3.1-8b",
        "model_label": "Llama 3.1 8B",
        "model": preset("llama3.1-8b").transformer,
        "seq_len": 8192,
        "global_batch_size": 64,
        "num_steps": 1000,
        "layout": layout(tp=2, dp_shard=8, num_microbatches=8),
        "num_gpus": 16,
        "num_nodes": 2,
        "gpus_per_node": 8,
        "precision": "bf16",
        "optimizer": "adamw",
        "task": "pretrain",
        "lora_rank": 16,
        "lora_targets": "attention",
        "compiled": False,
        "accelerator": "H100-80GB-SXM",
        "vendor": "nvidia",
        "device_name": "H100",
        "provider": "aws",
        "instance_type": "p5.48xlarge",
        "region": "us-east-1",
        "purchase": "on_demand",
        "fabric": "efa",
        "memory_bytes_per_gpu": 40e9,
        "usable_bytes_per_gpu": 80e9,
        "nccl_fabrics": ("efa",),
        "limit_hours": 25.5,
        **changes,
    }
    return RecipeJob(**given)  # type: ignore[arg-type]


def one_gpu(**changes: object) -> RecipeJob:
    """The same on one GPU of one node."""
    given = {
        "layout": layout(tp=1, dp_shard=1, sharding="ddp", num_microbatches=64),
        "num_gpus": 1,
        "num_nodes": 1,
        "gpus_per_node": 1,
        **changes,
    }
    return recipe_job(**given)

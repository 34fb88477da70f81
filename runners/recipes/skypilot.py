"""SkyPilot: a task for `sky jobs launch`, on the cloud and machine of the plan.

SkyPilot accepts any region and accelerator until it looks for machines, so the file has only those
of the plan's offer, under SkyPilot's names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import yaml  # type: ignore[import-untyped, unused-ignore]

from runners.recipes import launch, quoting
from runners.recipes.header import commented, comments
from runners.recipes.job import RecipeError, RecipeJob, check_job
from runners.recipes.target import Recovered, Target
from runners.recipes.yaml_text import dumped

TOOL = "SkyPilot 0.14.1 (sky.Task.from_yaml_config)"
FILE = "sky.yaml"
BUCKET = "CHECKPOINT_BUCKET"
MOUNT = "/checkpoints"
# SkyPilot's names of the accelerators in its catalogues; others are refused.
NAMES = {
    "A100-40GB-SXM": "A100", "A100-40GB-PCIE": "A100", "A100-80GB-SXM": "A100-80GB",
    "A100-80GB-PCIE": "A100-80GB", "A10": "A10", "A10G": "A10G", "B200-180GB": "B200",
    "B300": "B300", "GB200": "GB200", "GB300": "GB300", "GH200-96GB": "GH200",
    "H100-80GB-PCIE": "H100", "H100-80GB-SXM": "H100", "H100-94GB-NVL": "H100NVL",
    "H200-141GB-SXM": "H200", "L4": "L4", "L40": "L40", "L40S": "L40S", "MI300X": "MI300X",
    "RTX3090": "RTX3090", "RTX4090": "RTX4090", "RTX5090": "RTX5090",
    "RTX6000Ada": "RTX6000-Ada", "T4": "T4", "V100-16GB": "V100", "V100-32GB": "V100-32GB",
}  # fmt: skip
# Machines whose accelerator has a special name in SkyPilot.
OF_INSTANCE = {"a3-megagpu-8g": "H100-MEGA"}
# Providers with the name that SkyPilot uses; for others the task names no cloud.
CLOUDS = (
    "aws", "azure", "cudo", "gcp", "hyperbolic", "lambda", "nebius", "oci", "primeintellect",
    "runpod", "shadeform", "vast",
)  # fmt: skip
# Addresses of buckets that its storage reads: sky/data/storage.py.
BUCKETS = ("s3", "gs", "https", "r2", "cos", "oci", "nebius", "cw")
DISK_GB, CHECKPOINTS = 256, 2  # its default; checkpoints that a node caches until they are uploaded
_SETUP = """\
set -euo pipefail
[ ! -f requirements.txt ] || pip install -r requirements.txt
python -c 'import torch; print("torch", torch.__version__)'
"""
_HEAD = 'MASTER_ADDR=$(printf "%s\\n" "$SKYPILOT_NODE_IPS" | head -n 1)\n'


def accelerator(job: RecipeJob) -> str:
    """SkyPilot's name of the job's accelerator; '' if it has none."""
    return OF_INSTANCE.get(job.instance_type, NAMES.get(job.accelerator, ""))


def _refuses(job: RecipeJob) -> str:
    return launch.is_torch(job) or (
        "" if accelerator(job) else f"SkyPilot's name of {job.accelerator} is not known here"
    )


def _mounted(address: str) -> tuple[str, str]:
    """A bucket, and its folder as the job sees it: SkyPilot mounts whole buckets only.

    >>> _mounted("s3://mine/runs/1"), _mounted("cos://us-east/mine")
    (('s3://mine', '/checkpoints/runs/1'), ('cos://us-east/mine', '/checkpoints'))
    """
    kind, _, rest = address.partition("://")
    parts = rest.rstrip("/").split("/")
    named = 2 if kind in ("cos", "https") else 1  # of a region or an account, and the bucket
    return f"{kind}://{'/'.join(parts[:named])}", "/".join([MOUNT, *parts[named:]])


def _disk_gb(job: RecipeJob) -> int | None:
    """The disk of a node: SkyPilot's default and two checkpoints' share of a node, which a cached
    mount keeps there until they are uploaded; None without the size of a checkpoint."""
    if job.checkpoint_bytes is None:
        return None
    return DISK_GB + math.ceil(CHECKPOINTS * job.checkpoint_bytes / job.num_nodes / 2**30)


def task(job: RecipeJob, options: Mapping[str, str]) -> dict[str, Any]:
    """The task in the form of SkyPilot's YAML."""
    count = launch.per_node(job)
    # Machines are rented whole, even if the job leaves GPUs of one idle.
    resources: dict[str, Any] = {"accelerators": f"{accelerator(job)}:{job.gpus_per_node}"}
    if job.provider in CLOUDS:
        region = f"/{job.region}" if job.region not in ("", "*") else ""
        resources["infra"] = f"{job.provider}{region}"
    if "image" in options:
        resources["image_id"] = f"docker:{quoting.image(options['image'], 'image')}"
    if (disk_gb := _disk_gb(job)) is not None:
        resources["disk_size"] = disk_gb
    if job.num_nodes > 1:
        resources["network_tier"] = "best"
    if job.purchase == "spot":
        resources["use_spot"] = True
    resources["job_recovery"] = {
        "strategy": "FAILOVER", "max_restarts_on_errors": launch.RESTARTS
    }  # fmt: skip
    envs: dict[str, str | None] = {BUCKET: None, "CHECKPOINT_DIR": MOUNT}
    if "bucket" in options:
        envs[BUCKET], envs["CHECKPOINT_DIR"] = _mounted(
            quoting.bucket(options["bucket"], "bucket", BUCKETS)
        )
    envs |= {v.name: v.value for v in launch.variables(job, options)}
    own = [
        f"--nnodes={job.num_nodes}", f"--nproc-per-node={count}",
        '--node-rank="$SKYPILOT_NODE_RANK"', '--master-addr="$MASTER_ADDR"',
        f"--master-port={launch.port(options)}",
    ]  # fmt: skip
    words = quoting.shell(launch.under_torchrun(launch.words_of(options)))
    call = " \\\n  ".join(["exec torchrun", *own, words]) + "\n"
    return {
        "name": job.name,
        "num_nodes": job.num_nodes,
        "resources": resources,
        "workdir": ".",
        "envs": envs,
        # A mounted bucket, whose files outlive the machines.
        "file_mounts": {MOUNT: {"source": f"${{{BUCKET}}}", "mode": "MOUNT_CACHED"}},
        "setup": _SETUP,
        "run": "set -euo pipefail\n" + _HEAD + call,
    }


def _write(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    check_job(job)
    if why := _refuses(job):
        raise RecipeError(f"{why}.")
    notes = [
        f"Start with: sky jobs launch --env {BUCKET}=s3://<your bucket> {FILE}"
        if "bucket" not in options
        else f"Start with: sky jobs launch {FILE}",
        f"{MOUNT} is that bucket, whole: save checkpoints in $CHECKPOINT_DIR. SkyPilot refuses the "
        "task without it.",
        *_disk_notes(job),
        *([] if job.provider in CLOUDS else [f"The task names no cloud: {job.provider} is not "
                                            "one that it is known to have."]),
        *(f"{v.name}: {v.reason}" for v in launch.variables(job, options)),
    ]  # fmt: skip
    todos = launch.no_command(options)
    if "bucket" not in options:
        todos["bucket"] = f"the address of your bucket, for {BUCKET}: {', '.join(BUCKETS)}"
    if "image" not in options:
        todos["image"] = (
            "image=NAME with torch, or torch in the requirements.txt beside this file, in the "
            "version that you tested"
        )
    head = commented(job.header, tool=TOOL, tier="validated") + comments(notes)
    return {FILE: head + launch.fill_in(todos) + dumped([task(job, options)])}


def _disk_notes(job: RecipeJob) -> list[str]:
    """What the size of the disk is made of."""
    if job.checkpoint_bytes is None:
        return ["disk_size is SkyPilot's 256 GB: the size of a checkpoint is not known."]
    return [
        f"disk_size: {DISK_GB} GB and {CHECKPOINTS} checkpoints of "
        f"{job.checkpoint_bytes / 2**30:,.0f} GiB over {job.num_nodes} nodes, which the cached "
        "mount keeps until they are uploaded. A stack that gathers them on one node needs more."
    ]


def _read(files: Mapping[str, str]) -> Recovered:
    found = yaml.safe_load(files.get(FILE, ""))
    if not isinstance(found, dict):
        raise RecipeError(f"{FILE} is no table.")
    called = launch.flags(str(found.get("run", "")), "torchrun")
    nodes = launch.number({"num_nodes": str(found.get("num_nodes", ""))}, "num_nodes")
    if launch.number(called, "nnodes") != nodes:
        raise RecipeError("The task has other nodes than torchrun starts.")
    resources = found.get("resources", {})
    return launch.recovered(
        nodes, launch.number(called, "nproc-per-node"),
        accelerators=resources.get("accelerators"), use_spot=resources.get("use_spot", False),
    )  # fmt: skip


TARGETS = (
    Target(
        name="skypilot", title="SkyPilot task", kind="launcher", tier="validated", tool=TOOL,
        write=_write, read=_read, options=("command", "env", "fabric", "port", "bucket", "image"),
        refuses=_refuses,
    ),
)  # fmt: skip

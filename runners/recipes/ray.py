"""Ray: a Ray Train script that runs the training script in every worker, and its job.

The workers of Ray Train join a process group before the script begins, and the script makes its
own, as under torchrun: so the first group is destroyed, and the script gets a port of its own.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping

from runners.recipes import launch, quoting
from runners.recipes.header import commented, comments
from runners.recipes.job import RecipeError, RecipeJob, check_job
from runners.recipes.target import Recovered, Target

TOOL = "Ray 2.60 (a job on a local cluster)"
SCRIPT, SUBMIT = "ray_train.py", "ray_job.sh"
_BODY = '''\
import os
import runpy
import socket
import subprocess
import sys

import ray.train
import torch.distributed as dist
from ray.train.torch import TorchConfig, TorchTrainer

NUM_NODES = {nodes}
GPUS_PER_NODE = {count}
NUM_WORKERS = {world}
MAX_FAILURES = {restarts}  # starts again from the last checkpoint of the script
COMMAND = {command}  # the training script and its arguments


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("", 0))
        return found.getsockname()[1]


def train() -> None:
    """In each worker: leave Ray's process group, then run the script as torchrun would."""
    port = [free_port() if dist.get_rank() == 0 else 0]
    dist.broadcast_object_list(port, src=0)
    dist.barrier()
    dist.destroy_process_group()
    os.environ["MASTER_PORT"] = str(port[0])
    if COMMAND[0] == "--no-python":
        subprocess.run(COMMAND[1:], check=True)
        return
    module = COMMAND[0] == "-m"
    sys.argv = COMMAND[1:] if module else list(COMMAND)
    if module:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(COMMAND[0])))
        runpy.run_path(COMMAND[0], run_name="__main__")


def main() -> None:
    os.environ.setdefault("RAY_CHDIR_TO_TRIAL_DIR", "0")  # scripts are where the job was started
    on_gpus = os.environ.get("RAY_TRAIN_ON_CPUS") != "1"  # to try this file out
    trainer = TorchTrainer(
        train,
        torch_config=TorchConfig(backend="nccl" if on_gpus else "gloo"),
        scaling_config=ray.train.ScalingConfig(
            num_workers=NUM_WORKERS, use_gpu=on_gpus, placement_strategy="PACK"
        ),
        run_config=ray.train.RunConfig(
            name={name},
            storage_path={storage},
            failure_config=ray.train.FailureConfig(max_failures=MAX_FAILURES),
        ),
    )
    trainer.fit()


if __name__ == "__main__":
    main()
'''
_STORAGE = 'os.environ["RAY_STORAGE"]'


def _script(job: RecipeJob, options: Mapping[str, str]) -> str:
    count = launch.per_node(job)
    tail = launch.under_torchrun(launch.words_of(options))
    storage = repr(quoting.bucket(options["bucket"], "bucket")) if "bucket" in options else _STORAGE
    text = _BODY.format(
        nodes=job.num_nodes, count=count, world=count * job.num_nodes, restarts=launch.RESTARTS,
        command=ascii(tail), name=ascii(job.name), storage=storage,
    )  # fmt: skip
    notes = [] if "command" in options else [launch.NO_COMMAND]
    if "bucket" not in options:
        notes.append("Set RAY_STORAGE to a folder or bucket that every node reaches.")
    head = commented(job.header, tool=TOOL, tier="validated")
    return head + comments(notes) + text


def _write_train(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    check_job(job)
    return {SCRIPT: _script(job, options)}


def _write_job(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    """Write the script, and the call that submits it with the variables of the job."""
    check_job(job)
    env = {v.name: v.value for v in launch.variables(job, options)}
    runtime = json.dumps({"working_dir": ".", "env_vars": env})
    reasons = comments(f"{v.name}: {v.reason}" for v in launch.variables(job, options))
    address = ""
    if "address" in options:
        address = f" --address={quoting.shell([_address(options['address'])])}"
    storage = "" if "bucket" in options else (
        ': "${RAY_STORAGE:?Set RAY_STORAGE to a folder or bucket that every node reaches}"\n'
    )  # fmt: skip
    passed = "" if "bucket" in options else 'env RAY_STORAGE="$RAY_STORAGE" '
    text = (
        "#!/usr/bin/env bash\n"
        + commented(job.header, tool=TOOL, tier="validated")
        + f"# Start with: bash {SUBMIT}, in the folder of {SCRIPT} and your script; RAY_ADDRESS\n"
        "# is the address of the cluster's job server, http://HEAD:8265.\n"
        + reasons
        + "set -euo pipefail\n"
        + storage
        + f"exec ray job submit{address} \\\n"
        + f"  --submission-id={job.name}-$(date +%s) \\\n"
        + f"  --runtime-env-json={quoting.shell([runtime])} \\\n"
        + f"  -- {passed}python {SCRIPT}\n"
    )
    return {SUBMIT: text, SCRIPT: _script(job, options)}


def _address(text: str) -> str:
    line = quoting.one_line(text, "address")
    if not line.startswith(("http://", "https://")) or " " in line:
        raise RecipeError("address is that of the job server, like http://10.0.0.1:8265.")
    return line


def _read(files: Mapping[str, str]) -> Recovered:
    found: dict[str, object] = {}
    try:
        tree = ast.parse(files.get(SCRIPT, ""))
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                found[node.targets[0].id] = ast.literal_eval(node.value)
    except (SyntaxError, ValueError):
        raise RecipeError(f"{SCRIPT} is no script of ours.") from None
    nodes, count = found.get("NUM_NODES"), found.get("GPUS_PER_NODE")
    if not isinstance(nodes, int) or not isinstance(count, int):
        raise RecipeError(f"{SCRIPT} does not say how many nodes and GPUs it takes.")
    if found.get("NUM_WORKERS") != nodes * count:
        raise RecipeError("The workers are not one a GPU of every node.")
    return launch.recovered(nodes, count, command=found.get("COMMAND"))


TARGETS = (
    Target(
        name="ray-train", title="Ray Train script", kind="launcher", tier="validated", tool=TOOL,
        write=_write_train, read=_read, options=("command", "bucket"), refuses=launch.is_torch,
    ),
    Target(
        name="ray-job", title="Ray job", kind="launcher", tier="validated", tool=TOOL,
        write=_write_job, read=_read, options=("command", "env", "fabric", "bucket", "address"),
        refuses=launch.is_torch,
    ),
)  # fmt: skip

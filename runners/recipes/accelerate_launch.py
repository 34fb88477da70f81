"""Accelerate's launch command, once on each node."""

from __future__ import annotations

from collections.abc import Mapping

from runners.recipes import launch, quoting, torchrun
from runners.recipes.job import RecipeError, RecipeJob, check_job
from runners.recipes.target import Recovered, Target

TOOL = "Accelerate 1.15 (its own parser)"
NAME, FILE = "accelerate-launch", "accelerate_launch.sh"
CONFIGS = ("accelerate-fsdp2", "accelerate-deepspeed")  # targets whose file it takes
MIXED = {"bf16": "bf16", "fp16": "fp16"}  # of ours; fp8 is one word there for every recipe


def _write(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    check_job(job)
    count = launch.per_node(job)
    words = launch.words_of(options)
    tail = launch.under_torchrun(words)
    if tail[0] == "--no-python":
        tail[0] = "--no_python"
    elif tail[0] == "-m":
        tail[0] = "--module"
    mixed = MIXED.get(job.precision, "fp8")
    own = [f"--num_processes={count * job.num_nodes}", f"--num_machines={job.num_nodes}"]
    head = ""
    if "config_file" in options:  # flags would override its strategy and precision
        own.insert(0, f"--config_file={quoting.path(options['config_file'], 'config_file')}")
    else:
        own += [f"--mixed_precision={mixed}", "--dynamo_backend=no"]
        own = ["--multi_gpu", *own] if count * job.num_nodes > 1 else own
    if job.num_nodes > 1:
        head = torchrun.head_line(options) + (
            'NODE_RANK="${NODE_RANK:?Set NODE_RANK to the number of this node, from 0}"\n'
        )
        own += [
            '--machine_rank="$NODE_RANK"', '--main_process_ip="$HEAD"',
            f"--main_process_port={launch.port(options)}", "--rdzv_backend=static",
        ]  # fmt: skip
    usage = [
        f"Start on each node: HEAD=<first node> NODE_RANK=<0, 1, ...> bash {FILE}"
        if job.num_nodes > 1
        else f"Start with: bash {FILE}",
    ]
    if mixed == "fp8":
        usage.append(f"Accelerate calls every fp8 recipe fp8; the plan has {job.precision}.")
    call = " \\\n  ".join(["exec accelerate launch", *own, f'{quoting.shell(tail)} "$@"']) + "\n"
    return {FILE: torchrun.script(job, options, usage, head + call, tool=TOOL)}


def _read(files: Mapping[str, str]) -> Recovered:
    found = launch.flags(files.get(FILE, ""), "launch")
    world, nodes = launch.number(found, "num_processes"), launch.number(found, "num_machines")
    if not nodes or world % nodes:
        raise RecipeError(f"{world} processes are not spread evenly over {nodes} machines.")
    return launch.recovered(nodes, world // nodes, mixed_precision=found.get("mixed_precision"))


TARGETS = (
    Target(
        name=NAME, title="Accelerate launch command", kind="launcher",
        tier="validated", tool=TOOL, write=_write, read=_read,
        options=("command", "env", "fabric", "port", "hosts", "config_file"),
        refuses=launch.is_torch,
    ),
)  # fmt: skip

"""SLURM: a batch file that starts torchrun once on each node.

A plan rents whole machines, so the file asks for all of each: without `--exclusive` or
`--cpus-per-task` SLURM gives the eight processes of a node one CPU.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from runners.launchers.slurm_software import Software, software
from runners.recipes import launch, quoting, torchrun
from runners.recipes.header import commented, comments
from runners.recipes.job import RecipeError, RecipeJob, check_job
from runners.recipes.target import Recovered, Target

TOOL = "SLURM 22.05 (sbatch --test-only, and a run on a local cluster)"
FILE = "job.sbatch"
_DIRECTIVE = re.compile(r"^#SBATCH --([a-z-]+)(?:=(\S+))?$", re.MULTILINE)
# The address of the first node is from SLURM, because node names may not resolve.
_BODY = """\
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_ADDR=$(scontrol show node -o "$first" | sed -n 's/.* NodeAddr=\\([^ ]*\\).*/\\1/p')
export MASTER_ADDR
"""
# All CPUs that the job has on a node: srun itself takes one for a task.
_SRUN = ("--kill-on-bad-exit=1", '--cpus-per-task="$SLURM_CPUS_ON_NODE"', "--cpu-bind=none")
A_DAY = 24 * 3600  # a limit above this one is more than many partitions allow; assumed
SIGNAL_S = 120  # before the end of a partition's time: the job goes back into the queue
_REQUEUED = """\
training=$!
# The partition's time ends before the run: the job queues again and goes on from its checkpoint.
trap 'scontrol requeue "$SLURM_JOB_ID"; wait "$training"' USR1
wait "$training"
"""


def time_text(seconds: int) -> str:
    """A time limit in SLURM's notation.

    >>> time_text(3600), time_text(90_000)
    ('0-01:00:00', '1-01:00:00')
    """
    minutes = -(-seconds // 60)
    return f"{minutes // 1440}-{minutes % 1440 // 60:02d}:{minutes % 60:02d}:00"


def _write(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    check_job(job)
    count = launch.per_node(job)
    cpus, memory = launch.cpus(options), launch.memory_gib(options)
    loaded = quoting.as_recipe_error(lambda: _software(options))
    limit_s = launch.limit_s(job, options)
    cap_s = limit_s
    if "partition_hours" in options:
        cap_s = 3600 * quoting.whole(options["partition_hours"], "partition_hours", 1, 24 * 365)
    is_capped = cap_s < limit_s
    directives: dict[str, str] = {
        "job-name": job.name,
        "nodes": str(job.num_nodes),
        "ntasks-per-node": "1",
        "gpus-per-node": str(count),
        **({"exclusive": ""} if cpus is None else {"cpus-per-task": str(cpus)}),
        "mem": "0" if memory is None else f"{memory}G",
        "time": time_text(min(cap_s, limit_s)),
        "output": "%x-%j.out",
        "open-mode": "append",
    }
    if is_capped:
        directives["signal"] = f"B:USR1@{SIGNAL_S}"
    for name in ("partition", "account", "qos"):
        if name in options:
            directives[name] = quoting.name(options[name], name)
    lines = [f"#SBATCH --{n}={value}" if value else f"#SBATCH --{n}"
             for n, value in directives.items()]  # fmt: skip
    lines.append("#SBATCH --requeue")
    own = [
        f"--nnodes={job.num_nodes}", f"--nproc-per-node={count}", '--rdzv-id="$SLURM_JOB_ID"',
        "--rdzv-backend=c10d", f'--rdzv-endpoint="$MASTER_ADDR:{launch.port(options)}"',
    ]  # fmt: skip
    called = " ".join([*loaded.around(job.vendor), torchrun.torchrun_line(
        job, options, own, indent="    ")]).rstrip("\n")  # fmt: skip
    text = (
        "#!/bin/bash\n"
        + commented(job.header, tool=TOOL, tier="validated")
        + comments(_notes(job, options, limit_s if is_capped else None))
        + launch.fill_in(_todos(options, loaded, limit_s))
        + "\n".join(lines)
        + "\n"
        + loaded.lines()
        + "set -euo pipefail\n"
        + launch.exports(job, options)
        + _BODY
        + " \\\n  ".join(["srun", *_SRUN, *loaded.of_srun(), called])
        + (" &\n" + _REQUEUED if is_capped else "\n")
    )
    return {FILE: text}


def _software(options: Mapping[str, str]) -> Software:
    for name in ("modules", "venv", "container", "container_image", "container_mounts"):
        if name in options:
            quoting.one_line(options[name], name)
    return software(
        modules=options.get("modules", ""),
        venv=options.get("venv", ""),
        container=options.get("container", ""),
        image=options.get("container_image", ""),
        mounts=options.get("container_mounts", ""),
        option="{}",
    )


def _notes(job: RecipeJob, options: Mapping[str, str], capped_from_s: int | None) -> list[str]:
    """What to know before the file is submitted."""
    notes = [f"Submit with: sbatch {FILE}"]
    if capped_from_s is not None:
        notes.append(
            f"The run may take {capped_from_s / 3600:,.0f} hours and the partition allows "
            f"{options['partition_hours']}: {SIGNAL_S} s before the end the job goes back into the "
            "queue, as often as it takes."
        )
    elif "time_hours" in options:
        notes.append("The time limit is the one that was given.")
    else:
        notes.append(
            "The time limit is the P90 of the run with failures, in whole hours. A partition that "
            "allows less leaves the job pending for ever: partition_hours=N caps the file to it."
        )
    notes.append(
        "After a node failure SLURM starts the job again: the script must go on from its last "
        "checkpoint."
    )
    if any(n in options for n in ("container", "modules", "venv")):
        notes.append("Its lines for modules, the environment or the container were not tried.")
    if job.vcpus is not None and "cpus_per_node" not in options:
        notes.append(
            f"--exclusive takes every CPU of a node; the plan's machine has {job.vcpus} vCPUs."
        )
    return notes


def _todos(options: Mapping[str, str], loaded: Software, limit_s: int) -> dict[str, str]:
    """What only the user knows and did not say."""
    found = launch.no_command(options)
    if limit_s > A_DAY and not {"time_hours", "partition_hours"} & options.keys():
        found["partition_hours"] = (
            f"the longest time of your partition (sinfo -o '%P %l'): one below the "
            f"{limit_s / 3600:,.0f} hours of the run never starts it; delete this line where it "
            "is longer"
        )
    if not loaded.is_given:
        found["software"] = (
            "where the nodes have torchrun from: modules=A,B, venv=PATH, or container=pyxis with "
            "container_image; delete this line where it is on their PATH"
        )
    return found


def _read(files: Mapping[str, str]) -> Recovered:
    text = files.get(FILE, "")
    directives = {m[1]: m[2] or "" for m in _DIRECTIVE.finditer(text)}
    nodes = launch.number(directives, "nodes")
    count = launch.number(directives, "gpus-per-node")
    started = launch.flags(text, "torchrun")
    if (launch.number(started, "nnodes"), launch.number(started, "nproc-per-node")) != (
        nodes, count
    ):  # fmt: skip
        raise RecipeError("The batch file asks for other nodes or GPUs than torchrun starts.")
    return launch.recovered(nodes, count, time=directives.get("time", ""))


TARGETS = (
    Target(
        name="slurm", title="SLURM batch file", kind="launcher", tier="validated", tool=TOOL,
        write=_write, read=_read,
        options=(
            "command", "env", "fabric", "port", "partition", "account", "qos", "time_hours",
            "partition_hours", "cpus_per_node", "memory_gib", "container", "container_image",
            "container_mounts", "modules", "venv",
        ),
        refuses=launch.is_torch,
    ),
)  # fmt: skip

"""SLURM: a batch file that starts torchrun once on each node."""

from __future__ import annotations

import re
from collections.abc import Mapping

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
    directives: dict[str, str] = {
        "job-name": job.name,
        "nodes": str(job.num_nodes),
        "ntasks-per-node": "1",
        "gpus-per-node": str(count),
        "time": time_text(launch.limit_s(job, options)),
        "output": "%x-%j.out",
        "open-mode": "append",
    }
    for name in ("partition", "account", "qos"):
        if name in options:
            directives[name] = quoting.name(options[name], name)
    lines = [f"#SBATCH --{name}={value}" for name, value in directives.items()]
    lines.append("#SBATCH --requeue")
    own = [
        f"--nnodes={job.num_nodes}", f"--nproc-per-node={count}", '--rdzv-id="$SLURM_JOB_ID"',
        "--rdzv-backend=c10d", f'--rdzv-endpoint="$MASTER_ADDR:{launch.port(options)}"',
    ]  # fmt: skip
    notes = [
        f"Submit with: sbatch {FILE}",
        "The time limit is the P90 of the run with failures, in whole hours."
        if "time_hours" not in options
        else "The time limit is the one that was given.",
        "After a node failure SLURM starts the job again: the script must go on from its last "
        "checkpoint.",
        *([] if "command" in options else [launch.NO_COMMAND]),
    ]
    text = (
        "#!/bin/bash\n"
        + commented(job.header, tool=TOOL, tier="validated")
        + comments(notes)
        + "\n".join(lines)
        + "\nset -euo pipefail\n"
        + launch.exports(job, options)
        + _BODY
        + "srun --kill-on-bad-exit=1 \\\n  "
        + torchrun.torchrun_line(job, options, own, indent="    ")
    )
    return {FILE: text}


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
        options=("command", "env", "fabric", "port", "partition", "account", "qos", "time_hours"),
        refuses=launch.is_torch,
    ),
)  # fmt: skip

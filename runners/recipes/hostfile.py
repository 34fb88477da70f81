"""DeepSpeed's hostfile: one host and its GPUs per line."""

from __future__ import annotations

import re
from collections.abc import Mapping

from runners.recipes import launch, quoting
from runners.recipes.header import commented, comments
from runners.recipes.job import RecipeError, RecipeJob, check_job
from runners.recipes.target import Recovered, Target

TOOL = "DeepSpeed 0.19.8 (its own reader of host files)"
FILE = "hostfile"
MARK = "SET-HOST-"  # begins the names of placeholders for hosts
_LINE = re.compile(r"(\S+) slots=(\d+)")


def _write(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    check_job(job)
    count = launch.per_node(job)
    hosts = [f"{MARK}{i}" for i in range(1, job.num_nodes + 1)]
    notes = ["Start with: deepspeed --hostfile hostfile <your script>"]
    if "hosts" in options:
        hosts = [h.rpartition("@")[2] for h in quoting.hosts(options["hosts"])]
        if len(hosts) != job.num_nodes:
            raise RecipeError(f"hosts names {len(hosts)}, and the plan has {job.num_nodes} nodes.")
        if ported := [h for h in hosts if ":" in h]:
            raise RecipeError(
                f"hosts has {ported[0]}: a port goes into your ssh configuration, not in here."
            )
    else:
        notes.append(f"hosts was not given: put the names of your nodes in place of {MARK}1 ...")
    head = commented(job.header, tool=TOOL, tier="validated")
    lines = [f"{host} slots={count}" for host in hosts]
    return {FILE: head + comments(notes) + "\n".join(lines) + "\n"}


def _read(files: Mapping[str, str]) -> Recovered:
    lines = [x for x in files.get(FILE, "").splitlines() if x and not x.startswith("#")]
    found = [_LINE.fullmatch(line) for line in lines]
    slots = {int(m[2]) for m in found if m}
    if not found or None in found or len(slots) != 1:
        raise RecipeError("The hostfile is not a list of hosts with equal slots.")
    return launch.recovered(len(lines), slots.pop())


TARGETS = (
    Target(
        name="hostfile", title="DeepSpeed hostfile", kind="launcher", tier="validated", tool=TOOL,
        write=_write, read=_read, options=("hosts",), refuses=launch.is_torch,
    ),
)  # fmt: skip

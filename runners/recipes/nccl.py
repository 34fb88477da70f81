"""NCCL variables for the fabric of a job, as a file to source before a launcher."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from hardware.nccl_env import left_alone
from runners.recipes import launch
from runners.recipes.header import commented, comments
from runners.recipes.job import RecipeError, RecipeJob, check_job
from runners.recipes.target import Recovered, Target

TOOL = "bash"
FILE = "nccl_env.sh"
_EXPORT = re.compile(r"export ([A-Z_a-z][A-Z_a-z0-9]*)=(.*)")


def _write(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    check_job(job)
    head = commented(job.header, tool=TOOL, tier="validated")
    one = "one node, no network" if job.num_nodes == 1 else "not known: what every network takes"
    known = ", ".join(launch.fabrics(job, options)) or one
    note = f"# Use with: source {FILE}\n# Fabric: {known}.\n"
    return {FILE: head + note + launch.exports(job, options) + _left_alone(job, options)}


def _left_alone(job: RecipeJob, options: Mapping[str, str]) -> str:
    """The variables that are left to NCCL, as comments with the reason; none that the user sets."""
    own = {v.name for v in launch.variables(job, options)}
    lines = [
        f"  {s.variable}: {s.reason}" + (f" ({s.note})" if s.note else "")
        for s in left_alone(launch.fabrics(job, options))
        if s.variable not in own
    ]
    return comments(["Left to NCCL:", *lines])


def _read(files: Mapping[str, str]) -> Recovered:
    found = {}
    for line in files.get(FILE, "").splitlines():
        if match := _EXPORT.fullmatch(line):
            words = shlex.split(match[2])
            found[match[1]] = words[0] if words else ""
    if not found:
        raise RecipeError(f"{FILE} exports nothing.")
    return Recovered(more=found)


TARGETS = (
    Target(
        name="nccl-env", title="NCCL environment", kind="check", tier="validated", tool=TOOL,
        write=_write, read=_read, options=("env", "fabric"), refuses=launch.is_torch,
    ),
)  # fmt: skip

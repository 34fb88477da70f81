"""Preflight script, which checks one node before a job, with bash and torch if installed.

Every check runs under a time limit, and failures are printed; the exit status is that of the first
failure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from runners.recipes import launch
from runners.recipes.header import commented
from runners.recipes.job import RecipeError, RecipeJob, check_job
from runners.recipes.target import Recovered, Target

TOOL = "bash, without a GPU and with a stand-in for nvidia-smi; no GPU was at hand"
FILE = "preflight.sh"
_BODY = Path(__file__).with_name("preflight.sh")
_NAMED = re.compile(r"^(EXPECTED_GPUS|NODES)=(\d+)", re.MULTILINE)


def _write(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    check_job(job)
    values = {
        "COUNT": str(launch.per_node(job)),
        "KIND": f'"{job.device_name}"',
        "NODES": str(job.num_nodes),
        "FABRIC": f'"{",".join(launch.fabrics(job, options))}"',
    }
    body = _BODY.read_text(encoding="utf-8")
    for name, value in values.items():
        body = body.replace(f"@{name}@", value)
    head = commented(job.header, tool=TOOL, tier="not_validated")
    return {FILE: "#!/usr/bin/env bash\n" + head + body}


def _read(files: Mapping[str, str]) -> Recovered:
    found = {m[1]: int(m[2]) for m in _NAMED.finditer(files.get(FILE, ""))}
    if len(found) != 2:
        raise RecipeError(f"{FILE} does not say what it expects.")
    return launch.recovered(found["NODES"], found["EXPECTED_GPUS"])


def _refuses(job: RecipeJob) -> str:
    return "" if job.vendor in ("nvidia", "custom") else "the checks ask nvidia-smi"


TARGETS = (
    Target(
        name="preflight", title="Pre-flight check", kind="check", tier="not_validated", tool=TOOL,
        write=_write, read=_read, options=("fabric",), refuses=_refuses,
    ),
)  # fmt: skip

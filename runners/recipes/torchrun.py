"""torchrun: on one node, on several with a rendezvous, and elastic."""

from __future__ import annotations

from collections.abc import Mapping

from core.errors import shown
from runners.recipes import launch, quoting
from runners.recipes.header import commented, comments
from runners.recipes.job import RecipeError, RecipeJob, check_job
from runners.recipes.target import Recovered, Target, Tier

TOOL = "torchrun of torch 2.13 (its own parser)"
TIER: Tier = "validated"
FILE, ELASTIC_FILE = "torchrun.sh", "torchrun_elastic.sh"


def torchrun_line(
    job: RecipeJob, options: Mapping[str, str], own: list[str], *, indent: str = "  "
) -> str:
    """A call of torchrun over several lines: `own` is shell text, the rest is quoted. Arguments of
    the script are passed on to the training script."""
    words = launch.under_torchrun(launch.words_of(options))
    parts = ["torchrun", *own, f'{quoting.shell(words)} "$@"']
    return f" \\\n{indent}".join(parts) + "\n"


def script(
    job: RecipeJob, options: Mapping[str, str], usage: list[str], body: str, *, tool: str = TOOL
) -> str:
    """A bash script: header, usage, variables, body."""
    notes = [*usage] if "command" in options else [*usage, launch.NO_COMMAND]
    return (
        "#!/usr/bin/env bash\n"
        + commented(job.header, tool=tool, tier=TIER)
        + comments(notes)
        + "set -euo pipefail\n"
        + launch.exports(job, options)
        + body
    )


def head_line(options: Mapping[str, str]) -> str:
    """The line that requires the address of the first node, for a multi-node script."""
    if "hosts" in options:
        first = quoting.hosts(options["hosts"])[0].rpartition("@")[2].partition(":")[0]
        return f'HEAD="${{HEAD:-{first}}}"\n'
    return 'HEAD="${HEAD:?Set HEAD to the address of the first node, the same on every node}"\n'


def _write(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    check_job(job)
    count = launch.per_node(job)
    if job.num_nodes == 1:
        own = ["--standalone", "--nnodes=1", f"--nproc-per-node={count}"]
        body = "exec " + torchrun_line(job, options, own)
        return {FILE: script(job, options, [f"Start with: bash {FILE}"], body)}
    own = [
        f"--nnodes={job.num_nodes}", f"--nproc-per-node={count}", f"--rdzv-id={job.name}",
        "--rdzv-backend=c10d", f'--rdzv-endpoint="$HEAD:{launch.port(options)}"',
    ]  # fmt: skip
    body = head_line(options) + "exec " + torchrun_line(job, options, own)
    usage = [f"Start on each of the {job.num_nodes} nodes: HEAD=<first node> bash {FILE}"]
    return {FILE: script(job, options, usage, body)}


def _write_elastic(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    check_job(job)
    count = launch.per_node(job)
    least = _least_nodes(job, options, count)
    restarts = quoting.whole(
        options.get("max_restarts", str(launch.RESTARTS)), "max_restarts", 0, 1000
    )
    own = [
        f"--nnodes={least}:{job.num_nodes}", f"--nproc-per-node={count}",
        f"--max-restarts={restarts}", f"--rdzv-id={job.name}", "--rdzv-backend=c10d",
        f'--rdzv-endpoint="$HEAD:{launch.port(options)}"',
    ]  # fmt: skip
    usage = [
        f"Start on each node: HEAD=<first node> bash {ELASTIC_FILE}",
        "When a node leaves or joins, torchrun starts the script again on those that are there: it "
        "must go on from its last checkpoint and work its gradient accumulation out anew.",
        f"Memory and time were forecast for {job.num_nodes} nodes; fewer of them hold larger "
        "shards each.",
    ]
    body = head_line(options) + "exec " + torchrun_line(job, options, own)
    return {ELASTIC_FILE: script(job, options, usage, body)}


def _least_nodes(job: RecipeJob, options: Mapping[str, str], count: int) -> int:
    """The least number of nodes, which must divide the global batch evenly."""
    least = quoting.whole(
        options.get("min_nodes", str(job.num_nodes)), "min_nodes", 1, job.num_nodes
    )
    lay = job.layout
    rest = lay.tp * lay.pp * lay.cp
    if (least * count) % rest:
        raise RecipeError(
            f"{least} nodes of {count} GPUs are not divided evenly by tp x pp x cp of {rest}."
        )
    dp = least * count // rest
    if job.global_batch_size % (dp * lay.micro_batch_size):
        raise RecipeError(
            f"On {least} nodes dp is {dp}, and {dp} micro-batches of {lay.micro_batch_size} do not "
            f"divide the global batch of {job.global_batch_size}."
        )
    return least


def _read(files: Mapping[str, str]) -> Recovered:
    found = launch.flags(_one(files), "torchrun")
    least, _, most = found.get("nnodes", "").partition(":")
    nodes = launch.number({"nnodes": most or least}, "nnodes")
    return launch.recovered(
        nodes, launch.number(found, "nproc-per-node"),
        min_nodes=launch.number({"nnodes": least}, "nnodes"),
    )  # fmt: skip


def _one(files: Mapping[str, str]) -> str:
    if len(files) != 1:
        raise RecipeError(f"One file is read, not {shown(', '.join(files))}.")
    return next(iter(files.values()))


_COMMON = ("command", "env", "port", "hosts", "fabric")
TARGETS = (
    Target(
        name="torchrun", title="torchrun on one or several nodes", kind="launcher", tier=TIER,
        tool=TOOL, write=_write, read=_read, options=_COMMON, refuses=launch.is_torch,
    ),
    Target(
        name="torchrun-elastic", title="torchrun, elastic", kind="launcher", tier=TIER, tool=TOOL,
        write=_write_elastic, read=_read, options=(*_COMMON, "min_nodes", "max_restarts"),
        refuses=launch.is_torch,
    ),
)  # fmt: skip

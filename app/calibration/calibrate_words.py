"""A calibration run in words and as JSON: its limits, its progress, its result."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.calibration.job import START_S, Limits, num_nodes_of, processes_of
from app.calibration.options import Asked
from app.document import format as fmt
from app.document.echo import echo
from app.document.progress import terminal_bar
from runners.calibration.result import CalibResult
from runners.launchers.follow import Status
from runners.launchers.launcher import Launch
from runners.run_state import RunState

PROGRAMS = (".py",)  # shown by hash only: they do not change between runs


def budget_sentence(asked: Asked, where: str, limits: Limits) -> str:
    """The maximum time and cost of a run."""
    processes, num_nodes = processes_of(asked), num_nodes_of(asked)
    each = "one process a GPU" if processes is None else f"{fmt.count(processes)} processes"
    each = "one process" if processes == 1 else each
    nodes = "1 node" if num_nodes == 1 else f"{fmt.count(num_nodes)} nodes"
    took = (
        f"{nodes} of {each} on {where}, at most {limits.limit_s:.0f} s there: "
        f"{limits.budget_s:.0f} s of measuring, {START_S:.0f} s to start"
    )
    if limits.billed_s > limits.limit_s:
        took += f", and {limits.billed_s - limits.limit_s:.0f} s to rent and return the machines"
    if limits.usd is None and asked.launcher == "local":
        return f"{took}."
    if limits.usd is None:
        return f"{took}. What that costs is not known: --usd-per-hour was not given."
    return f"{took}. At most {fmt.usd(limits.usd, digits=3)}."


def by_hand(asked: Asked, probe: Path, plan: Path) -> list[list[str]]:
    """The commands that measure a node with the probe, and keep what they measured."""
    processes = asked.processes_per_node or asked.gpus_per_node or (
        "1" if asked.device == "cpu" else "gpu"
    )  # fmt: skip
    words = [probe.name, "--plan", plan.name, "--out", "result.json"]
    alone = [asked.python or "python3", *words]
    many = ["torchrun", f"--nproc-per-node={processes}", *words]
    return [alone if processes == "1" else many, ["runcast", "calibrations", "add", "result.json"]]


def launch_json(run_id: str, launch: Launch) -> dict[str, Any]:
    """The files and commands of a dry run as JSON."""
    return {
        "run_id": run_id,
        "files": {path: content.decode() for path, content in launch.files.items()},
        "commands": [list(command) for command in launch.commands],
    }


def launch_lines(launch: Launch) -> Iterator[str]:
    """The files and commands of a dry run as lines of text."""
    for path, content in launch.files.items():
        digest = hashlib.sha256(content).hexdigest()
        yield f"# file {path}, {len(content):,} bytes, sha256 {digest}"
        if not path.endswith(PROGRAMS):
            yield content.decode().rstrip("\n")
    for command in launch.commands:
        yield f"$ {shlex.join(command)}"


@contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[[Status], None]]:
    """Shows the progress of a run on standard error: a bar on a terminal, else a line per group."""
    last = ""
    with terminal_bar(quiet=quiet) as bar:
        task = bar.add_task("starting", total=None)

        def show(status: Status) -> None:
            nonlocal last
            text = ": ".join(w for w in (status.state, status.group, status.sentence) if w)
            # The named group has started; those before it are finished.
            finished = status.total if status.state == "done" else max(0, status.done - 1)
            bar.update(task, description=text, completed=finished, total=status.total or None)
            line = f"{text} ({status.done}/{status.total})" if status.total else text
            if bar.disable and not quiet and line != last:
                echo(line, err=True)
            last = line

        yield show


def result_json(
    asked: Asked, limits: Limits, state: RunState, result: CalibResult, file: Path
) -> dict[str, Any]:
    """The summary that `--json` prints; docs/calibration.md lists its keys."""
    made = result.provenance
    return {
        "run_id": state.run_id,
        "launcher": state.launcher,
        "handle": state.handle,
        "submissions": state.submissions,
        "num_nodes": num_nodes_of(asked),
        "world_size": made.world_size,
        "budget_s": limits.budget_s,
        "limit_s": limits.limit_s,
        "usd_at_most": limits.usd,
        "usd": result.usd,
        "wall_s": result.wall_s,
        "complete": result.complete,
        "groups": [group.name for group in result.groups],
        "num_results": len(result.results),
        "skipped": [
            {"group": s.group, "label": s.label, "reason": s.reason} for s in result.skipped
        ],
        "device": made.device.name,
        "sku_key": made.device.sku_key,
        "host": made.host,
        "torch": made.torch,
        "measured_at": made.utc_end,
        "result_file": str(file),
    }


def sentences(found: Mapping[str, Any]) -> Iterator[str]:
    """What the run measured and where the result is."""
    whole = "every group" if found["complete"] else f"{len(found['groups'])} groups"
    ranks = "1 process" if found["world_size"] == 1 else f"{found['world_size']} processes"
    usd = "" if found["usd"] is None else f" About {fmt.usd(found['usd'], digits=3)} of measuring."
    yield (
        f"Measured {whole} ({found['num_results']} results) on {found['device']}, {ranks}, "
        f"in {found['wall_s']:.0f} s, torch {found['torch']}.{usd}"
    )
    for skipped in found["skipped"]:
        what = ": ".join(dict.fromkeys(w for w in (skipped["group"], skipped["label"]) if w))
        yield f"Left out {what}: {skipped['reason']}."
    yield f"The result is in {found['result_file']}."

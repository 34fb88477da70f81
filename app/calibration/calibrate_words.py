"""A calibration run in words and as JSON: its limits, its progress, its result."""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from app.calibration.job import START_S, Asked, Limits
from app.document import format as fmt
from app.document.progress import terminal_bar
from runners.calibration.result import CalibResult
from runners.launchers.follow import Status
from runners.launchers.launcher import Launch
from runners.run_state import RunState

PROGRAMS = (".py",)  # shown by hash only: they do not change between runs


def budget_sentence(asked: Asked, where: str, limits: Limits) -> str:
    """The maximum time and cost of a run."""
    processes = asked.processes
    each = "one process a GPU" if processes is None else f"{fmt.count(processes)} processes"
    each = "one process" if processes == 1 else each
    nodes = "1 node" if asked.num_nodes == 1 else f"{fmt.count(asked.num_nodes)} nodes"
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


class Live:
    """Progress of a run on standard error: a bar on a terminal, else a line per group."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._bar = terminal_bar(quiet=quiet)
        self._task = self._bar.add_task("starting", total=None)
        self._last = ""

    def __enter__(self) -> Live:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, told: Status) -> None:
        words = [told.state, told.group, told.sentence]
        text = ": ".join(w for w in words if w)
        # The named group has started; those before it are finished.
        finished = told.total if told.state == "done" else max(0, told.done - 1)
        self._bar.update(self._task, description=text, completed=finished, total=told.total or None)
        line = f"{text} ({told.done}/{told.total})" if told.total else text
        if self._bar.disable and not self._quiet and line != self._last:
            print(line, file=sys.stderr)
        self._last = line


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
        "num_nodes": asked.num_nodes,
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


def sentences(found: Mapping[str, Any]) -> list[str]:
    """What the run measured and where the result is."""
    whole = "every group" if found["complete"] else f"{len(found['groups'])} groups"
    ranks = "1 process" if found["world_size"] == 1 else f"{found['world_size']} processes"
    said = [
        f"Measured {whole} ({found['num_results']} results) on {found['device']}, {ranks}, "
        f"in {found['wall_s']:.0f} s, torch {found['torch']}."
    ]
    if found["usd"] is not None:
        said[0] += f" About {fmt.usd(found['usd'], digits=3)} of measuring."
    for skipped in found["skipped"]:
        what = ": ".join(dict.fromkeys(w for w in (skipped["group"], skipped["label"]) if w))
        said.append(f"Left out {what}: {skipped['reason']}.")
    said.append(f"The result is in {found['result_file']}.")
    return said

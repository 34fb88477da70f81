"""The result file: written atomically, and resumed from after a killed run."""

from __future__ import annotations

import json
import os
from pathlib import Path

from runners.probes.anonymous import anonymised
from runners.probes.budget import USED_UP
from runners.probes.plan import plan_digest
from runners.probes.probe import Probe
from runners.probes.rows import PROBE_VERSION, Row


def write_whole(path: Path, text: str) -> None:
    """Write under a temporary name, then rename: a reader sees the old file or the new one."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)


def as_text(result: Row, anonymise: bool) -> str:
    """The result as one line of JSON."""
    shared = anonymised(result) if anonymise else result
    return json.dumps(shared, allow_nan=False, separators=(",", ":"))


def earlier_result(p: Probe, part: Path) -> Row | None:
    """The result of an earlier try of this run, if it measured an equal plan with equal options."""
    try:
        earlier = json.loads(part.read_text(encoding="utf-8"))
        same = (
            earlier["run_id"] == p.plan["run_id"]
            and earlier["probe_version"] == PROBE_VERSION
            and earlier["provenance"]["plan_sha256"] == plan_digest(p.plan)
            and earlier["provenance"]["world_size"] == p.ranks.world
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return earlier if same else None


def finished_groups(earlier: Row) -> set[str]:
    """Groups that need no second try: all except those that the budget cut off."""
    cut = {one["group"] for one in earlier["skipped"] if USED_UP in one["reason"]}
    return {group["name"] for group in earlier["groups"]} - cut

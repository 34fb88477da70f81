"""Reader of the plan, calib-plan/1; a bad plan is refused with a sentence."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from runners.probes.numerics import DTYPES

_PLAN_SCHEMA = "calib-plan/1"
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
SHAPE_KEYS = ("m", "n", "k")
ATTENTION_KEYS = ("batch", "num_heads", "num_kv_heads", "seq_len", "head_dim")
BLOCK_KEYS = (
    "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_kv_heads", "head_dim",
    "vocab_size", "seq_len", "micro_batch_size",
)  # fmt: skip


class PlanError(ValueError):
    """The plan or an option cannot be used; the text is shown to the user."""


def read_plan(path: str, known_groups: Collection[str]) -> dict[str, Any]:
    """Read a calib-plan/1 file; PlanError with the reason for anything else."""
    try:
        plan = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PlanError(f"the plan {path} cannot be read: {error}") from None
    if not isinstance(plan, dict) or plan.get("schema") != _PLAN_SCHEMA:
        raise PlanError(f"the plan {path} is not a {_PLAN_SCHEMA} file")
    if not RUN_ID.fullmatch(str(plan.get("run_id"))):
        raise PlanError("run_id must be 1 to 64 letters, digits, '.', '_' or '-'")
    groups = plan.get("groups")
    if not isinstance(groups, list) or not groups or len(set(map(str, groups))) != len(groups):
        raise PlanError("groups must be a list of different names")
    if unknown := [str(g) for g in groups if g not in known_groups]:
        raise PlanError(f"unknown groups {', '.join(unknown)}; known: {', '.join(known_groups)}")
    if bad := [str(d) for d in plan.get("dtypes", ()) if d not in (*DTYPES, "fp8")]:
        raise PlanError(f"unknown dtypes {', '.join(bad)}; known: {', '.join(DTYPES)}, fp8")
    if not plan.get("dtypes") or plan["dtypes"][0] not in DTYPES:
        raise PlanError(f"dtypes must begin with one of {', '.join(DTYPES)}")
    for key, names in (("shapes", SHAPE_KEYS), ("attention", ATTENTION_KEYS)):
        for shape in plan.get(key) or ():
            _check_sizes(key, shape, names)
    _check_sizes("block", plan.get("block"), BLOCK_KEYS)
    counts = plan["block"].get("layer_counts", [1, 3])
    if not isinstance(counts, list) or len(counts) != 2 or counts[0] == counts[1]:
        raise PlanError("block: layer_counts must be two different numbers of layers")
    for count in (*counts, plan["block"].get("holdout_layers", 4)):
        _check_sizes("block", {"layers": count}, ("layers",))
    for name in ("row_s", "collective_s"):
        seconds = plan.get(name)
        if seconds is not None and not (isinstance(seconds, (int, float)) and 0 < seconds <= 1e5):
            raise PlanError(f"{name} must be seconds above 0, not {seconds!r}")
    _check_sizes("plan", plan, ("collective_max_bytes",))
    return plan


def _check_sizes(where: str, given: Any, names: tuple[str, ...]) -> None:
    if not isinstance(given, dict):
        raise PlanError(f"{where} must be an object with {', '.join(names)}")
    for name in names:
        value = given.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 2**40:
            raise PlanError(f"{where}: {name} must be a whole number from 1, not {value!r}")


def plan_digest(plan: dict[str, Any]) -> str:
    """Hash of what is measured, because a job id or a launcher may change between two tries of a
    run."""
    kept = {k: v for k, v in plan.items() if k not in ("job_id", "launcher")}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()

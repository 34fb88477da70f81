"""Run of all groups, with the control between them, and rows merged over ranks."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import torch

from runners.probes.budget import USED_UP, cut_off_after
from runners.probes.groups import GROUPS, LEAST_S, TOGETHER
from runners.probes.probe import Probe
from runners.probes.rows import Row
from runners.probes.settling import (
    SETTLING_LEAST_S,
    SETTLING_MOST_S,
    SETTLING_WINDOW_S,
    calls_per_s,
    settle,
)
from runners.probes.state import Monitor, during, machine_state
from runners.probes.timing import Call


def _control_call(p: Probe) -> Call:
    """The control: one matmul with its own inputs, whose time should not change."""
    width, dtype = (4096, "bf16") if p.device.gpu else (320, "fp32")
    a, b = p.tensor(width, width, dtype=dtype), p.tensor(width, width, dtype=dtype)
    out = torch.empty_like(a)
    return lambda: torch.matmul(a, b, out=out)


def _control_sample(p: Probe, call: Call, after: str) -> Row:
    """One sample of the control, on the slowest rank."""
    measured = p.times(call)
    worst = max(p.ranks.gather(measured), key=lambda one: one["t_med_s"])
    return {"at_s": p.elapsed_s(), "after_group": after, "t_med_s": worst["t_med_s"],
            "rel_iqr": worst["rel_iqr"], "n": worst["n"]}  # fmt: skip


def _settled(p: Probe, call: Call) -> Row:
    """Work with the control until clock and power no longer move, at most a tenth of the budget."""
    found = settle(
        lambda: calls_per_s(call, p.device.sync, seconds=SETTLING_WINDOW_S),
        least_s=SETTLING_LEAST_S,
        most_s=p.ranks.decided(min(SETTLING_MOST_S, 0.1 * p.left_s())),
        clock=p.elapsed_s,
        agreed=lambda done: all(p.ranks.gather(done)),
    )
    say(p, f"settled for {found['wall_s']:.0f} s: the last windows agree within "
           f"{found['rel_range']:.1%}, at {found['from_first']:.1%} of the first")  # fmt: skip
    return found


def _row_key(row: Row) -> tuple[Any, ...]:
    named = tuple(sorted(row["params"].items()))
    return (row["label"], row.get("dtype"), row["mode"], row.get("compiled"), named)


def merged(p: Probe) -> tuple[list[Row], list[Row]]:
    """Rows and omissions of all ranks: each row from the slowest rank, with the time of every
    node."""
    all_rows = p.ranks.gather(p.rows)
    left_out = list(p.left_out)
    for rank, others in enumerate(p.ranks.gather(p.left_out)):
        named = {(one["group"], one["label"]) for one in left_out}
        left_out += [
            {**one, "reason": f"rank {rank}: {one['reason']}"[:200]}
            for one in others
            if (one["group"], one["label"]) not in named
        ]
    by_rank = [{_row_key(row): row for row in rows} for rows in all_rows]
    rows = []
    for key in (_row_key(row) for row in p.rows):
        if not all(key in one for one in by_rank):
            continue
        medians = [one[key]["t_med_s"] for one in by_rank]
        slowest = max(range(len(medians)), key=medians.__getitem__)
        row = dict(by_rank[slowest][key])
        if p.ranks.world > 1:
            row["slowest_rank"] = slowest
            row["t_med_by_node_s"] = [
                max(medians[r] for r in range(p.ranks.world) if p.ranks.node_of[r] == node)
                for node in sorted(set(p.ranks.node_of))
            ]
        rows.append(row)
    return rows + p.shared, left_out


def say(p: Probe, text: str) -> None:
    if p.ranks.rank == 0:
        print(f"runcast: {text}", file=sys.stderr, flush=True)


def measure_all(p: Probe, result: Row, save: Callable[[Row], None], monitor: Monitor) -> None:
    """Measure the groups of the plan in order, as long as the budget lasts."""
    names = list(p.plan["groups"])
    done = {group["name"] for group in result["groups"]}
    call = _control_call(p)
    if p.ranks.decided(p.left_s() > 0 and not done.issuperset(names)):
        if p.device.gpu:
            result["settling"] = _settled(p, call)
        result["control"].append(_control_sample(p, call, "start"))
    for i, name in enumerate(names, start=1):
        if name in done:
            say(p, f"group {name} {i}/{len(names)} {p.elapsed_s():.1f} s (measured before)")
            continue
        say(p, f"group {name} {i}/{len(names)} {p.elapsed_s():.1f} s")
        if not p.ranks.decided(p.left_s() > LEAST_S.get(name, 0.0)):
            result["skipped"].append({"group": name, "label": "", "reason": f"{USED_UP} before it"})
            continue
        p.group, p.rows, p.shared, p.left_out = name, [], [], []
        before, start = machine_state(p.device), p.elapsed_s()
        monitor.taken()
        # Ranks that wait for each other decide together, instead of being cut off one by one.
        with p.attempt(""), cut_off_after(math.inf if name in TOGETHER else p.left_s()):
            GROUPS[name](p)
        p.device.release()
        rows, left_out = merged(p)
        loaded = during(p.ranks.gather(monitor.taken()))
        after = machine_state(p.device)
        if rows:
            result["control"].append(_control_sample(p, call, name))
        result["results"] += rows
        result["skipped"] += left_out
        result["groups"].append({
            "name": name, "at_s": start, "wall_s": p.elapsed_s() - start, "state_before": before,
            "state_during": loaded, "state_after": after,
        })  # fmt: skip
        save(result)

"""Measure one node, or several at once: one file that needs Python >= 3.9 and torch >= 2.4.

    python node.py --plan plan.json --out result.json [--budget-s S]
    torchrun --nproc-per-node 8 node.py --plan plan.json --out result.json

plan.json is `calib-plan/1` (runners/calibration/probe_plan.py writes it), the result is
`calib-result/1` (runners/calibration/result.py reads it; docs/calibration.md says what every
key means). The result is written to --out and printed on standard output between two marker lines.
After each group of measurements it is written to --out + ".part": a run that was killed goes on
from there. Exit status: 0 measured, 2 bad plan or option, 3 the device is busy, 4 the budget is too
small.

How it measures. Inputs are N(0, 1). Every operation is warmed up by count and by time. On a GPU a
sample is one call between two events, all samples are queued before one synchronization, and a
buffer larger than the last-level cache is written before each (`cold_cache`). On a CPU a sample is
enough calls to fill a millisecond, with warm caches. Medians and spreads are reported, never the
best. One fixed matmul, the control, is timed before the first group and after every one: what it
moves is the drift of the session. No setting of the machine is ever changed, neither clocks nor
limits.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch.distributed as dist

from runners.probes.budget import allowed_s
from runners.probes.device import Device
from runners.probes.groups import GROUPS
from runners.probes.measuring import measure_all, say
from runners.probes.plan import RUN_ID, PlanError, read_plan
from runners.probes.probe import Probe
from runners.probes.provenance import device_record, provenance, utc
from runners.probes.ranks import Ranks
from runners.probes.result_file import as_text, earlier_result, finished_groups, write_whole
from runners.probes.rows import PROBE_VERSION, SCHEMA, Row
from runners.probes.state import Monitor, why_busy

OK, BAD_PLAN, BUSY, TOO_LITTLE = 0, 2, 3, 4


def _run(options: argparse.Namespace, argv: list[str]) -> int:
    """Run a plan to its result; returns the exit status."""
    plan = read_plan(options.plan, tuple(GROUPS))
    if options.run_id and options.run_id != plan["run_id"]:
        if not RUN_ID.fullmatch(options.run_id):
            raise PlanError("--run-id must be 1 to 64 letters, digits, '.', '_' or '-'")
        plan["run_id"] = options.run_id
    budget_s = allowed_s(options, bool(plan.get("reduced")))
    ranks = Ranks()
    device = Device(ranks.local_rank, allow_gpu=plan.get("device") != "cpu")
    if plan.get("device") not in (None, device.kind):
        raise PlanError(f"the plan is for {plan['device']}, and torch sees {device.kind} only")
    busy = None if options.force else why_busy(device)
    ranks.join(device.kind)
    try:
        if found := [text for text in ranks.gather(busy) if text]:
            print(f"runcast probe: {found[0]}; --force measures all the same", file=sys.stderr)
            return BUSY
        device.start()
        p = Probe(plan, ranks, device)
        p.out = Path(options.out)
        return _measured(p, options, argv, budget_s)
    finally:
        if ranks.distributed:
            dist.destroy_process_group()


def _measured(p: Probe, options: argparse.Namespace, argv: list[str], budget_s: float) -> int:
    part = p.out.with_name(p.out.name + ".part")
    record = device_record(p.device, p.plan.get("sku_key"))
    made = provenance(p, record, argv)
    own = {"host": made["host"], "device_name": record["name"], "uuid": record.get("uuid")}
    hosts = p.ranks.gather(own)
    node_of = p.ranks.node_of
    result: Row = {
        "schema": SCHEMA, "probe_version": PROBE_VERSION, "run_id": p.plan["run_id"],
        "complete": False, "wall_s": 0.0, "budget_s": budget_s,
        "usd": None, "provenance": made,
        "nodes": [
            {"index": node, "ranks": node_of.count(node), **hosts[node_of.index(node)]}
            for node in sorted(set(node_of))
        ],
        "groups": [], "control": [], "results": [], "skipped": [],
    }  # fmt: skip
    earlier = None
    if p.ranks.rank == 0:
        earlier = earlier_result(p, part) or earlier_result(p, p.out)
    earlier = p.ranks.decided(earlier)
    if earlier:
        names = finished_groups(earlier)
        result["control"] = earlier["control"]
        for key, name in (("groups", "name"), ("results", "probe"), ("skipped", "group")):
            result[key] = [one for one in earlier[key] if one[name] in names]
        p.begin -= float(earlier["wall_s"])
        made |= {"utc_start": earlier["provenance"]["utc_start"],
                 "sessions": int(earlier["provenance"]["sessions"]) + 1}  # fmt: skip
        say(p, f"going on after {len(names)} groups that were measured before")
    p.budget_s = budget_s

    def save(so_far: Row) -> None:
        so_far["wall_s"] = p.elapsed_s()
        if options.usd_per_hour is not None:
            so_far["usd"] = p.elapsed_s() / 3600 * options.usd_per_hour
        made["utc_end"] = utc(time.time())
        if p.ranks.rank == 0:
            write_whole(part, as_text(so_far, options.anonymise))

    monitor = Monitor(p.device)
    try:
        measure_all(p, result, save, monitor)
    finally:
        monitor.stop()
    if p.ranks.rank:
        return OK
    if not result["results"]:
        print(f"runcast probe: nothing could be measured within {budget_s:g} s", file=sys.stderr)
        return TOO_LITTLE
    result["complete"] = len(result["groups"]) == len(p.plan["groups"])
    save(result)
    text = as_text(result, options.anonymise)
    write_whole(p.out, text)
    part.unlink(missing_ok=True)
    say(p, f"done {len(result['groups'])}/{len(p.plan['groups'])} {p.elapsed_s():.1f} s")
    mark = f"RUNCAST RESULT {p.plan['run_id']}-----"
    sys.stdout.write(f"-----BEGIN {mark}\n{text}\n-----END {mark}\n")
    sys.stdout.flush()
    return OK


def _terminated(number: int, frame: Any) -> None:
    """End a cancelled job, removing its checkpoint file and its monitor."""
    raise SystemExit(128 + number)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure this node for a Runcast calibration.")
    parser.add_argument("--plan", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--budget-s", type=float)
    parser.add_argument("--max-usd", type=float)
    parser.add_argument("--usd-per-hour", type=float)
    parser.add_argument("--run-id")
    parser.add_argument("--anonymise", action="store_true")
    parser.add_argument("--force", action="store_true")
    options = parser.parse_args(argv)
    try:
        return _run(options, argv)
    except PlanError as error:
        print(f"runcast probe: {error}", file=sys.stderr)
        return BAD_PLAN


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _terminated)
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # Gloo's threads outlive their groups: one that still lets go of a tensor while the interpreter
    # ends aborts the process, and torchrun then ends the rank that writes the result.
    os._exit(status)

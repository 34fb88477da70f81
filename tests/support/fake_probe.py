"""A probe for the tests of launchers: the command line, the files and the markers of the real one,
standard library only. It measures nothing; the plan says how long each group takes."""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--plan", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--run-id")
    for number in ("--budget-s", "--max-usd", "--usd-per-hour"):
        parser.add_argument(number, type=float)
    for switch in ("--anonymise", "--force"):
        parser.add_argument(switch, action="store_true")
    options = parser.parse_args()
    plan = json.loads(Path(options.plan).read_text())
    rank, out = int(os.environ.get("RANK", "0")), Path(options.out)
    part = out.with_name(out.name + ".part")
    done = []
    with contextlib.suppress(OSError):
        done = json.loads(part.read_text())["groups"]
    if plan.get("child"):  # as torchrun's workers: in a session of its own
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                         start_new_session=True)  # fmt: skip
    groups = plan["groups"]
    for i, name in enumerate(groups, start=1):
        print(f"runcast: group {name} {i}/{len(groups)} 0.0 s", file=sys.stderr, flush=True)
        if name in done:
            continue
        time.sleep(plan.get("group_s", 0.0))
        if plan.get("dies_at") == name and not part.exists():
            return 7
        done.append(name)
        if rank == 0:
            # Under another name first, as the real one: the other ranks may be reading it.
            draft = part.with_suffix(".draft")
            draft.write_text(json.dumps({"groups": done, "pid": os.getpid()}))
            draft.replace(part)
    if rank == 0:
        kept = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "MASTER_ADDR", "WORLD_SIZE", "GREETING",
                "SLURM_JOB_ID", "SLURM_CPUS_PER_TASK", "CUDA_VISIBLE_DEVICES")  # fmt: skip
        result = {"schema": "fake", "run_id": plan["run_id"], "groups": done,
                  "env": {n: os.environ[n] for n in kept if n in os.environ}}  # fmt: skip
        text = json.dumps(result)
        out.write_text(text[: len(text) // 2] if plan.get("truncated") else text)
        part.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The entrypoint of a Ray job on several nodes: one supervisor on each, in a placement group.

It is copied with the probe and runs under the cluster's Python: standard library and ray only.
    python3 on_ray.py PYTHON NODES GPUS_PER_NODE
"""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FILES = ("node.py", "on_node.py", "plan.json", "job.json")
PLACED_S = 300.0  # for the cluster to free the nodes


def supervise(python: str, rank: int, master: str, files: dict[str, bytes]) -> tuple[int, str]:
    """Run the supervisor of one node in a folder of its own; returns its status and output. Its
    lines also go to the driver."""
    with tempfile.TemporaryDirectory(prefix="runcast-") as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        libc = ctypes.CDLL(None)
        process = subprocess.Popen(
            [python, str(Path(folder) / "on_node.py"), "run", folder, str(rank)],
            env={**os.environ, "MASTER_ADDR": master},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            preexec_fn=lambda: libc.prctl(1, signal.SIGTERM, 0, 0, 0),  # ends with this worker
        )  # fmt: skip
        out, _ = process.communicate()
    return process.returncode, out


def main(python: str, num_nodes: int, gpus: int) -> int:
    """Place, run, print what the first node printed."""
    try:
        ray: Any = importlib.import_module("ray")
    except ModuleNotFoundError:
        print("runcast: node 0: python3 of the head node has no ray", file=sys.stderr)
        return 7
    here = Path(__file__).resolve().parent  # joining the cluster changes the working directory
    files = {name: (here / name).read_bytes() for name in FILES}
    groups = importlib.import_module("ray.util.placement_group")
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    ray.init(log_to_driver=True)  # progress of the first node
    need = {"CPU": 1.0, **({"GPU": float(gpus)} if gpus else {})}
    group = groups.placement_group([need] * num_nodes, strategy="STRICT_SPREAD")
    try:
        ray.get(group.ready(), timeout=PLACED_S)
    except ray.exceptions.GetTimeoutError:
        print(f"runcast: node 0: Ray has no {num_nodes} nodes with {need} free", file=sys.stderr)
        return 5

    def placed(function: Any, rank: int) -> Any:
        where = strategies.PlacementGroupSchedulingStrategy(
            placement_group=group, placement_group_bundle_index=rank
        )
        remote = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=0)(function)
        return remote.options(scheduling_strategy=where)

    master = ray.get(placed(lambda: ray.util.get_node_ip_address(), 0).remote())
    waiting = [
        placed(supervise, rank).remote(python, rank, master, files) for rank in range(num_nodes)
    ]
    try:
        ended = ray.get(waiting)
    except ray.exceptions.RayError as e:
        print(f"runcast: node lost: {str(e).splitlines()[0]}", file=sys.stderr)
        return 6
    sys.stdout.write(ended[0][1])
    sys.stdout.flush()
    return max(status for status, _ in ended)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))

"""The launcher, the job and the limits that follow from the options of `runcast calibrate`."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from app.calibration.options import Asked, option
from core.errors import ScenarioError, shown, unknown_name
from core.units import HOUR_S
from runners.launchers import quoting
from runners.launchers.job import Job
from runners.launchers.kubernetes import Kubernetes
from runners.launchers.launcher import Launcher
from runners.launchers.local import Local
from runners.launchers.ray_jobs import RayJobs
from runners.launchers.skypilot import SkyPilot
from runners.launchers.slurm import Slurm
from runners.launchers.slurm_software import software
from runners.launchers.ssh import Ssh
from runners.run_state import folder_of

LAUNCHERS = ("local", "ssh", "slurm", "ray", "sky", "k8s")
DEVICES = ("cpu", "cuda", "rocm")
BUDGET_S = {True: 60.0, False: 600.0}  # by is_reduced: the probe has the same defaults
START_S = 120.0  # before the first measurement: loading torch, rendezvous, the control
PROVISION_S = 900.0  # to start rented machines and to shut them down
LEAST_BUDGET_S = 10.0
MOST_S = 86_400.0
MOST_NODES, MOST_PROCESSES = 1024, 64

GPUS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")  # NVIDIA, NVIDIA under WSL, AMD
# Options that only these launchers accept.
TAKEN_BY = {
    "hosts": ("ssh",), "master_addr": ("ssh",), "ssh_config": ("ssh",), "folder": ("ssh", "slurm"),
    "partition": ("slurm",), "account": ("slurm",), "qos": ("slurm",), "modules": ("slurm",),
    "venv": ("slurm",), "container": ("slurm",), "container_image": ("slurm",),
    "container_mounts": ("slurm",), "address": ("ray",),
    "infra": ("sky",), "spot": ("sky",), "image": ("k8s",), "namespace": ("k8s",),
    "context": ("k8s",), "gpu_resource": ("k8s",),
}  # fmt: skip
NEEDED = {
    "ssh": ("hosts",), "ray": ("address",), "sky": ("gpu", "usd_per_hour"), "k8s": ("image",),
}  # fmt: skip
REQUESTS_GPUS = ("slurm", "ray", "k8s")  # these schedulers need a GPU count in the request


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a run: seconds of measuring, seconds in total, dollars in total."""

    budget_s: float
    limit_s: float
    billed_s: float  # per node, at most
    usd: float | None  # None: no price was given


def num_nodes_of(asked: Asked) -> int:
    """The number of nodes: of the hosts for ssh, one for local."""
    typed = _count(asked.nodes, "--nodes", MOST_NODES)
    if asked.launcher == "ssh":
        hosts = quoting.hosts(asked.hosts or "")
        if typed not in (None, len(hosts)):
            raise ScenarioError(f"--nodes {typed} and {len(hosts)} --hosts contradict.")
        return len(hosts)
    if asked.launcher == "local" and typed not in (None, 1):
        raise ScenarioError("--launcher local is one node: this machine.")
    return typed or 1


def processes_of(asked: Asked) -> int | None:
    """Processes per node; None means one per GPU, counted on the node."""
    typed = _count(asked.processes_per_node, "--processes-per-node", MOST_PROCESSES)
    gpus = _gpus(asked)
    if asked.launcher == "sky" and gpus is None:
        gpus = int((asked.gpu or "").rpartition(":")[2] or 0) or None
    return typed or gpus or (1 if asked.device == "cpu" else None)


def limits_of(asked: Asked) -> Limits:
    """The limits of a run; a limit in dollars may leave fewer seconds than requested."""
    budget_s = _number(asked.budget_s, "--budget-s", MOST_S) or BUDGET_S[is_reduced(asked)]
    usd_per_hour = _number(asked.usd_per_hour, "--usd-per-hour", 1e6)
    max_usd = _number(asked.max_usd, "--max-usd", 1e9)
    num_nodes = num_nodes_of(asked)
    around_s = START_S + (PROVISION_S if asked.launcher == "sky" else 0.0)
    if max_usd is not None and usd_per_hour is not None:
        buys_s = max_usd / (usd_per_hour * num_nodes) * HOUR_S
        if buys_s < around_s + LEAST_BUDGET_S:
            raise ScenarioError(
                f"--max-usd {max_usd:g} buys {buys_s:.0f} s of {num_nodes} nodes, and "
                f"starting takes up to {around_s:.0f} s."
            )
        budget_s = min(budget_s, buys_s - around_s)
    if budget_s < LEAST_BUDGET_S:
        raise ScenarioError(f"--budget-s {budget_s:g} is less than {LEAST_BUDGET_S:g} s.")
    billed_s = budget_s + around_s
    usd = None if usd_per_hour is None else usd_per_hour * num_nodes * billed_s / HOUR_S
    return Limits(budget_s, budget_s + START_S, billed_s, usd)


def check_device(asked: Asked) -> None:
    """Raise ScenarioError for a local run without a GPU unless a device is given."""
    if asked.launcher == "local" and asked.device is None and not any(map(os.path.exists, GPUS)):
        raise ScenarioError("No GPU is here: --device cpu measures the processor, on small shapes.")


def is_reduced(asked: Asked) -> bool:
    """Whether to measure small shapes: on request, and always on a CPU."""
    return asked.reduced or asked.device == "cpu"


def job_of(asked: Asked, run_id: str, plan: Mapping[str, Any]) -> Job:
    """The job; checks every value that reaches a shell or a file."""
    limits, num_nodes = limits_of(asked), num_nodes_of(asked)
    arguments = ["--budget-s", f"{limits.budget_s:.0f}"]
    if asked.usd_per_hour:
        arguments += ["--usd-per-hour", f"{float(asked.usd_per_hour) * num_nodes:g}"]
    if asked.max_usd:
        arguments += ["--max-usd", f"{float(asked.max_usd):g}"]
    arguments += ["--anonymise"] * asked.anonymise + ["--force"] * asked.force
    folder = folder_of(run_id)
    if asked.launcher == "slurm" and asked.folder:
        base = Path(quoting.path(asked.folder, "--folder")).expanduser().absolute()
        folder = base / f"runcast-{run_id}"
    return Job(
        run_id=run_id,
        folder=folder,
        plan=plan,
        num_nodes=num_nodes,
        processes=processes_of(asked),
        device=asked.device or "cuda",
        budget_s=limits.budget_s,
        limit_s=limits.limit_s,
        arguments=tuple(arguments),
        python=quoting.path(asked.python or "python3", "--python"),
        env=quoting.variables(asked.env),
        interface=_name(asked.interface, "--interface"),
    )


def launcher_of(asked: Asked) -> Launcher:
    """The launcher that the options name. Raises ScenarioError if they contradict one another."""
    _check(asked)
    match asked.launcher:
        case "ssh":
            if asked.ssh_config and not os.path.isfile(asked.ssh_config):
                raise ScenarioError(f"--ssh-config {shown(asked.ssh_config)} is no file here.")
            return Ssh(
                quoting.hosts(asked.hosts or ""),
                config=asked.ssh_config or "",
                master_addr=quoting.hosts(asked.master_addr)[0] if asked.master_addr else "",
                base=quoting.path(asked.folder or ".cache/runcast", "--folder"),
            )
        case "slurm":
            return Slurm(
                partition=_name(asked.partition, "--partition"),
                account=_name(asked.account, "--account"),
                qos=_name(asked.qos, "--qos"),
                gpus_per_node=_gpus(asked),
                software=software(
                    modules=asked.modules or "",
                    venv=asked.venv or "",
                    container=asked.container or "",
                    image=asked.container_image or "",
                    mounts=asked.container_mounts or "",
                ),
            )
        case "ray":
            return RayJobs(asked.address or "", gpus_per_node=_gpus(asked))
        case "sky":
            return SkyPilot(asked.gpu or "", infra=asked.infra or "", use_spot=asked.spot)
        case "k8s":
            resource = asked.gpu_resource or "nvidia.com/gpu"
            return Kubernetes(
                quoting.image(asked.image or "", "--image"),
                namespace=_name(asked.namespace or "default", "--namespace"),
                context=_name(asked.context, "--context"),
                gpus_per_node=_gpus(asked),
                gpu_resource=quoting.image(resource, "--gpu-resource"),
            )
        case _:
            return Local()


def _check(asked: Asked) -> None:
    """Raise ScenarioError for an unknown launcher or device, or if options contradict."""
    launcher, is_cpu = asked.launcher, asked.device == "cpu"
    if launcher not in LAUNCHERS:
        raise unknown_name("launcher", launcher, LAUNCHERS)
    if asked.device is not None and asked.device not in DEVICES:
        raise unknown_name("device", asked.device, DEVICES)
    for name, takers in TAKEN_BY.items():
        if getattr(asked, name) and launcher not in takers:
            raise ScenarioError(
                f"{option(name)} is for --launcher {' or '.join(takers)}, not {launcher}."
            )
    if lacks := [n for n in NEEDED.get(launcher, ()) if not getattr(asked, n)]:
        raise ScenarioError(f"--launcher {launcher} needs {' and '.join(map(option, lacks))}.")
    if launcher in REQUESTS_GPUS and not (asked.gpus_per_node or is_cpu):
        raise ScenarioError(
            f"--launcher {launcher} needs --gpus-per-node, or --device cpu: it gives a "
            "job what is asked for and no more."
        )
    if asked.max_usd and not asked.usd_per_hour:
        raise ScenarioError("--max-usd needs --usd-per-hour, the price of one node.")
    if is_cpu and asked.gpus_per_node:
        raise ScenarioError("--gpus-per-node and --device cpu contradict each other.")


def read_asked(options: Mapping[str, Any]) -> Asked:
    """The options of a saved run."""
    known = {f.name for f in fields(Asked)}
    if set(options) - known or "launcher" not in options:
        raise ScenarioError("The run was remembered by another version of Runcast.")
    values: dict[str, Any] = {**options, "env": tuple(options.get("env") or ())}
    return Asked(**values)


def _name(text: str | None, option: str) -> str:
    return quoting.name(text, option) if text else ""


def _gpus(asked: Asked) -> int | None:
    return _count(asked.gpus_per_node, "--gpus-per-node", MOST_PROCESSES)


def _count(text: str | None, name: str, most: int) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= most:
        raise ScenarioError(f"{name} {shown(text)} is not a whole number from 1 to {most:,}.")
    return int(text)


def _number(text: str | None, name: str, most: float) -> float | None:
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= most:
        raise ScenarioError(f"{name} {shown(text)} is not a number above 0, up to {most:g}.")
    return value

"""The options of `runcast calibrate`, and the launcher, job and limits that follow from them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from core.errors import ScenarioError, shown, unknown_name
from core.units import HOUR_S
from hardware import names
from runners.launchers import quoting
from runners.launchers.job import Job
from runners.launchers.kubernetes import Kubernetes
from runners.launchers.launcher import Launcher
from runners.launchers.local import Local
from runners.launchers.ray_jobs import RayJobs
from runners.launchers.skypilot import SkyPilot
from runners.launchers.slurm import Slurm
from runners.launchers.ssh import Ssh
from runners.run_state import folder_of

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
    "partition": ("slurm",), "account": ("slurm",), "qos": ("slurm",), "address": ("ray",),
    "infra": ("sky",), "spot": ("sky",), "image": ("k8s",), "namespace": ("k8s",),
    "context": ("k8s",), "gpu_resource": ("k8s",),
}  # fmt: skip
NEEDED = {
    "ssh": ("hosts",), "ray": ("address",), "sky": ("gpu", "usd_per_hour"), "k8s": ("image",),
}  # fmt: skip
REQUESTS_GPUS = ("slurm", "ray", "k8s")  # these schedulers need a GPU count in the request


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options as typed; a resumed run is rebuilt from them."""

    launcher: str
    nodes: str | None = None
    gpus_per_node: str | None = None
    processes_per_node: str | None = None
    hosts: str | None = None
    master_addr: str | None = None
    ssh_config: str | None = None
    folder: str | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    address: str | None = None
    infra: str | None = None
    spot: bool = False
    image: str | None = None
    namespace: str | None = None
    context: str | None = None
    gpu_resource: str | None = None
    gpu: str | None = None
    python: str | None = None
    interface: str | None = None
    env: tuple[str, ...] = ()
    device: str | None = None
    reduced: bool = False
    budget_s: str | None = None
    max_usd: str | None = None
    usd_per_hour: str | None = None
    plan: str | None = None
    out: str | None = None
    anonymise: bool = False
    force: bool = False

    def check(self) -> None:
        """Raise ScenarioError if options contradict one another."""
        if self.launcher not in LAUNCHERS:
            raise unknown_name("launcher", self.launcher, LAUNCHERS)
        if self.device is not None and self.device not in DEVICES:
            raise unknown_name("device", self.device, DEVICES)
        for name, takers in TAKEN_BY.items():
            if getattr(self, name) and self.launcher not in takers:
                raise ScenarioError(
                    f"{option(name)} is for --launcher {' or '.join(takers)}, not {self.launcher}."
                )
        if lacks := [n for n in NEEDED.get(self.launcher, ()) if not getattr(self, n)]:
            raise ScenarioError(
                f"--launcher {self.launcher} needs {' and '.join(map(option, lacks))}."
            )
        gpus = self.gpus_per_node or self.device == "cpu"
        if self.launcher in REQUESTS_GPUS and not gpus:
            raise ScenarioError(
                f"--launcher {self.launcher} needs --gpus-per-node, or --device cpu: it gives a "
                "job what is asked for and no more."
            )
        if self.max_usd and not self.usd_per_hour:
            raise ScenarioError("--max-usd needs --usd-per-hour, the price of one node.")
        if self.device == "cpu" and self.gpus_per_node:
            raise ScenarioError("--gpus-per-node and --device cpu contradict each other.")

    @property
    def num_nodes(self) -> int:
        typed = _count(self.nodes, "--nodes", MOST_NODES)
        if self.launcher == "ssh":
            hosts = quoting.hosts(self.hosts or "")
            if typed not in (None, len(hosts)):
                raise ScenarioError(f"--nodes {typed} and {len(hosts)} --hosts contradict.")
            return len(hosts)
        if self.launcher == "local" and typed not in (None, 1):
            raise ScenarioError("--launcher local is one node: this machine.")
        return typed or 1

    @property
    def processes(self) -> int | None:
        """Processes per node; None means one per GPU, counted on the node."""
        typed = _count(self.processes_per_node, "--processes-per-node", MOST_PROCESSES)
        gpus = _count(self.gpus_per_node, "--gpus-per-node", MOST_PROCESSES)
        if self.launcher == "sky" and gpus is None:
            gpus = int((self.gpu or "").rpartition(":")[2] or 0) or None
        return typed or gpus or (1 if self.device == "cpu" else None)

    @property
    def sku_key(self) -> str | None:
        """The accelerator of the nodes, if it was given."""
        if not self.gpu:
            return None
        return names.canonical(self.gpu.partition(":")[0] if self.launcher == "sky" else self.gpu)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a run: seconds of measuring, seconds in total, dollars in total."""

    budget_s: float
    limit_s: float
    billed_s: float  # per node, at most
    usd: float | None  # None: no price was given


def option(name: str) -> str:
    return "--" + name.replace("_", "-")


def limits_of(asked: Asked) -> Limits:
    """The limits of a run; a limit in dollars may leave fewer seconds than requested."""
    budget_s = _number(asked.budget_s, "--budget-s", MOST_S) or BUDGET_S[is_reduced(asked)]
    usd_per_hour = _number(asked.usd_per_hour, "--usd-per-hour", 1e6)
    max_usd = _number(asked.max_usd, "--max-usd", 1e9)
    around_s = START_S + (PROVISION_S if asked.launcher == "sky" else 0.0)
    if max_usd is not None and usd_per_hour is not None:
        buys_s = max_usd / (usd_per_hour * asked.num_nodes) * HOUR_S
        if buys_s < around_s + LEAST_BUDGET_S:
            raise ScenarioError(
                f"--max-usd {max_usd:g} buys {buys_s:.0f} s of {asked.num_nodes} nodes, and "
                f"starting takes up to {around_s:.0f} s."
            )
        budget_s = min(budget_s, buys_s - around_s)
    if budget_s < LEAST_BUDGET_S:
        raise ScenarioError(f"--budget-s {budget_s:g} is less than {LEAST_BUDGET_S:g} s.")
    billed_s = budget_s + around_s
    usd = None if usd_per_hour is None else usd_per_hour * asked.num_nodes * billed_s / HOUR_S
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
    limits = limits_of(asked)
    arguments = ["--budget-s", f"{limits.budget_s:.0f}"]
    if asked.usd_per_hour:
        all_nodes = float(asked.usd_per_hour) * asked.num_nodes
        arguments += ["--usd-per-hour", f"{all_nodes:g}"]
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
        num_nodes=asked.num_nodes,
        processes=asked.processes,
        device=asked.device or "cuda",
        budget_s=limits.budget_s,
        limit_s=limits.limit_s,
        arguments=tuple(arguments),
        python=quoting.path(asked.python, "--python") if asked.python else "python3",
        env=quoting.variables(asked.env),
        interface=quoting.name(asked.interface, "--interface") if asked.interface else "",
    )


def _local(_: Asked) -> Launcher:
    return Local()


def _ssh(asked: Asked) -> Launcher:
    base = quoting.path(asked.folder, "--folder") if asked.folder else ".cache/runcast"
    address = quoting.hosts(asked.master_addr)[0] if asked.master_addr else ""
    if asked.ssh_config and not os.path.isfile(asked.ssh_config):
        raise ScenarioError(f"--ssh-config {shown(asked.ssh_config)} is no file here.")
    return Ssh(
        quoting.hosts(asked.hosts or ""), config=asked.ssh_config or "", master_addr=address,
        base=base,
    )  # fmt: skip


def _slurm(asked: Asked) -> Launcher:
    named = {n: getattr(asked, n) or "" for n in ("partition", "account", "qos")}
    checked = {n: value and quoting.name(value, option(n)) for n, value in named.items()}
    return Slurm(
        partition=checked["partition"],
        account=checked["account"],
        qos=checked["qos"],
        gpus_per_node=_gpus(asked),
    )


def _ray(asked: Asked) -> Launcher:
    return RayJobs(asked.address or "", gpus_per_node=_gpus(asked))


def _sky(asked: Asked) -> Launcher:
    return SkyPilot(asked.gpu or "", infra=asked.infra or "", use_spot=asked.spot)


def _k8s(asked: Asked) -> Launcher:
    resource = asked.gpu_resource or "nvidia.com/gpu"
    return Kubernetes(
        quoting.image(asked.image or "", "--image"),
        namespace=quoting.name(asked.namespace or "default", "--namespace"),
        context=quoting.name(asked.context, "--context") if asked.context else "",
        gpus_per_node=_gpus(asked),
        gpu_resource=quoting.image(resource, "--gpu-resource"),
    )


LAUNCHERS: dict[str, Callable[[Asked], Launcher]] = {
    "local": _local, "ssh": _ssh, "slurm": _slurm, "ray": _ray, "sky": _sky, "k8s": _k8s,
}  # fmt: skip


def launcher_of(asked: Asked) -> Launcher:
    """The launcher that the options name, with its own options."""
    asked.check()
    return LAUNCHERS[asked.launcher](asked)


def read_asked(options: Mapping[str, Any]) -> Asked:
    """The options of a saved run."""
    known = {f.name for f in fields(Asked)}
    if set(options) - known or "launcher" not in options:
        raise ScenarioError("The run was remembered by another version of Runcast.")
    values: dict[str, Any] = {**options, "env": tuple(options.get("env") or ())}
    return Asked(**values)


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

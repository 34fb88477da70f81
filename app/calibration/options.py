"""The options of a calibration run, each described once for the command line and for saved runs.

`runcast --help` reads this module, so it imports nothing but the standard library.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

LAUNCHERS = ("local", "ssh", "slurm", "ray", "sky", "k8s")


def _text(metavar: str, text: str, default: object = None) -> Any:
    """An option with a value. The launchers that a help text begins with take it, no others."""
    return field(default=default, metadata={"metavar": metavar, **_help(text)})


def _switch(text: str) -> Any:
    return field(default=False, metadata=_help(text))


def _help(text: str) -> dict[str, Any]:
    names = [part.partition(":")[0].strip() for part in text.split(";") if ":" in part]
    return {"help": text, "launchers": tuple(n for n in names if n in LAUNCHERS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateOptions:
    """The options as typed, in the order of the help; a resumed run is rebuilt from them."""

    launcher: str = _text("WHERE", "local, ssh, slurm, ray, sky or k8s.", "")
    nodes: str | None = _text("N", "Nodes to measure together (1).")
    gpus_per_node: str | None = _text("N", "GPUs of a node; all it has, where it can say.")
    processes_per_node: str | None = _text("N", "Processes of a node; one a GPU.")
    hosts: str | None = _text("A,B", "ssh: hosts as your ssh configuration has them.")
    master_addr: str | None = _text("ADDR", "ssh: the first host as the others reach it.")
    ssh_config: str | None = _text("FILE", "ssh: another configuration, `ssh -F`.")
    folder: str | None = _text("DIR", "ssh: on the hosts; slurm: one that nodes share.")
    partition: str | None = _text("P", "slurm: the partition.")
    account: str | None = _text("A", "slurm: the account.")
    qos: str | None = _text("Q", "slurm: the quality of service.")
    modules: str | None = _text("A,B", "slurm: modules to load.")
    venv: str | None = _text("PATH", "slurm: a virtual environment to activate.")
    container: str | None = _text("C", "slurm: pyxis or apptainer.")
    container_image: str | None = _text("I", "slurm: its image, with torch.")
    container_mounts: str | None = _text("A:B,..", "slurm: its mounts.")
    address: str | None = _text("URL", "ray: the dashboard, http://HOST:8265.")
    gpu: str | None = _text("NAME", "The accelerator of the nodes (sky: H100:8).")
    infra: str | None = _text("I", "sky: aws, gcp/us-central1.")
    spot: bool = _switch("sky: spot instances.")
    image: str | None = _text("I", "k8s: an image with torch.")
    namespace: str | None = _text("N", "k8s: the namespace.")
    context: str | None = _text("C", "k8s: of kubectl.")
    gpu_resource: str | None = _text("R", "k8s: nvidia.com/gpu if left out.")
    python: str | None = _text("PATH", "Python with torch, on the nodes (python3).")
    interface: str | None = _text("NAME", "Network interface; found if left out.")
    env: tuple[str, ...] = _text("NAME=VALUE", "On the nodes; repeat. No secrets.", ())
    device: str | None = _text("D", "cuda, rocm or cpu; a GPU where there is one.")
    reduced: bool = _switch("Small shapes, in a minute.")
    budget_s: str | None = _text("S", "Seconds of measuring (600; reduced 60).")
    max_usd: str | None = _text("U", "Dollars at most.")
    usd_per_hour: str | None = _text("P", "Price of one node; none is assumed.")
    plan: str | None = _text("LINK", "Measure the shapes of its plan.")
    stack: str | None = _text("NAME", "Software stack of the nodes; that of --plan.")
    software_date: str | None = _text("YYYY-MM", "Date of its release.")
    out: str | None = _text("FILE", "The result; calibration-ID.json if left out.")
    anonymise: bool = _switch("No names of hosts or devices.")
    force: bool = _switch("Also where the GPU is busy.")


def option(name: str) -> str:
    """The option that sets a field."""
    return "--" + name.replace("_", "-")

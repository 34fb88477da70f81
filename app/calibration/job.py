"""One run of `runcast calibrate`: its launcher, limits, measured shapes, and what is said of it."""

from __future__ import annotations

import hashlib
import math
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from app.calibration.options import LAUNCHERS, CalibrateOptions, option
from app.document import format as fmt
from app.document.as_json import attributes
from app.document.echo import echo
from app.document.progress import terminal_bar
from app.forecast.machines import CUSTOM
from app.scenario.version import version
from core.errors import ScenarioError, shown, unknown_name, unknown_sentence
from core.model.dimensions import is_mla
from core.scenario.types import MONTH
from core.units import HOUR_S
from hardware import names
from hardware.efficiency import GENERIC, stacks
from runners.calibration.probe_plan import DEFAULT, Workload, probe_plan
from runners.calibration.result import CalibResult
from runners.launchers import quoting
from runners.launchers.follow import Status
from runners.launchers.job import Job
from runners.launchers.kubernetes import Kubernetes
from runners.launchers.launcher import Launch, Launcher
from runners.launchers.local import Local
from runners.launchers.ray_jobs import RayJobs
from runners.launchers.skypilot import SkyPilot
from runners.launchers.slurm import Slurm
from runners.launchers.slurm_software import software
from runners.launchers.ssh import Ssh
from runners.run_state import RunState, folder_of

DEVICES = ("cpu", "cuda", "rocm")
BUDGET_S = {True: 60.0, False: 600.0}  # by is_reduced: the probe has the same defaults
START_S = 120.0  # before the first measurement: loading torch, rendezvous, the control
PROVISION_S = 900.0  # to start rented machines and to shut them down
LEAST_BUDGET_S = 10.0
MOST_S = 86_400.0
MOST_NODES, MOST_PROCESSES = 1024, 64
GPUS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")  # NVIDIA, NVIDIA under WSL, AMD
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


def num_nodes_of(options: CalibrateOptions) -> int:
    """The number of nodes: of the hosts for ssh, one for local."""
    typed = _count(options.nodes, "--nodes", MOST_NODES)
    if options.launcher == "ssh":
        hosts = quoting.hosts(options.hosts or "")
        if typed not in (None, len(hosts)):
            raise ScenarioError(f"--nodes {typed} and {len(hosts)} --hosts contradict.")
        return len(hosts)
    if options.launcher == "local" and typed not in (None, 1):
        raise ScenarioError("--launcher local is one node: this machine.")
    return typed or 1


def processes_of(options: CalibrateOptions) -> int | None:
    """Processes per node; None means one per GPU, counted on the node."""
    typed = _count(options.processes_per_node, "--processes-per-node", MOST_PROCESSES)
    gpus = _gpus(options)
    if options.launcher == "sky" and gpus is None:
        gpus = int((options.gpu or "").rpartition(":")[2] or 0) or None
    return typed or gpus or (1 if options.device == "cpu" else None)


def limits_of(options: CalibrateOptions) -> Limits:
    """The limits of a run; a limit in dollars may leave fewer seconds than requested."""
    budget_s = _number(options.budget_s, "--budget-s", MOST_S) or BUDGET_S[is_reduced(options)]
    usd_per_hour = _number(options.usd_per_hour, "--usd-per-hour", 1e6)
    max_usd = _number(options.max_usd, "--max-usd", 1e9)
    num_nodes = num_nodes_of(options)
    around_s = START_S + (PROVISION_S if options.launcher == "sky" else 0.0)
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


def check_device(options: CalibrateOptions) -> None:
    """Raise ScenarioError for a local run without a GPU unless a device is given."""
    is_local = options.launcher == "local" and options.device is None
    if is_local and not any(map(os.path.exists, GPUS)):
        raise ScenarioError("No GPU is here: --device cpu measures the processor, on small shapes.")


def is_reduced(options: CalibrateOptions) -> bool:
    """Whether to measure small shapes: on request, and always on a CPU."""
    return options.reduced or options.device == "cpu"


def job_of(options: CalibrateOptions, run_id: str, plan: Mapping[str, Any]) -> Job:
    """The job; checks every value that reaches a shell or a file."""
    limits, num_nodes = limits_of(options), num_nodes_of(options)
    arguments = ["--budget-s", f"{limits.budget_s:.0f}"]
    if options.usd_per_hour:
        arguments += ["--usd-per-hour", f"{float(options.usd_per_hour) * num_nodes:g}"]
    if options.max_usd:
        arguments += ["--max-usd", f"{float(options.max_usd):g}"]
    arguments += ["--anonymise"] * options.anonymise + ["--force"] * options.force
    folder = folder_of(run_id)
    if options.launcher == "slurm" and options.folder:
        base = Path(quoting.path(options.folder, "--folder")).expanduser().absolute()
        folder = base / f"runcast-{run_id}"
    return Job(
        run_id=run_id,
        folder=folder,
        plan=plan,
        num_nodes=num_nodes,
        processes=processes_of(options),
        device=options.device or "cuda",
        budget_s=limits.budget_s,
        limit_s=limits.limit_s,
        arguments=tuple(arguments),
        python=quoting.path(options.python or "python3", "--python"),
        env=quoting.variables(options.env),
        interface=_name(options.interface, "--interface"),
    )


def launcher_of(options: CalibrateOptions) -> Launcher:
    """The launcher that the options name. Raises ScenarioError if they contradict one another."""
    _check(options)
    match options.launcher:
        case "ssh":
            if options.ssh_config and not os.path.isfile(options.ssh_config):
                raise ScenarioError(f"--ssh-config {shown(options.ssh_config)} is no file here.")
            master = options.master_addr
            return Ssh(
                quoting.hosts(options.hosts or ""),
                config=options.ssh_config or "",
                master_addr=quoting.hosts(master)[0] if master else "",
                base=quoting.path(options.folder or ".cache/runcast", "--folder"),
            )
        case "slurm":
            return Slurm(
                partition=_name(options.partition, "--partition"),
                account=_name(options.account, "--account"),
                qos=_name(options.qos, "--qos"),
                gpus_per_node=_gpus(options),
                software=software(
                    modules=options.modules or "",
                    venv=options.venv or "",
                    container=options.container or "",
                    image=options.container_image or "",
                    mounts=options.container_mounts or "",
                ),
            )
        case "ray":
            return RayJobs(options.address or "", gpus_per_node=_gpus(options))
        case "sky":
            return SkyPilot(options.gpu or "", infra=options.infra or "", use_spot=options.spot)
        case "k8s":
            resource = options.gpu_resource or "nvidia.com/gpu"
            return Kubernetes(
                quoting.image(options.image or "", "--image"),
                namespace=_name(options.namespace or "default", "--namespace"),
                context=_name(options.context, "--context"),
                gpus_per_node=_gpus(options),
                gpu_resource=quoting.image(resource, "--gpu-resource"),
            )
        case _:
            return Local()


def _check(options: CalibrateOptions) -> None:
    """Raise ScenarioError for an unknown launcher or device, or if options contradict."""
    launcher, is_cpu = options.launcher, options.device == "cpu"
    if launcher not in LAUNCHERS:
        raise unknown_name("launcher", launcher, LAUNCHERS)
    if options.device is not None and options.device not in DEVICES:
        raise unknown_name("device", options.device, DEVICES)
    for field in fields(options):
        takers = field.metadata["launchers"]
        if getattr(options, field.name) and takers and launcher not in takers:
            raise ScenarioError(
                f"{option(field.name)} is for --launcher {' or '.join(takers)}, not {launcher}."
            )
    if lacks := [n for n in NEEDED.get(launcher, ()) if not getattr(options, n)]:
        raise ScenarioError(f"--launcher {launcher} needs {' and '.join(map(option, lacks))}.")
    if launcher in REQUESTS_GPUS and not (options.gpus_per_node or is_cpu):
        raise ScenarioError(
            f"--launcher {launcher} needs --gpus-per-node, or --device cpu: it gives a "
            "job what is asked for and no more."
        )
    if options.max_usd and not options.usd_per_hour:
        raise ScenarioError("--max-usd needs --usd-per-hour, the price of one node.")
    if is_cpu and options.gpus_per_node:
        raise ScenarioError("--gpus-per-node and --device cpu contradict each other.")


def read_options(saved: Mapping[str, Any]) -> CalibrateOptions:
    """The options of a saved run."""
    known = {f.name for f in fields(CalibrateOptions)}
    if set(saved) - known or "launcher" not in saved:
        raise ScenarioError("The run was remembered by another version of Runcast.")
    values: dict[str, Any] = {**saved, "env": tuple(saved.get("env") or ())}
    return CalibrateOptions(**values)


def _name(text: str | None, option: str) -> str:
    return quoting.name(text, option) if text else ""


def _gpus(options: CalibrateOptions) -> int | None:
    return _count(options.gpus_per_node, "--gpus-per-node", MOST_PROCESSES)


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


# --- measured shapes -----------------------------------------------------------------------------


def measured_of(options: CalibrateOptions, run_id: str) -> tuple[dict[str, Any], list[str]]:
    """The calib-plan/1 document for the given options, and sentences on its shapes and what they
    leave out."""
    workload, accelerator, sentences = DEFAULT, None, ["The shapes are those of Llama 3 8B."]
    software: dict[str, str] = {}
    if options.plan is not None:
        workload, accelerator, software, sentences = _of_link(options.plan)
    if options.gpu:
        gpu = options.gpu.partition(":")[0] if options.launcher == "sky" else options.gpu
        accelerator = names.canonical(gpu)
    cloud, _, place = (options.infra or "").partition("/")
    told = {
        "cloud": cloud,
        "region": place.partition("/")[0],
        "purchase": "spot" if options.spot else "on_demand" if options.launcher == "sky" else "",
        "image": options.image or "",
        **_software(options, software),
    }
    plan = probe_plan(
        run_id=run_id,
        launcher=options.launcher,
        planner_version=version() or "not installed",
        workload=workload,
        reduced=is_reduced(options),
        device=options.device,
        sku_key=None if options.device == "cpu" or accelerator == CUSTOM else accelerator,
        told={name: value for name, value in told.items() if value},
    )
    if is_reduced(options):
        sentences.append("They are reduced to what a CPU core does in a minute.")
    return plan, sentences


def _software(options: CalibrateOptions, of_link: dict[str, str]) -> dict[str, str]:
    """The stack of the nodes and the month of its release: as given, else those of the link."""
    if options.stack is not None and options.stack not in stacks():
        raise ScenarioError(unknown_sentence("stack", options.stack, stacks()))
    if options.software_date is not None and not re.fullmatch(MONTH, options.software_date):
        raise ScenarioError(
            f"--software-date {shown(options.software_date)} should be a month like 2025-06."
        )
    linked = of_link if options.stack in (None, of_link.get("stack")) else {}
    typed = {"stack": options.stack or "", "software_date": options.software_date or ""}
    told = {**linked, **{name: value for name, value in typed.items() if value}}
    return {} if told.get("stack") == GENERIC else told


def _of_link(link: str) -> tuple[Workload, str, dict[str, str], list[str]]:
    """The work of one GPU in the link's plan, its accelerator, its stack with the month, and notes
    on simplifications."""
    from app.command.values import link_values, parsed
    from app.forecast.answer import answer
    from app.forecast.resolve import resolve_strict
    from app.plan.words import answer_sentence
    from app.scenario.model import model_of

    values, notes = link_values(link)
    scenario = resolve_strict(parsed(values, written_as={}))
    forecast = answer(scenario)
    if not forecast.plans:
        raise ScenarioError(answer_sentence(scenario, forecast))
    chosen = next((p for p in forecast.plans if p.id == scenario.plan), None)
    if scenario.plan and chosen is None:
        notes.append("The plan that the link selects is not among the best: the best is measured.")
    plan = chosen or forecast.plans[0]
    model, layout = model_of(scenario), plan.layout
    t = model.transformer
    notes.append(
        f"The shapes are those of {model.label} with tp={layout.tp}, cp={layout.cp}, "
        f"micro_batch_size={layout.micro_batch_size} at {scenario.seq_len:,} tokens, the plan on "
        f"{plan.num_gpus} {plan.offer.accelerator}."
    )
    if bool(is_mla(t)) or not t.num_attention_heads:
        notes.append("Its attention is of another kind: its matmuls are measured as plain ones.")
    ffn = int(t.ffn_hidden_size)
    if t.num_experts:
        ffn = int(t.moe_ffn_hidden_size * t.experts_per_token) or ffn
        notes.append("Its experts are measured as one MLP as wide as those that a token uses.")
    heads = max(1, int(t.num_attention_heads))
    workload = Workload(
        hidden_size=int(t.hidden_size),
        ffn_hidden_size=ffn or int(t.hidden_size),
        num_attention_heads=heads,
        num_kv_heads=max(1, int(t.num_kv_heads)),
        head_dim=max(1, int(t.head_dim)),
        vocab_size=int(t.vocab_size),
        tp=layout.tp if heads % layout.tp == 0 else 1,
        micro_batch_size=layout.micro_batch_size,
        seq_len=max(1, scenario.seq_len // layout.cp),
    )
    told = {"stack": scenario.stack, "software_date": scenario.software_date}
    software = {name: value for name, value in told.items() if value}
    return workload, plan.offer.accelerator, software, notes


# --- words and JSON ------------------------------------------------------------------------------


def budget_sentence(options: CalibrateOptions, where: str, limits: Limits) -> str:
    """The maximum time and cost of a run."""
    processes, num_nodes = processes_of(options), num_nodes_of(options)
    each = "one process a GPU" if processes is None else f"{fmt.count(processes)} processes"
    each = "one process" if processes == 1 else each
    nodes = "1 node" if num_nodes == 1 else f"{fmt.count(num_nodes)} nodes"
    sentence = (
        f"{nodes} of {each} on {where}, at most {limits.limit_s:.0f} s there: "
        f"{limits.budget_s:.0f} s of measuring, {START_S:.0f} s to start"
    )
    if limits.billed_s > limits.limit_s:
        rest_s = limits.billed_s - limits.limit_s
        sentence += f", and {rest_s:.0f} s to rent and return the machines"
    if limits.usd is not None:
        return f"{sentence}. At most {fmt.usd(limits.usd, digits=3)}."
    if options.launcher == "local":
        return f"{sentence}."
    return f"{sentence}. What that costs is not known: --usd-per-hour was not given."


def by_hand(options: CalibrateOptions, probe: Path, plan: Path) -> list[list[str]]:
    """The commands that measure a node with the probe, and keep what they measured."""
    processes = options.processes_per_node or options.gpus_per_node or (
        "1" if options.device == "cpu" else "gpu"
    )  # fmt: skip
    words = [probe.name, "--plan", plan.name, "--out", "result.json"]
    start = [options.python or "python3"]
    if processes != "1":
        start = ["torchrun", f"--nproc-per-node={processes}"]
    return [[*start, *words], ["runcast", "calibrations", "add", "result.json"]]


def launch_json(run_id: str, launch: Launch) -> dict[str, Any]:
    """The files and commands of a dry run as JSON."""
    return {
        "run_id": run_id,
        "files": {path: content.decode() for path, content in launch.files.items()},
        "commands": [list(command) for command in launch.commands],
    }


def launch_lines(launch: Launch) -> Iterator[str]:
    """The files and commands of a dry run as lines of text; programs by their hash only."""
    for path, content in launch.files.items():
        digest = hashlib.sha256(content).hexdigest()
        yield f"# file {path}, {len(content):,} bytes, sha256 {digest}"
        if not path.endswith(".py"):
            yield content.decode().rstrip("\n")
    for command in launch.commands:
        yield f"$ {shlex.join(command)}"


@contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[[Status], None]]:
    """Shows the progress of a run on standard error: a bar on a terminal, else a line per group."""
    last = ""
    with terminal_bar(quiet=quiet) as bar:
        task = bar.add_task("starting", total=None)

        def show(status: Status) -> None:
            nonlocal last
            text = ": ".join(w for w in (status.state, status.group, status.sentence) if w)
            # The named group has started; those before it are finished.
            finished = status.total if status.state == "done" else max(0, status.done - 1)
            bar.update(task, description=text, completed=finished, total=status.total or None)
            line = f"{text} ({status.done}/{status.total})" if status.total else text
            if bar.disable and not quiet and line != last:
                echo(line, err=True)
            last = line

        yield show


def result_json(
    options: CalibrateOptions, state: RunState, result: CalibResult, file: Path
) -> dict[str, Any]:
    """The summary that `--json` prints; docs/calibration.md lists its keys."""
    p, limits = result.provenance, limits_of(options)
    return {
        **attributes(state, "run_id", "launcher", "handle", "submissions"),
        "num_nodes": num_nodes_of(options),
        "world_size": p.world_size,
        **attributes(limits, "budget_s", "limit_s"),
        "usd_at_most": limits.usd,
        **attributes(result, "usd", "wall_s", "complete"),
        "groups": [group.name for group in result.groups],
        "num_results": len(result.results),
        "skipped": [s.model_dump() for s in result.skipped],
        "device": p.device.name,
        "sku_key": p.device.sku_key,
        **attributes(p, "host", "torch"),
        "measured_at": p.utc_end,
        "result_file": str(file),
    }


def result_lines(result: CalibResult, file: Path) -> Iterator[str]:
    """What the run measured and where the result is."""
    p = result.provenance
    whole = "every group" if result.complete else f"{len(result.groups)} groups"
    ranks = "1 process" if p.world_size == 1 else f"{p.world_size} processes"
    usd = "" if result.usd is None else f" About {fmt.usd(result.usd, digits=3)} of measuring."
    yield (
        f"Measured {whole} ({len(result.results)} results) on {p.device.name}, {ranks}, "
        f"in {result.wall_s:.0f} s, torch {p.torch}.{usd}"
    )
    for skipped in result.skipped:
        names = ": ".join(dict.fromkeys(w for w in (skipped.group, skipped.label) if w))
        yield f"Left out {names}: {skipped.reason}."
    yield f"The result is in {file}."

"""Registry of all launch files, and the functions that check, write and read them back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from core.errors import unknown_sentence
from runners.recipes import (
    accelerate_config,
    accelerate_launch,
    axolotl,
    deepspeed,
    fsdp2,
    hostfile,
    kubernetes,
    llama_factory,
    maxtext,
    megatron,
    nccl,
    nemo,
    preflight,
    quoting,
    ray,
    skypilot,
    slurm,
    torchrun,
    torchtitan,
    torchtune,
)
from runners.recipes.job import RecipeError, RecipeJob, check_job, checked_name
from runners.recipes.target import Recovered, Target

_MODULES = (
    torchrun, slurm, skypilot, ray, kubernetes, hostfile, accelerate_launch,
    fsdp2, torchtitan, megatron, nemo, deepspeed, accelerate_config, torchtune, llama_factory,
    axolotl, maxtext,
    nccl, preflight,
)  # fmt: skip
# Options in addition to the plan: option -> its form, its meaning.
OPTIONS = {
    "command": ("python train.py", "What each process runs: an argument list, not a shell line."),
    "env": ("NAME=VALUE", "A variable of the job; it wins over ours."),
    "image": ("IMAGE", "The container image of every pod, or of SkyPilot's machines."),
    "bucket": ("s3://NAME/PATH", "Where checkpoints go."),
    "fabric": ("NAME", "Network between nodes, if the offer has none: slingshot, roce, ..."),
    "hosts": ("A,B", "The nodes, the first one leads."),
    "port": ("N", "Of the rendezvous (29500)."),
    "partition": ("NAME", "SLURM's partition."),
    "account": ("NAME", "SLURM's account."),
    "qos": ("NAME", "SLURM's quality of service."),
    "partition_hours": ("N", "The longest time that the partition allows: the job queues again."),
    "cpus_per_node": ("N", "CPUs of a node, instead of all (SLURM) or most of them (Kubernetes)."),
    "memory_gib": ("N", "Memory of a node in GiB, instead of all or most of it."),
    "container": ("pyxis|apptainer", "What starts the container of a SLURM job."),
    "container_image": ("IMAGE", "Its image: registry#name:tag, docker://name:tag, a file."),
    "container_mounts": ("SRC:DST,...", "Its mounts, beside the folder of the job."),
    "modules": ("A,B", "Modules to load on the nodes of SLURM."),
    "venv": ("PATH", "Virtual environment to activate on the nodes of SLURM."),
    "namespace": ("NAME", "Kubernetes' namespace."),
    "queue": ("NAME", "Kueue's local queue."),
    "runtime": ("NAME", "Kubeflow's ClusterTrainingRuntime (torch-distributed)."),
    "time_hours": ("N", "The time limit, instead of the P90 with failures."),
    "min_nodes": ("N", "Fewest nodes of an elastic run (all)."),
    "max_restarts": ("N", "Restarts of an elastic run (3)."),
    "address": ("URL", "Of Ray's job server; RAY_ADDRESS if left out."),
    "config_file": ("PATH", "Accelerate's configuration file."),
    "data_path": ("PATH", "Prefix of the data set."),
    "dataset": ("NAME", "The data set of a fine-tuning."),
    "model_path": ("PATH", "Weights to start from: a folder, or a name of the Hugging Face hub."),
    "tokenizer": ("PATH", "Folder or name of the tokenizer."),
    "nvme_path": ("PATH", "Folder of offloaded states."),
    "checkpoint_path": ("PATH", "Folder of checkpoints, on storage that every node sees."),
    "learning_rate": ("X", "The peak learning rate: 3e-4."),
}


@cache
def targets() -> dict[str, Target]:
    """Every target by name, launchers first, in the order of the page."""
    found = [t for module in _MODULES for t in module.TARGETS]
    kinds = ("launcher", "stack", "check")
    return {t.name: t for t in sorted(found, key=lambda t: kinds.index(t.kind))}


def target(name: str) -> Target:
    """One target by name; RecipeError with the nearest name for an unknown one."""
    if name not in targets():
        raise RecipeError(unknown_sentence("target", name, targets()))
    return targets()[name]


def files_of(name: str, job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    """Path -> text of one target. The plan is validated first; the files are read back and must
    match the plan."""
    chosen = target(name)
    checked_name(job.name)
    check_job(job)
    if why := chosen.refuses(job):
        raise RecipeError(f"{chosen.title}: {why}.")
    files = chosen.write(job, _own_options(chosen, options))
    _check_round_trip(chosen, job, chosen.read(files))
    return files


def exported(
    names: Iterable[str], job: RecipeJob, options: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """The files of several targets, by target. Without a command, launchers start the first of
    these stacks. RecipeError if two targets would write the same path differently."""
    wanted = list(dict.fromkeys(names))
    if not wanted:
        raise RecipeError(f"No target is named: there are {', '.join(targets())}.")
    _check_known(wanted, options)
    given = dict(options)
    if "command" not in given:
        for one in wanted:
            if started := target(one).starts(job, given):
                given["command"] = started
                break
    if accelerate_launch.NAME in wanted and "config_file" not in given:
        for one in wanted:
            if one in accelerate_launch.CONFIGS:
                given["config_file"] = next(iter(files_of(one, job, given)))
                break
    found: dict[str, dict[str, str]] = {}
    written: dict[str, str] = {}
    for one in wanted:
        found[one] = files_of(one, job, given)
        for path, text in found[one].items():
            if written.setdefault(path, text) != text:
                raise RecipeError(f"Two targets would write {path}: ask for them one by one.")
    return found


def _own_options(chosen: Target, options: Mapping[str, str]) -> dict[str, str]:
    """The options that this target takes."""
    kept = {k: v for k, v in options.items() if k in chosen.options}
    if "env" in chosen.options:
        kept |= {k: v for k, v in options.items() if k.startswith(quoting.ENV)}
    return kept


def _check_known(names: Iterable[str], options: Mapping[str, str]) -> None:
    """RecipeError if an option belongs to none of these targets."""
    chosen = [target(n) for n in names]
    taken = {o for t in chosen for o in t.options} | {"command"}
    for given in options:
        name = "env" if given.startswith(quoting.ENV) else given
        if name not in taken:
            raise RecipeError(
                unknown_sentence("option", name, taken - {"env"})
                if name not in OPTIONS
                else f"The option {name} belongs to none of {', '.join(t.name for t in chosen)}."
            )


def _check_round_trip(chosen: Target, job: RecipeJob, read: Recovered) -> None:
    """Check that the files match the plan; a file that does not is a bug, and is never returned."""
    lay = job.layout
    wanted = {
        "world_size": job.num_gpus, "nodes": job.num_nodes,
        "gpus_per_node": job.num_gpus // job.num_nodes, "tp": lay.tp, "pp": lay.pp, "cp": lay.cp,
        "dp": job.dp, "micro_batch_size": lay.micro_batch_size,
        "num_microbatches": lay.num_microbatches, "global_batch_size": job.global_batch_size,
    }  # fmt: skip
    for name, value in wanted.items():
        found = getattr(read, name)
        if found is not None and found != value:
            raise RecipeError(
                f"{chosen.title} would say {name} {found} for a plan of {value}: this is a mistake "
                "of ours, and nothing was written."
            )

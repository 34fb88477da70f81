"""Launch files of a programme: one folder a stage, and a script that starts them one by one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.forecast.answer import answer
from app.forecast.stack_limits import targets_of
from app.launch.job import default_name, job_of
from app.programme.contract import StagePlan
from app.programme.programme import contract_or_error
from app.scenario.model import model_of
from core.errors import ScenarioError, shown
from core.scenario import Scenario
from core.search.plan import Plan
from runners.recipes.job import RecipeJob, Start, checked_name
from runners.recipes.registry import exported, target

STEM = 20
SAVE_SHARDS = {("axolotl", "fsdp2"), ("axolotl", "hsdp")}  # in no form that it begins with
PLACED = ("tp", "pp", "virtual_stages", "ep", "etp", "dp_replicate", "dp_shard", "sharding")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
SCRIPTS = {"slurm": ("submit.sh", "job.sbatch"), "skypilot": ("submit-sky.sh", "sky.yaml")}
SBATCH = (
    "after=$(cd {folder} && sbatch --parsable --kill-on-invalid-dep=yes "
    '${{after:+--dependency=afterok:$after}} "$@" {file})'
)
# The first call rents the machines, the others use them again; each follows its job to its end.
SKY = '(cd {folder} && sky launch --yes -c {cluster} "$@" {file})'
SKY_JOBS = '(cd {folder} && sky jobs launch --yes "$@" {file})'


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFiles:
    """One step of one stage: its folder and the files in it, by target and path."""

    folder: str
    plan: Plan
    job: RecipeJob
    stage: StagePlan
    starts_from: str  # folder whose checkpoint it goes on with; '': from nothing
    is_kept: bool  # where each weight lies there
    files: Mapping[str, Mapping[str, str]]


def stages_exported(
    scenario: Scenario, *, name: str | None, targets: Sequence[str], options: Mapping[str, str]
) -> list[StageFiles]:
    """The files of every stage of the recommended contract; a batch ramp is one folder a step."""
    best = contract_or_error(scenario)
    made: list[StageFiles] = []
    source: StageFiles | None = None  # whose weights the next stage goes on with
    steps = [(s, step) for s in best.stages for step in s.run.steps]
    for n, (stage, step) in enumerate(steps, start=1):
        plan = _plan(step, stage)
        own = targets_of(plan.stack)
        folder = f"{n:02d}-{_slug(stage.run.name)}"
        stem = name or default_name(model_of(scenario).label, plan)
        called = checked_name(f"{stem[:STEM].strip('-')}-{folder}"[:40].strip("-"))
        before = source if step is stage.run.steps[0] else made[-1]
        if stage.run.stage.is_apart and step is stage.run.steps[0]:
            before = None
        job = replace(job_of(step, plan, name=called), start=_start_of(before, plan))
        wanted = list(targets) or [t for t in own if not target(t).refuses(job)][:1] or own[:1]
        given = dict(options)
        if path := given.get("checkpoint_path", ""):  # a stage would go on from another's last step
            given["checkpoint_path"] = f"{path.rstrip('/')}/{folder}"
        made.append(
            StageFiles(
                folder=folder,
                plan=plan,
                job=job,
                stage=stage,
                starts_from="" if before is None else before.folder,
                is_kept=before is not None and _placed(before.plan) == _placed(plan),
                files=exported(wanted, job, given),
            )
        )
        if not stage.run.stage.is_apart:
            source = made[-1]
    return made


def _start_of(before: StageFiles | None, plan: Plan) -> Start | None:
    """What a stage begins with, for its files."""
    if before is None:
        return None
    return Start(
        folder=before.folder,
        name=before.job.name,
        num_steps=before.job.num_steps,
        is_same_stack=before.plan.stack == plan.stack,
        is_whole=before.job.task not in ("lora", "qlora")
        and (before.plan.stack, before.job.layout.sharding) not in SAVE_SHARDS,
    )


def _placed(plan: Plan) -> tuple[object, ...]:
    """What says where each weight of a checkpoint lies."""
    return (plan.stack, *(getattr(plan.layout, name) for name in PLACED))


def _plan(step: Scenario, stage: StagePlan) -> Plan:
    """The plan of a step on the machines of its stage."""
    offer = stage.offer
    narrow = {"gpu": (offer.accelerator,), "num_gpus": (stage.num_gpus,), "plan": stage.id}
    found = answer(step.model_copy(update=narrow), top=1)
    plan = found.chosen(stage.id)
    if plan is None or plan.id != stage.id:
        raise ScenarioError(f"Stage {shown(stage.run.name)} has no plan on {stage.id}.")
    return plan


def _slug(name: str) -> str:
    return _NOT_IN_NAMES.sub("-", name.lower()).strip("-")[:STEM].strip("-") or "stage"


def merged(stages: Sequence[StageFiles]) -> dict[str, dict[str, str]]:
    """Path -> text by target, with the scripts that start the stages in their order."""
    found: dict[str, dict[str, str]] = {}
    for stage in stages:
        for name, files in stage.files.items():
            of_target = found.setdefault(name, {})
            of_target |= {f"{stage.folder}/{path}": text for path, text in files.items()}
    for name, (script, file) in SCRIPTS.items():
        if name in found:
            found[name][script] = _script(name, file, stages)
    return found


def _script(name: str, file: str, stages: Sequence[StageFiles]) -> str:
    """The script that starts every stage when the one before has ended well."""
    lines = [
        "#!/bin/bash",
        "# Starts the stages of this programme one after the other, each if the one before ended",
        "# well; its arguments go to every call. What is loaded of another stage is its weights,",
        "# without the states of its optimizer.",
        "set -euo pipefail",
        'cd "$(dirname "$0")"',
        *(['after=""'] if name == "slurm" else []),
    ]
    for stage in stages:
        weights = "it starts from nothing"
        if stage.starts_from:
            how = "in the same layout" if stage.is_kept else "re-sharded for its layout"
            weights = f"weights of {stage.starts_from}, {how}"
            if not any(target(t).begins for t in stage.files):
                weights += "; its files have no option that loads them, the training command has to"
        lines.append(f"# {stage.folder}: {weights}")
        start = _start(name, stages).format(
            folder=stage.folder, file=file, cluster=stages[0].job.name
        )
        lines += [start] * stage.stage.run.stage.count
    return "\n".join(lines) + "\n"


def _start(name: str, stages: Sequence[StageFiles]) -> str:
    """The line that starts a stage. Spot, and machines of each stage, are for managed jobs."""
    if name == "slurm":
        return SBATCH
    is_one_set = len({s.stage.id for s in stages}) == 1
    return SKY if is_one_set and stages[0].job.purchase != "spot" else SKY_JOBS

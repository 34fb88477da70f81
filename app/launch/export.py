"""The work of `runcast export`: a plan and target names in, files out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.command.given import Given
from app.command.values import STAGES_NOTE, TOP_MAX, plan_scenario
from app.forecast.answer import answer
from app.forecast.resolve import resolve_strict
from app.forecast.stack_limits import targets_of
from app.launch.job import job_of
from app.launch.stages import merged, stages_exported
from app.launch.words import TIERS
from app.plan.words import answer_sentence
from core.errors import ScenarioError, shown
from core.scenario import Scenario
from core.scenario.types import AUTO
from core.search.plan import Plan
from core.units import whole_number
from hardware.stack_support import supports
from pricing.disk import write_all_or_none
from runners.recipes import quoting
from runners.recipes.job import RecipeJob, checked_name
from runners.recipes.registry import OPTIONS, exported, target, targets

SCHEMA_VERSION = 1
MISSING = "Missing --to: `runcast export --list` names the kinds of files."


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """The files of one plan, by target and path."""

    plan: Plan
    job: RecipeJob
    files: Mapping[str, Mapping[str, str]]

    def texts(self) -> dict[str, str]:
        """The text of every file, by path."""
        return {p: t for files in self.files.values() for p, t in files.items()}


def names_of(text: str | None) -> list[str]:
    """The target names in the value of `--to`; without it none: the file of the plan's own stack is
    meant."""
    if text is None:
        return []
    found = [t.strip() for t in (text or "").split(",") if t.strip()]
    if not found:
        raise ScenarioError(MISSING)
    return [target(n).name for n in found]


def options_of(*, command: str | None, env: Sequence[str], pairs: Sequence[str]) -> dict[str, str]:
    """The options given in addition to the plan, in the form that targets take."""
    found: dict[str, str] = {}
    for text in pairs:
        key, equals, value = text.partition("=")
        if not equals or key not in OPTIONS or key in ("command", "env"):
            known = ", ".join(k for k in OPTIONS if k not in ("command", "env"))
            raise ScenarioError(f"--option {shown(text)} is no KEY=VALUE with one of {known}.")
        if key in found:
            raise ScenarioError(f"--option gives {key} twice.")
        found[key] = value
    if command is not None:
        found["command"] = command
    for text in env:
        key, equals, value = text.partition("=")
        if not equals:
            raise ScenarioError(f"--env {shown(text)} is no NAME=VALUE.")
        if quoting.ENV + key in found:
            raise ScenarioError(f"--env gives {shown(key)} twice.")
        found[quoting.ENV + key] = value
    return found


def made(
    given: Given,
    *,
    rank: str | None,
    name: str | None,
    targets: Sequence[str],
    options: Mapping[str, str],
) -> tuple[Export, list[str]]:
    """The files of the plan that options, a link or a file describe, with notes for the user."""
    if name is not None:
        checked_name(name)  # report a mistake before the search
    at = None if rank is None else whole_number(rank, "--rank", TOP_MAX)
    asked, notes = plan_scenario(given)
    if stack := stack_implied(asked, targets):
        asked = asked.model_copy(update={"stack": stack})
        notes.append(f"Planned for {stack}, whose file is asked for; --stack names another.")
    asked = resolve_strict(asked)
    if asked.stages:
        return _staged(asked, at, name, targets, options), [n for n in notes if n != STAGES_NOTE]
    found = answer(asked, top=at or 1)
    if not found.plans:
        raise ScenarioError(answer_sentence(asked, found))
    plan = _chosen(asked, found.plans, at)
    job = job_of(asked, plan, name=name)
    own = targets_of(plan.stack)
    targets = targets or [t for t in own if not target(t).refuses(job)][:1] or own[:1]
    if not targets:
        raise ScenarioError(MISSING)
    return Export(plan=plan, job=job, files=exported(targets, job, options)), notes


def _staged(
    asked: Scenario,
    rank: int | None,
    name: str | None,
    targets: Sequence[str],
    options: Mapping[str, str],
) -> Export:
    """The files of all stages, one folder each."""
    if rank is not None:
        raise ScenarioError("--rank is of plans of one run: a programme has the recommended ones.")
    stages = stages_exported(asked, name=name, targets=targets, options=options)
    return Export(plan=stages[0].plan, job=stages[0].job, files=merged(stages))


def stack_implied(scenario: Scenario, targets: Sequence[str]) -> str:
    """The stack whose file is asked for, so that the plan is one that this stack starts, at its
    speed; '' if the scenario names a stack, or if not exactly one has such a file."""
    if scenario.stack != AUTO:
        return ""
    named = [stack for stack in supports() if set(targets_of(stack)) & set(targets)]
    return named[0] if len(named) == 1 else ""


def _chosen(scenario: Scenario, plans: Sequence[Plan], rank: int | None) -> Plan:
    if rank is not None:
        if rank > len(plans):
            raise ScenarioError(f"--rank {rank}: there are {len(plans)} plans.")
        return plans[rank - 1]
    for plan in plans:
        if scenario.plan in ("", plan.id):
            return plan
    raise ScenarioError(f"The plan {shown(scenario.plan)} of the link is not among the plans.")


def single(export: Export) -> str:
    """The text of the only file; raises ScenarioError if there are several."""
    texts = export.texts()
    if len(texts) != 1:
        raise ScenarioError(
            f"These are {len(texts)} files, {', '.join(texts)}: --out DIR takes them."
        )
    return next(iter(texts.values()))


def write(export: Export, folder: str, *, force: bool) -> list[str]:
    """Write the files and return their paths. Existing files are kept unless asked otherwise."""
    at = Path(folder)
    texts = {at / path: text for path, text in export.texts().items()}
    there = [str(p) for p in texts if p.exists() or p.is_symlink()]
    if there and not force:
        raise ScenarioError(f"{shown(there[0])} is there already: --force replaces it.")
    write_all_or_none({path: text.encode() for path, text in texts.items()})
    for path in texts:
        if path.suffix == ".sh":
            path.chmod(0o755)
    return [str(p) for p in texts]


def export_json(export: Export, *, written: Sequence[str] = ()) -> dict[str, Any]:
    """The files as JSON; docs/launch.md has every key."""
    plan = export.plan
    return {
        "schema_version": SCHEMA_VERSION,
        "link": export.job.header.link,
        "plan": {
            "id": plan.id, "accelerator": plan.offer.accelerator, "num_gpus": plan.num_gpus,
            "num_nodes": plan.num_nodes,
        },
        "name": export.job.name,
        "forecast": list(export.job.header.forecast),
        "assumptions": list(export.job.header.assumptions),
        "files": [
            {
                "target": name, "path": path, "tier": target(name).tier, "tool": target(name).tool,
                "text": text,
            }
            for name, files in export.files.items()
            for path, text in files.items()
        ],
        "written": list(written),
    }  # fmt: skip


def list_json() -> dict[str, Any]:
    """Every target as JSON."""
    return {
        "schema_version": SCHEMA_VERSION,
        "targets": [
            {
                "name": t.name, "title": t.title, "kind": t.kind, "tier": t.tier, "tool": t.tool,
                "options": list(t.options),
            }
            for t in targets().values()
        ],
        "options": [{"name": k, "value": v, "text": w} for k, (v, w) in OPTIONS.items()],
    }  # fmt: skip


def list_text() -> str:
    """Every target for a terminal."""
    width = max(map(len, targets()))
    lines = []
    for kind in ("launcher", "stack", "check"):
        lines.append(f"{kind}s:")
        lines += [
            f"  {t.name:<{width}}  {t.title} ({TIERS[t.tier]})"
            for t in targets().values()
            if t.kind == kind
        ]
    lines.append("options (--option KEY=VALUE, --command, --env):")
    lines += [f"  {k}={v}: {w}" for k, (v, w) in OPTIONS.items()]
    return "\n".join(lines)
